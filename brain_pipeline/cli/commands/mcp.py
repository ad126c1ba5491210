"""The brain as tools for an assistant on this machine."""

from __future__ import annotations

from brain_pipeline.cli.app import Environment, app, brain_of, load_settings


@app.command()
def mcp(environment: Environment = None) -> None:
    """Serve an assistant on this machine over standard input and output (MCP)."""
    from brain_pipeline.mcp_server import build_server

    settings = load_settings(environment)
    build_server(lambda: brain_of(settings)).run("stdio")
