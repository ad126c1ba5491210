"""The errors of Family Brain: one tree.

::

    BrainError                     anything this project raises on purpose
    ├── ConfigError                a setting is missing, malformed or refused
    ├── InvalidRequest             the caller sent something unusable (HTTP 422)
    ├── MailError                  a message or mailbox can't be read
    └── BrainUnavailable           try again later (HTTP 503)
        ├── ModelError             a model server or an embedded model failed
        │   ├── ModelUnreachable   nothing answers at its address in time
        │   ├── ModelMissing       the server does not have the model
        │   ├── ModelOverloaded    the server, or our queue for it, is full
        │   ├── ModelTimeout       it accepted the request and did not finish in time
        │   └── ModelBadResponse   it answered with something unusable
        └── StoreError             the database can't be used
            ├── StoreLocked        another process owns it
            └── DimensionMismatch  the question's vectors and the collection's differ in length

Every message is one or two sentences for the person who reads it: what happened, and what to do next. It never holds
mail text. The foreign exception that caused it is kept as ``__cause__``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from brain_pipeline.records import Source


class BrainError(Exception):
    """Anything this project raises on purpose."""


class ConfigError(BrainError):
    """A setting is missing, malformed or refused."""


class InvalidRequest(BrainError):
    """The caller sent something unusable; the message says what to send."""


class MailError(BrainError):
    """A message or mailbox can't be read."""


class BrainUnavailable(BrainError):
    """The question can't be answered now; trying again later may help.

    ``retry_after`` is the number of seconds after which a client may try again. ``sources`` are the records that
    retrieval had found before the failure, empty when it failed first.
    """

    retry_after: int = 15
    sources: tuple[Source, ...] = ()


class ModelError(BrainUnavailable):
    """A model server or an embedded model failed."""


class ModelUnreachable(ModelError):
    """Nothing answers at the model server's address in time."""


class ModelMissing(ModelError):
    """The server does not have the model."""


class ModelOverloaded(ModelError):
    """The model server, or the queue in front of it, is full."""


class ModelTimeout(ModelError):
    """The server accepted the request and did not finish in time."""


class ModelBadResponse(ModelError):
    """The server answered with something unusable."""


class StoreError(BrainUnavailable):
    """The database can't be used."""


class StoreLocked(StoreError):
    """Another process owns the database.

    ``owner`` is what the lock says of it, for a caller that can hand its work over; see ``index.ownership.Owner``.
    """

    def __init__(self, message: str, owner: object = None) -> None:
        super().__init__(message)
        self.owner = owner


class DimensionMismatch(StoreError):
    """The embedding model's vectors and the collection's differ in length."""
