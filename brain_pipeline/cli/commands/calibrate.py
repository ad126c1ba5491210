"""Fit the score to a collection."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from brain_pipeline.cli.app import Environment, app, load_settings, out


@app.command()
def calibrate(
    sets: Annotated[
        list[Path] | None, typer.Argument(help="JSONL files of questions; without, the mail itself.")
    ] = None,
    environment: Environment = None,
) -> None:
    """Fit the score to the collection, from its own mail or from labelled questions."""
    from brain_pipeline.brain import open_brain
    from brain_pipeline.evaluate import read_questions
    from brain_pipeline.trial import calibrate as calibrate_by

    with open_brain(load_settings(environment)) as brain:
        if sets:
            found = calibrate_by(brain, [question for path in sets for question in read_questions(path)])
        else:
            found = brain.calibrate()
    out.print(
        f"calibrated for {found.model}: weights {[round(w, 2) for w in found.weights]}, bias {found.bias:.2f}, "
        f"unrelated cosine {found.cosine_mean:.2f} ± {found.cosine_spread:.2f}",
        markup=False,
    )
