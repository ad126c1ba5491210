"""The database copied to a Chroma server."""

from __future__ import annotations

from typing import Annotated

import typer

from brain_pipeline.cli.app import Environment, app, err, load_settings, out


@app.command()
def copy(
    to: Annotated[str, typer.Option(help="The Chroma server, as http://127.0.0.1:8001.")],
    environment: Environment = None,
) -> None:
    """Copy the embedded database to a Chroma server, checked; once more to finish a copy that was broken off."""
    from contextlib import closing

    from brain_pipeline.index.catalog import Catalog
    from brain_pipeline.index.copying import copy_collection, copy_rest
    from brain_pipeline.models.guard import require_household
    from brain_pipeline.progress import rows_bar

    target = load_settings(environment, chroma_url=to)
    require_household(target)
    embedded = target.model_copy(update={"chroma_url": None})
    with closing(Catalog(embedded)) as source, closing(Catalog(target)) as server, rows_bar(err, "copying") as show:
        rows = copy_collection(source.store, server.store, show)
        copy_rest(source, server)
    out.print(f"copied {rows} chunks, read back and compared, to {to}; set CHROMA_URL={to} to use them", markup=False)
