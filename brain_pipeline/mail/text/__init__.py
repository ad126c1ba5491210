"""Text as a person reads it: pure functions from text to text."""

from __future__ import annotations

from brain_pipeline.mail.text.boilerplate import has_unsubscribe_line, strip_boilerplate
from brain_pipeline.mail.text.cleaning import clean, one_line, visible
from brain_pipeline.mail.text.html import html_title, html_to_text, looks_like_html
from brain_pipeline.mail.text.plain import strip_enriched, unflow
from brain_pipeline.mail.text.quoted import split_quoted

__all__ = [
    "clean",
    "has_unsubscribe_line",
    "html_title",
    "html_to_text",
    "looks_like_html",
    "one_line",
    "split_quoted",
    "strip_boilerplate",
    "strip_enriched",
    "unflow",
    "visible",
]
