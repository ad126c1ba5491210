"""An iCalendar invitation as a person reads it."""

from __future__ import annotations

import re

_FOLD = re.compile(r"\r?\n[ \t]")
_PROPERTY = re.compile(r'([A-Za-z-]+)((?:;[^:;"]*(?:"[^"]*")?)*):(.*)')
_TZID = re.compile(r'TZID="?([^";:]+)', re.IGNORECASE)
_MOMENT = re.compile(r"(\d{4})(\d\d)(\d\d)(?:T(\d\d)(\d\d)\d{0,2}(Z)?)?")
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_LABELS = {
    "SUMMARY": "",
    "DTSTART": "When: ",
    "DTEND": "Until: ",
    "DUE": "Due: ",
    "RRULE": "Repeats: ",
    "LOCATION": "Where: ",
    "ORGANIZER": "Organizer: ",
    "STATUS": "Status: ",
    "COMMENT": "",
    "DESCRIPTION": "",
}
_COMPONENTS = frozenset({"VEVENT", "VTODO", "VJOURNAL"})


def calendar_text(ics: str) -> str:
    """The events and tasks of iCalendar text (RFC 5545), one paragraph each, with what people ask for.

    Lines that are no properties are passed over. Times stay in the sender's zone, which is named.
    """
    events: list[list[str]] = []
    inside: list[str] = []
    for line in _FOLD.sub("", ics).splitlines():
        found = _PROPERTY.match(line)
        if not found:
            continue
        name, params, value = found[1].upper(), found[2], found[3].strip()
        if name == "BEGIN":
            inside.append(value.upper())
            if value.upper() in _COMPONENTS:
                events.append([])
        elif name == "END" and inside:
            inside.pop()
        elif inside and inside[-1] in _COMPONENTS and name in _LABELS and value:
            events[-1].append(_LABELS[name] + _readable(name, params, value))
    return "\n\n".join("\n".join(lines) for lines in events if lines)


def _readable(name: str, params: str, value: str) -> str:
    if name in {"DTSTART", "DTEND", "DUE"} and (moment := _MOMENT.fullmatch(value)):
        year, month, day, hour, minute, utc = moment.groups()
        zone = _TZID.search(params)
        suffix = " UTC" if utc else f" ({zone[1]})" if zone and hour else ""
        return f"{year}-{month}-{day}" + (f" {hour}:{minute}{suffix}" if hour else "")
    if name == "ORGANIZER":
        return re.sub(r"^mailto:", "", value, flags=re.IGNORECASE)
    return _ESCAPE.sub(lambda escaped: "\n" if escaped[1] in "nN" else escaped[1], value)
