"""How the score is read for one collection and its embedding model, kept beside the collection."""

from __future__ import annotations

from brain_pipeline.ask.calibrate import SAMPLE, dumps, loads, self_calibrate
from brain_pipeline.ask.score import Calibration, default_calibration
from brain_pipeline.brain.models import Models
from brain_pipeline.index.catalog import Catalog

_NOTE = "calibration"  # what it is kept under, beside the keyword index


def kept_calibration(catalog: Catalog) -> Calibration:
    """As the collection was calibrated for the model of the settings, else as shipped for it."""
    keywords, model = catalog.keywords(), catalog.settings.embed_model
    kept = loads(keywords.noted(_NOTE)) if keywords else None
    fits = kept is not None and keywords is not None and (kept.model, kept.stamp) == (model, keywords.stamp)
    return kept if kept is not None and fits else default_calibration(model)


def keep_calibration(catalog: Catalog, calibration: Calibration) -> None:
    """Keeps a calibration with the collection, for the questions to come."""
    if (keywords := catalog.keywords()) is not None:
        keywords.note(_NOTE, dumps(calibration))


def calibrate(catalog: Catalog, models: Models) -> Calibration:
    """Fits the score to the collection from its own mail, and keeps the result; see ``ask.calibrate``.

    Raises:
        BrainUnavailable: the embedding model or the database can't be used now.
    """
    keywords, model = catalog.keywords(), catalog.settings.embed_model
    start = default_calibration(model)
    if keywords is None:
        return start
    rows, vectors = catalog.store.sample(SAMPLE)
    calibration = self_calibrate(
        [row.text for row in rows],
        vectors,
        lambda questions: [models.embedder.get_query_embedding(question) for question in questions],
        start,
        model=model,
        stamp=keywords.stamp,
    )
    keep_calibration(catalog, calibration)
    return calibration


def calibrate_unknown_model(catalog: Catalog, models: Models) -> None:
    """Calibrates once there is mail enough to learn from, unless the model came with a calibration."""
    if not kept_calibration(catalog).model and catalog.store.count() >= SAMPLE:
        calibrate(catalog, models)
