"""The page that the family uses; it works with scripts off too, then without streaming."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, FastAPI, Query, Request, Response
from fastapi.responses import HTMLResponse
from fastapi.staticfiles import StaticFiles
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from api.routes import CLIENT_CLOSED_REQUEST, TheBrain, status_of, unless_hung_up
from brain_pipeline.errors import BrainError, BrainUnavailable

HERE = Path(__file__).parent
# Nothing but our own files, and no markup made by scripts: a mail's text can't become anything else.
CONTENT_SECURITY_POLICY = "; ".join(
    [
        "default-src 'none'",
        *(f"{kind}-src 'self'" for kind in ("script", "style", "img", "connect")),
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    ]
)

KINDS = {"all": "Everything", "email": "Emails", "newsletter": "Newsletters", "calendar": "Calendar"}

_page = Environment(
    loader=FileSystemLoader(HERE / "templates"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
).get_template("page.html")

router = APIRouter(include_in_schema=False)
Question = Annotated[str, Query(alias="q")]


def add_page(app: FastAPI) -> None:
    """Adds the page at ``/``, what it loads, and the answers for browsers that run no scripts."""
    app.include_router(router)
    app.mount("/static", StaticFiles(directory=HERE / "static"), name="static")


def _rendered(question: str, kind: str, state: str = "idle", status: int = 200, **shown: Any) -> HTMLResponse:
    known = kind if kind in KINDS else "all"
    context = {"answer": None, "sources": (), "refusal": "", **shown}
    html = _page.render(q=question, kind=known, kinds=KINDS, state=state, **context)
    return HTMLResponse(html, status, {"Content-Security-Policy": CONTENT_SECURITY_POLICY})


@router.head("/")
@router.get("/")
def page(q: Question = "", source: str = "all") -> HTMLResponse:
    """The page, with a question in its box when the link holds one."""
    return _rendered(q, source)


@router.get("/answer")
async def answer(request: Request, brain: TheBrain, q: Question = "", source: str = "all") -> Response:
    """The page with the answer in it, for browsers that run no scripts."""
    try:
        found = await unless_hung_up(request, brain.aquery(q, source=source))
    except BrainUnavailable as error:
        shown = _rendered(q, source, "unavailable", status_of(error), sources=error.sources)
        shown.headers["Retry-After"] = str(error.retry_after)
        return shown
    except BrainError as error:
        return _rendered(q, source, "refused", status_of(error), refusal=str(error))
    if found is None:
        return Response(status_code=CLIENT_CLOSED_REQUEST)
    return _rendered(q, source, "done" if found.sources else "abstained", answer=found, sources=found.sources)
