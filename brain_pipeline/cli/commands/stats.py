"""What the brain holds."""

from __future__ import annotations

from brain_pipeline.cli.app import Environment, app, brain_of, load_settings, out


@app.command()
def stats(environment: Environment = None) -> None:
    """What the brain holds."""
    with brain_of(load_settings(environment)) as brain:
        held = brain.stats()
    out.print(f"{held.total_documents} emails in {held.total_chunks} chunks", markup=False)
    out.print(f"collection {held.collection} in {held.db_path}", markup=False)
    out.print(f"last ingest {held.last_ingest.isoformat() if held.last_ingest else 'never'}", markup=False)
