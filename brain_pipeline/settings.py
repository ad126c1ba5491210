"""One frozen settings object, made by entry points and passed down."""

from __future__ import annotations

import os
import re
from datetime import datetime, tzinfo
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

from dateutil import tz
from platformdirs import user_data_path
from pydantic import Field, SecretStr, ValidationError, field_validator
from pydantic_settings import BaseSettings, NoDecode, PydanticBaseSettingsSource, SettingsConfigDict
from pydantic_settings.sources import TomlConfigSettingsSource

from brain_pipeline.errors import ConfigError

Seconds = Annotated[float, Field(gt=0)]

_BILLIONS = re.compile(r"[:-](\d+(?:\.\d+)?)([bm])\b")  # in a model's name, as qwen2.5-coder:0.5b and smollm2:135m
_LARGE = 3.0  # billions of parameters from which a model tells by itself what matters

_PACKAGED_CONFIGS = Path(__file__).with_name("configs")
_CHECKOUT_CONFIGS = Path(__file__).parents[1] / "configs"


def moment(text: str) -> datetime:
    """A moment in ISO 8601, naive when it names no zone.

    Raises:
        ValueError: it is none.
    """
    try:
        return datetime.fromisoformat(text.strip())
    except ValueError as error:
        raise ValueError(f"{text!r} is no moment; write one as 2026-01-09T08:00 or 2026-01-09T08:00+01:00") from error


def config_directory() -> Path:
    """The folder of ``<environment>.toml`` files: ``BRAIN_CONFIG_DIR``, else the packaged one, else the checkout's."""
    if named := os.environ.get("BRAIN_CONFIG_DIR"):
        return Path(named)
    return _PACKAGED_CONFIGS if _PACKAGED_CONFIGS.is_dir() else _CHECKOUT_CONFIGS


