"""Values of which there must be one: copies and pickles are refused, with the reason."""

import abc
from typing import NoReturn

from ledgerwood.errors import PrivacyError


class Uncopied(abc.ABC):
    """The base of classes whose values are neither copied nor pickled."""

    __slots__ = ()

    @abc.abstractmethod
    def _uncopied(self) -> str:
        """Why not, and what to do instead."""

    def __copy__(self) -> NoReturn:
        raise PrivacyError(self._uncopied())

    def __deepcopy__(self, memo: object) -> NoReturn:
        raise PrivacyError(self._uncopied())

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise PrivacyError(self._uncopied())
