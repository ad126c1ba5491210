"""The composition root: one object that holds the catalog and the models and answers questions."""

from brain_pipeline.brain.brain import Brain, open_brain

__all__ = ["Brain", "open_brain"]
