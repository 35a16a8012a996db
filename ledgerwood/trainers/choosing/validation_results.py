"""The results of private validations: scores, noisy or for the owner only, and what all fits cost together."""

import abc
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, NoReturn, TypeVar, final

from ledgerwood.accounting.ledger import LedgerRecord
from ledgerwood.errors import LedgerError
from ledgerwood.references import Cited
from ledgerwood.trainers.base.privacy import PrivacyStatement
from ledgerwood.trainers.choosing.validation_plan import Scoring, ValidationPlan

T_co = TypeVar("T_co", covariant=True)
Scores = TypeVar("Scores")
"""Of a validation: as they are, or wrapped for the owner only."""
Index = TypeVar("Index")
Parameters = TypeVar("Parameters")


@final
class OwnerOnly(Generic[T_co]):
    """A value that was computed from rows without noise: not private, for the data owner only.

    It does not show its value, and is neither copied nor pickled, so that it does not get into a report by mistake.
    """

    __slots__ = ("_value",)

    def __init__(self, value: T_co) -> None:
        self._value = value

    def reveal(self) -> T_co:
        """Returns the value. It, and anything that was decided by it, reveals information about single rows."""
        return self._value

    def __repr__(self) -> str:
        return "OwnerOnly(<owner only, not private: .reveal() shows it to the owner of the rows>)"

    def __reduce__(self) -> NoReturn:
        raise LedgerError("an owner-only value is neither copied nor pickled: it is not private; call reveal()")


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FoldScores:
    """Held-out scores of one candidate; larger is better, as in scikit-learn.

    Noisy ones may be beyond the score's own range, by their noise.

    Args:
        test_score: of each fold, in order; NaN in an exact one for a fold without rows.
        mean_test_score: of all held-out rows together.
        noise_stddev: about how far noise moves the mean, one standard deviation; 0 without noise.
    """

    test_score: tuple[float, ...]
    mean_test_score: float
    noise_stddev: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class AbstractValidation(Cited):
    """The result of a private validation, and its privacy cost.

    Args:
        plan: all fits and scores.
        privacy: of all of them together: its epsilon is the total.
        ledger: the ledger that paid, as it stood afterwards.
        scoring: the name of the score.
    """

    plan: ValidationPlan
    privacy: PrivacyStatement
    ledger: LedgerRecord
    scoring: Scoring

    def cited(self) -> tuple[object, ...]:
        """What it rests on, for `ledgerwood.cite`: that of its plan."""
        return (self.plan,)

    @property
    def epsilon(self) -> float:
        """The total of all fits and scores, at `privacy.delta`; inf where `random_state` was given."""
        return self.privacy.epsilon

    @abc.abstractmethod
    def __repr__(self) -> str:
        """The result as text, without the scores of the owner."""


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class CrossValidation(AbstractValidation, Generic[Scores]):
    """The result of a private cross-validation. More arguments: see `AbstractValidation`.

    Args:
        scores: `FoldScores` with noise, or wrapped for the owner only.
    """

    scores: Scores

    def __repr__(self) -> str:
        return f"CrossValidation({self.plan}; {self.scoring}: {self.scores!r}; epsilon in all {self.epsilon:.4g})"


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class GridSearch(AbstractValidation, Generic[Scores, Index, Parameters]):
    """The result of a private grid search; its plan, cost and ledger include the last fit.

    More arguments: see `AbstractValidation`.

    Args:
        candidates: the parameters of each.
        scores: a tuple with the `FoldScores` of each candidate, with noise, or wrapped for the owner only.
        best_index: the candidate with the largest mean score; for the owner only where the scores are.
        best_estimator: fitted on all rows with `refit`, else None.
    """

    candidates: tuple[Mapping[str, Any], ...]
    scores: Scores
    best_index: Index
    best_estimator: Any

    @property
    def best_params(self) -> Parameters:
        """The parameters of the best candidate; for the owner only where the index is."""
        index: Any = self.best_index
        found: Any = self.candidates[index.reveal() if isinstance(index, OwnerOnly) else index]
        return OwnerOnly(found) if isinstance(index, OwnerOnly) else found  # type: ignore[return-value]

    def __repr__(self) -> str:
        return f"GridSearch({self.plan}; best: {self.best_params!r}; epsilon in all {self.epsilon:.4g})"
