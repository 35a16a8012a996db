"""Tags of encoded rows: whether rows that were computed again are the same.

A tag is a code under the session's secret (GMAC), not a hash: without the secret it tells nothing of the rows, and the
secret is forgotten when the fit ends. docs/explanation/places.md#clusters.
"""

import hashlib
import struct
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

from ledgerwood.curator.tables.parts import EncodedRows
from ledgerwood.sparse_cells import SparseCells

_MOST_BYTES = 1 << 30


def row_tag(secret: bytes, number: int, rows: EncodedRows, begin: int, end: int) -> bytes:
    """The tag of some encoded rows, 16 bytes.

    Args:
        secret: the session's.
        number: of the partition that they are.
        rows: these and others.
        begin, end: the first of them and the one after the last.
    """
    # Not the key that seals coins. A partition's number is its nonce.
    key = hashlib.blake2b(b"ledgerwood rows", key=secret, digest_size=32).digest()
    tag = Cipher(algorithms.AES256(key), modes.GCM(struct.pack("<Q4x", number))).encryptor()
    cells = rows.cells
    arrays: list[NDArray[Any] | None]
    if isinstance(cells, SparseCells):  # which no stretch puts together with others
        arrays = [cells.starts, cells.rows, cells.cells, cells.usual]
    else:
        arrays = [each[begin:end] for each in cells]
    arrays += [None if each is None else each[begin:end] for each in (rows.targets, rows.classes)]
    arrays += [each[begin:end] for each in (rows.weights, rows.left_out)]
    tag.authenticate_additional_data(struct.pack("<QQ", end - begin, len(arrays)))
    for each in arrays:
        own = np.empty(0) if each is None else np.ascontiguousarray(each)
        tag.authenticate_additional_data(f"{each is None} {own.dtype.str} {len(own)} ".encode())
        plain = own.view(np.uint8).data if own.size else b""
        for first in range(0, own.nbytes, _MOST_BYTES):
            tag.authenticate_additional_data(plain[first : first + _MOST_BYTES])
    tag.finalize()
    return tag.tag
