"""Which addresses behind links are worth reading."""

from __future__ import annotations

import re
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit, urlunsplit

_TRACKER_HOST = re.compile(
    r"^(?:clicks?|links?|lnks?|track(?:ing|er)?|trk|trx|go|email|e|r|t|url\d*|mailer|ctrk?|em|eml|info|news|mkt)\d*\."
    r"|(?:^|\.)(?:list-manage\d*\.com|sendgrid\.net|mandrillapp\.com|awstrack\.me|hubspotlinks\.com|exct\.net|rs6\.net"
    r"|safelinks\.protection\.outlook\.com|mailgun\.org|sparkpostmail\.com|createsend\d*\.com|cmail\d*\.com)$|clickthru"
)
_TRACKER_PATH = re.compile(
    r"/(?:ls/click|wf/click|track|click|cl0|redir(?:ect)?|e3t|ctr?|open|unsubscribe)\b|click\.\w+$", re.IGNORECASE
)
_TRACKING_PARAMETER = re.compile(
    r"utm_|mc_[ce]id|fbclid|gclid|msclkid|_hs|mkt_tok|trk|vero_|oly_|ref_?src|source$", re.IGNORECASE
)
_SHORT = 60
_LONG = 200


def readable_url(href: str) -> str:
    """``href`` as it is worth reading; empty when it leads nowhere or only tracks.

    Tracking parameters are dropped. ``mailto:`` and ``tel:`` give the bare address or number.
    """
    href = "".join(href.split())
    scheme, _, rest = href.partition(":")
    scheme = scheme.lower()
    if scheme in {"mailto", "tel"}:
        return unquote(rest.split("?", 1)[0], errors="replace")
    if scheme not in {"http", "https"}:
        return ""
    try:
        parts = urlsplit(href)
    except ValueError:
        return ""
    if not parts.netloc or _only_tracks(parts.hostname or "", parts.path, href):
        return ""
    query = parts.query
    if query:
        pairs = parse_qsl(query, keep_blank_values=True, max_num_fields=None)
        wanted = [(name, value) for name, value in pairs if not _TRACKING_PARAMETER.match(name)]
        query = query if len(wanted) == len(pairs) else urlencode(wanted)
    url = urlunsplit((parts.scheme, parts.netloc, parts.path, query, parts.fragment))
    if len(url) > _LONG:
        url = urlunsplit((parts.scheme, parts.netloc, parts.path, "", ""))
    return "" if len(url) > _LONG else url


def _only_tracks(host: str, path: str, href: str) -> bool:
    return len(href) > _SHORT and bool(_TRACKER_HOST.search(host.lower()) or _TRACKER_PATH.search(path))


def is_shown(url: str, text: str) -> bool:
    """Whether ``text`` says ``url`` already."""
    return _bare(url) in text.lower()


def _bare(url: str) -> str:
    return re.sub(r"^https?://(?:www\.)?", "", url.strip().lower()).rstrip("/")
