"""Whether a vector index on disk can be loaded: Chroma trusts these files, and damaged ones end the whole process.

The files are hnswlib's, as chroma-hnswlib persists them (``persistDirty`` in its ``hnswalg.h``): a header, one record
of fixed size per element (its neighbours, its vector, its label), the lengths of the vectors, and the neighbours in the
upper layers. Only what every healthy index has in common may be asked of them: the lengths, for one, are written in
cosine space alone and are whatever memory held in the others.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

_HEADER = struct.Struct("<iQQQQQQiIQQQdQ")
_NAMES = "index_metadata.pickle"  # Chroma's own file beside hnswlib's: written last
_COUNT = 4  # bytes before a list of neighbours; the first two are its length
_ID = 4  # bytes of a neighbour's number
_LABEL = 8
_LENGTH = 4


@dataclass(frozen=True, slots=True)
class _Layout:
    """What the header says: how many elements there are, and room for how many; bytes per element; neighbours."""

    elements: int
    room: int
    size: int
    upper: int
    lower: int


def damage(directory: Path, *, written: bool = False) -> str:
    """What is wrong with the index in ``directory``, empty when it can be loaded.

    Vectors are not looked at: a wrong number in them makes a wrong distance and nothing worse. ``written`` says that
    Chroma has written the index; until it has, all of it is in Chroma's log, and files that a killed process left
    behind half made are not read.

    Raises:
        OSError: a file can't be read.
    """
    header = directory / "header.bin"
    if not written and not (directory / _NAMES).is_file():
        return ""
    if not header.is_file():
        return "its files are gone"
    layout = _layout(header.read_bytes())
    if layout is None:
        return "its header makes no sense"
    try:
        return next((problem for holds, problem in _CHECKS if layout.elements and not holds(directory, layout)), "")
    except FileNotFoundError:
        return "a file of it is missing"


def _layout(header: bytes) -> _Layout | None:
    if len(header) < _HEADER.size:
        return None
    _, start, room, elements, size, label, data, _, entry, upper, lower, *_ = _HEADER.unpack_from(header)
    holds = (
        start == 0
        and elements <= room
        and label == size - _LABEL
        and data == _COUNT + lower * _ID
        and data < label
        and (entry < room or not elements)
    )
    return _Layout(elements, room, size, upper, lower) if holds else None


def _vectors_are_there(directory: Path, layout: _Layout) -> bool:
    return (directory / "data_level0.bin").stat().st_size >= layout.elements * layout.size


def _lengths_are_there(directory: Path, layout: _Layout) -> bool:
    return (directory / "length.bin").stat().st_size >= layout.elements * _LENGTH


def _lower_holds(directory: Path, layout: _Layout) -> bool:
    shape = layout.elements, layout.size
    records = np.memmap(directory / "data_level0.bin", dtype=np.uint8, mode="r", shape=shape)
    heads = np.ascontiguousarray(records[:, : _COUNT + layout.lower * _ID])
    counts = heads[:, :2].copy().view("<u2").ravel()
    neighbours = heads[:, _COUNT:].copy().view("<u4")
    return bool((counts <= layout.lower).all()) and _known(neighbours, counts, layout)


def _known(neighbours: NDArray[np.uint32], counts: NDArray[np.uint16], layout: _Layout) -> bool:
    named = np.arange(neighbours.shape[1]) < counts[:, np.newaxis]
    return bool((neighbours[named] < layout.room).all())


def _upper_holds(directory: Path, layout: _Layout) -> bool:
    lists, size = (directory / "link_lists.bin").read_bytes(), _COUNT + layout.upper * _ID
    at = 0
    for _ in range(layout.elements):
        length = int.from_bytes(lists[at : at + 4], "little")
        at += 4
        if length % size or at + length > len(lists):
            return False
        for start in range(at, at + length, size):
            count = int.from_bytes(lists[start : start + 2], "little")
            ids = np.frombuffer(lists, "<u4", min(count, layout.upper), start + _COUNT)
            if count > layout.upper or (ids >= layout.room).any():
                return False
        at += length
    return True


_CHECKS = (
    (_vectors_are_there, "its vectors are cut short"),
    (_lengths_are_there, "the lengths of its vectors are cut short"),
    (_lower_holds, "its graph points nowhere"),
    (_upper_holds, "its graph points nowhere"),
    (lambda directory, _: (directory / _NAMES).is_file(), "a file of it is missing"),
)
