"""The ``winmail.dat`` that Outlook wraps a whole message in (TNEF)."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from brain_pipeline.mail.charset import decode
from brain_pipeline.mail.text import clean, html_to_text


@dataclass(frozen=True, slots=True)
class Unwrapped:
    """A TNEF wrapper's own text and its ``(name, content)`` files; ``note`` says why it could not be opened."""

    text: str = ""
    files: tuple[tuple[str, bytes], ...] = ()
    note: str = ""


def unwrap(content: bytes) -> Unwrapped:
    """What is in a TNEF attachment, as far as the ``tnef`` extra is installed and the data is sound. Never raises."""
    try:
        from tnefparse import TNEF  # type: ignore[import-untyped]  # noqa: PLC0415  (an extra)
    except ImportError:
        return Unwrapped(note="winmail.dat can't be opened; install family-brain[tnef]")
    logging.getLogger("tnefparse").setLevel(logging.CRITICAL)
    try:
        tnef = TNEF(content, do_checksum=False)
        files = tuple((_text(file.long_filename() or file.name), bytes(file.data or b"")) for file in tnef.attachments)
        return Unwrapped(_body(tnef), files)
    except Exception as error:  # noqa: BLE001  (compressed-rtf raises Exception itself, tnefparse whatever it stumbles on)
        return Unwrapped(note=f"winmail.dat is damaged ({type(error).__name__})")


def _body(tnef: object) -> str:
    html = getattr(tnef, "htmlbody", None)
    if html:
        return html_to_text(_text(html))
    plain = getattr(tnef, "body", None)
    if plain:
        return clean(_text(plain))
    rtf = getattr(tnef, "rtfbody", None)
    return _rtf_text(_text(rtf)) if rtf else ""


def _rtf_text(rtf: str) -> str:
    from striprtf.striprtf import rtf_to_text  # noqa: PLC0415  (an extra)

    return clean(rtf_to_text(rtf, errors="replace"))  # type: ignore[no-untyped-call]


def _text(value: bytes | str) -> str:
    return value if isinstance(value, str) else decode(value)