class Settings(BaseSettings):
    """Every setting, its default and its meaning.

    Environment variables win over ``configs/<environment>.toml``, which wins over the defaults here. A field is read
    from the environment as ``BRAIN_<FIELD>``; the few with another name say so.
    """

    model_config = SettingsConfigDict(
        env_prefix="BRAIN_",
        env_ignore_empty=True,
        frozen=True,
        extra="forbid",
        populate_by_name=True,
        hide_input_in_errors=True,  # a value may be a secret
    )

    environment: str = Field(
        "staging", validation_alias="BRAIN_ENV", pattern=r"^[\w-]+$", description="which `configs/<name>.toml` to read"
    )

    # Where the mail is kept.
    data_dir: Path = Field(
        default_factory=lambda: user_data_path("family-brain"),
        description="where databases are kept when `CHROMA_DB_PATH` does not say otherwise",
    )
    chroma_db_path: Path | None = Field(
        None,
        validation_alias="CHROMA_DB_PATH",
        description="the embedded Chroma database; default `<data_dir>/<environment>/chroma`",
    )
    chroma_url: str | None = Field(
        None, validation_alias="CHROMA_URL", description="a Chroma server to use instead of the embedded database"
    )
    chroma_timeout: Seconds = Field(20.0, description="seconds to wait for an answer of the Chroma server")
    collection: str = Field("family_knowledge", description="the Chroma collection")
    metadata_aliases: dict[str, list[str]] = Field(
        default_factory=dict,
        description="more names of metadata keys in collections that others wrote, as `{subject = ['betreff']}`",
    )
    newsletter_senders: Annotated[tuple[str, ...], NoDecode] = Field(
        (), description="addresses and domains whose mail is a newsletter, separated by commas"
    )
    email_senders: Annotated[tuple[str, ...], NoDecode] = Field(
        (), description="addresses and domains whose mail is never a newsletter, separated by commas"
    )
    timezone: str | None = Field(
        None, description="the household's zone, as `Europe/Berlin`, for dates without one; default the machine's"
    )

    # The family's calendar.
    calendars: Annotated[tuple[Path, ...], NoDecode] = Field(
        (), description="calendars as `.ics` files and folders of them, separated by commas; the extra `calendar`"
    )
    week_start: Literal["monday", "sunday", "saturday"] = Field("monday", description="the day on which weeks begin")
    now: datetime | None = Field(
        None, description="the present moment, as `2026-01-09T08:00`, for trying things out; default the clock's"
    )

    # The family's members.
    members: dict[str, list[str]] = Field(
        default_factory=dict, description="the family's members with their other names, as `{Sullivan = ['Sully']}`"
    )

    # The embedding model.
    embed_provider: Literal["ollama", "embedded"] = Field(
        "ollama", description="`ollama`, or `embedded`: all-MiniLM-L6-v2 in this process"
    )
    ollama_base_url: str = Field(
        "http://127.0.0.1:11434", validation_alias="OLLAMA_BASE_URL", description="the embedding server"
    )
    embed_model: str = Field(
        "nomic-embed-text", validation_alias="OLLAMA_EMBED_MODEL", description="the embedding model's name"
    )
    embed_model_path: Path | None = Field(
        None, description="an `all-MiniLM-L6-v2` ONNX file to use instead of the packaged one (`embedded` only)"
    )
    embed_query_prefix: str | None = Field(
        None, description="put before a question; default as the collection was written, else as suits the model"
    )
    embed_document_prefix: str | None = Field(
        None, description="put before a chunk; default as the collection was written, else as suits the model"
    )
    embed_connect_timeout: Seconds = Field(3.0, description="seconds to wait for a connection to the embedding server")
    embed_read_timeout: Seconds = Field(20.0, description="seconds to wait for its answer")
    embed_keep_alive: str = Field("60m", description="how long Ollama keeps the embedding model loaded")
    embed_batch_size: int = Field(32, ge=1, le=2048, description="chunks embedded per request")

    # The language model.
    llm_provider: Literal["ollama", "gguf", "excerpts"] = Field(
        "ollama",
        description="`ollama`, `gguf` (a model file in this process) or `excerpts` (quotes the mail, no model)",
    )
    llm_url: str = Field(
        "http://127.0.0.1:11434", validation_alias="LLM_URL", description="the language model's server"
    )
    llm_model: str = Field("qwen2.5-coder:7b", validation_alias="LLM_MODEL", description="the language model's name")
    llm_model_path: Path | None = Field(None, description="the GGUF file of `llm_provider = gguf`")
    llm_connect_timeout: Seconds = Field(3.0, description="seconds to wait for a connection to the LLM server")
    llm_read_timeout: Seconds = Field(90.0, description="seconds to wait for its answer")
    llm_keep_alive: str = Field("60m", description="how long Ollama keeps the language model loaded")
    llm_context_window: int = Field(8192, ge=1024, description="tokens of context asked of the language model")
    llm_max_tokens: int = Field(400, ge=16, description="tokens an answer may have at most")
    llm_concurrency: int = Field(2, ge=1, description="questions that the language model works on at once")
    llm_queue: int = Field(16, ge=0, description="questions that may wait for it; more are told to try again later")
    llm_fallback_url: str | None = Field(
        None, description="a second Ollama server, asked when the first is unreachable or overloaded"
    )
    llm_fallback_model: str | None = Field(None, description="its language model; default the first server's")

    # Asking.
    context_chunks: int = Field(3, ge=1, le=10, description="sources an answer may have at most")
    quote_with_answers: bool | None = Field(
        None,
        description="whether an answer that leaves out a day, a time or an amount is followed by the mail's own words;"
        " default for language models below 3 billion parameters, by their name",
    )
    question_cache: int = Field(
        0,
        ge=0,
        description="questions whose vectors and answers are kept in memory, for the same day and mail; 0 for none",
    )
    request_timeout: Seconds = Field(120.0, description="seconds one question may take in all")

    # Serving.
    host: str = Field("127.0.0.1", description="address the HTTP service listens on")
    port: int = Field(8000, ge=0, le=65535, description="port the HTTP service listens on")
    allow_public_hosts: Annotated[tuple[str, ...], NoDecode] = Field(
        (), description="model hosts outside the household that are allowed all the same, separated by commas"
    )
    allowed_hosts: Annotated[tuple[str, ...], NoDecode] = Field(
        (), description="more names that the service may be called by, as `brain.lan`, separated by commas"
    )
    api_token: SecretStr | None = Field(
        None,
        min_length=16,
        description="what callers send as `Authorization: Bearer`; needed to listen on anything but loopback",
    )
    upload_limit: int = Field(200_000_000, ge=1, description="bytes one request may send at most")
    warm_up: bool = Field(True, description="whether the service loads both models when it starts")
    log_level: Literal["debug", "info", "warning", "error"] = Field("info", description="how much is logged")

    @field_validator(
        "allow_public_hosts", "allowed_hosts", "newsletter_senders", "email_senders", "calendars", mode="before"
    )
    @classmethod
    def _split(cls, value: object) -> object:
        return tuple(part.strip() for part in value.split(",") if part.strip()) if isinstance(value, str) else value

    @field_validator("ollama_base_url", "llm_url", "llm_fallback_url", "chroma_url")
    @classmethod
    def _without_password(cls, value: str | None) -> str | None:
        if value is not None and "@" in value.rpartition("://")[2].partition("/")[0]:
            raise ValueError("an address holds no user name or password here; it would stand in logs and messages")
        return value

    @field_validator("chroma_url")
    @classmethod
    def _whole_url(cls, value: str | None) -> str | None:
        if value is not None:
            address = urlsplit(value)
            if address.scheme not in {"http", "https"} or not address.hostname or address.path.strip("/"):
                raise ValueError("a Chroma server's address looks like http://127.0.0.1:8000")
            _ = address.port  # a ValueError when it is no port
        return value

    @field_validator("timezone")
    @classmethod
    def _known_zone(cls, value: str | None) -> str | None:
        try:
            return value and ZoneInfo(value).key
        except (LookupError, ValueError, OSError) as error:
            raise ValueError(f"no time zone is called {value!r}; names look like Europe/Berlin") from error

    @field_validator("now", mode="before")
    @classmethod
    def _iso_moment(cls, value: object) -> object:
        return moment(value) if isinstance(value, str) else value

    @field_validator("calendars")
    @classmethod
    def _expand_homes(cls, value: tuple[Path, ...]) -> tuple[Path, ...]:
        return tuple(path.expanduser() for path in value)

    @field_validator("chroma_db_path", "data_dir", "embed_model_path", "llm_model_path")
    @classmethod
    def _expand_home(cls, value: Path | None) -> Path | None:
        return value.expanduser() if value is not None else None

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003  (the base class's signature)
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Where values come from, first to last: arguments, environment, the environment's TOML file."""
        given = init_settings()
        environment = given.get("BRAIN_ENV") or given.get("environment") or os.environ.get("BRAIN_ENV") or "staging"
        file = config_directory() / f"{environment}.toml"
        if not file.is_file():
            known = ", ".join(sorted(path.stem for path in file.parent.glob("*.toml"))) or "none"
            raise ConfigError(
                f"BRAIN_ENV names {environment!r}, but {file} does not exist. Known environments: {known}."
            )
        return init_settings, env_settings, TomlConfigSettingsSource(settings_cls, file)

    @classmethod
    def load(cls, **overrides: Any) -> Self:
        """The settings of the environment; ``overrides`` win over everything.

        Raises:
            ConfigError: a value is malformed, a key is unknown or the environment has no file.
        """
        try:
            return cls(**overrides)
        except ValidationError as error:
            problems = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
            raise ConfigError(f"The settings can't be used: {problems}.") from error
        except ValueError as error:
            raise ConfigError(f"The settings can't be read: {error}.") from error

    @property
    def db_path(self) -> Path:
        """Where the embedded database is, or would be."""
        return self.chroma_db_path or self.data_dir / self.environment / "chroma"

    @property
    def quotes_with_answers(self) -> bool:
        """Whether what a short answer leaves out is quoted."""
        if self.quote_with_answers is not None:
            return self.quote_with_answers
        size = _BILLIONS.search(self.llm_model.casefold())
        return size is not None and float(size[1]) * (0.001 if size[2] == "m" else 1) < _LARGE

    @property
    def zone(self) -> tzinfo:
        """The household's time zone."""
        return ZoneInfo(self.timezone) if self.timezone else tz.tzlocal()

    def local(self, moment: datetime) -> datetime:
        """A moment in the household's zone; a naive one is taken to be in it already."""
        return moment.astimezone(self.zone) if moment.tzinfo else moment.replace(tzinfo=self.zone)

    def present(self) -> datetime:
        """The household's local time: ``now`` when it is set, else the clock's."""
        return datetime.now(self.zone) if self.now is None else self.local(self.now)
