"""Which format a file of mail has: by its name where that says it, else by its first bytes."""

from __future__ import annotations

from pathlib import PurePath
from typing import Literal

from brain_pipeline.mail.headers import read_block
from brain_pipeline.mail.text import looks_like_html

Format = Literal["message", "emlx", "mbox", "zip", "html"]

HEAD_BYTES = 4_096
_ZIP = (b"PK\x03\x04", b"PK\x05\x06")
_FRAMED: dict[str, Format] = {".emlx": "emlx", ".mbox": "mbox", ".mbx": "mbox", ".zip": "zip"}
_MAILDIR_FOLDERS = frozenset({"cur", "new"})


def format_of(name: str, head: bytes) -> Format | None:
    """The format of the file ``name`` that begins with ``head``; None when it is no mail.

    An ``.eml`` file is one message whatever is in it. The other suffixes of mail are believed if the bytes agree.
    """
    suffix = PurePath(name).suffix.lower()
    found = _sniff(head)
    if suffix == ".eml":
        return "message"
    if suffix in _FRAMED:
        return found if found == _FRAMED[suffix] else "message"
    return found


def format_in_folder(name: str, head: bytes) -> Format | None:
    """The format of a file found in a folder or an archive, where most files need not be mail.

    A name that ends as mail does is believed, and so is a Maildir's folder. Other files count as mail only when their
    names say nothing at all, as in MH folders and Thunderbird's, and their bytes do.
    """
    path = PurePath(name)
    if path.parent.name in _MAILDIR_FOLDERS:
        return "message"
    suffix = path.suffix.lower()
    found = format_of(name, head)
    if suffix in _FRAMED or suffix == ".eml":
        return found
    nameless = not suffix or path.name.isdigit()
    return found if nameless and found in {"mbox", "message"} else None


def _sniff(head: bytes) -> Format | None:
    if head.startswith(_ZIP):
        return "zip"
    start = head.removeprefix(b"\xef\xbb\xbf").lstrip(b"\r\n")
    if start.startswith(b"From "):
        return "mbox"
    first, _, rest = start.partition(b"\n")
    if first.strip().isdigit() and _has_header(rest):
        return "emlx"
    if head.startswith((b"\xff\xfe", b"\xfe\xff")) or _has_header(start):
        return "message"
    return "html" if looks_like_html(start.decode("latin-1")) else None


def _has_header(data: bytes) -> bool:
    return bool(read_block(data.replace(b"\r", b"\n") if b"\n" not in data else data, 0, lambda _: None)[0])
