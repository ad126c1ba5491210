"""The embedder and the language model, made from settings.

LlamaIndex and the model runtimes are imported when a model is built, not before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from llama_index.core.base.embeddings.base import BaseEmbedding
    from llama_index.core.llms.llm import LLM

    from brain_pipeline.models.ollama import OllamaLLM
    from brain_pipeline.settings import Settings

# What goes before a question and before a document, from each model's card. Models not named here want nothing.
_PREFIXES = {
    "nomic-embed-text": ("search_query: ", "search_document: "),
}


def default_prefixes(model_name: str) -> tuple[str, str]:
    """The prefixes ``(query, document)`` that an embedding model was trained with, empty for most models.

    ``model_name`` is Ollama's name, with or without a tag.
    """
    return _PREFIXES.get(model_name.lower().partition(":")[0], ("", ""))


def build_embedder(settings: Settings, *, query_prefix: str = "", document_prefix: str = "") -> BaseEmbedding:
    """The embedding model that ``settings`` name; each prefix is put before a text exactly as it is given.

    An embedded model is loaded when it is first used, and what can go wrong with it goes wrong then.

    Raises:
        ConfigError: the server's address can't be used.
    """
    if settings.embed_provider == "embedded":
        from brain_pipeline.models.embedded import EmbeddedMiniLM  # noqa: PLC0415

        return EmbeddedMiniLM(
            settings.embed_model_path,
            query_prefix=query_prefix,
            document_prefix=document_prefix,
            embed_batch_size=settings.embed_batch_size,
        )
    from brain_pipeline.models.endpoint import Endpoint  # noqa: PLC0415
    from brain_pipeline.models.ollama import OllamaEmbedder  # noqa: PLC0415

    endpoint = Endpoint(
        settings.ollama_base_url,
        settings.embed_model,
        settings.embed_connect_timeout,
        settings.embed_read_timeout,
        settings.allow_public_hosts,
    )
    return OllamaEmbedder(
        endpoint,
        keep_alive=settings.embed_keep_alive,
        query_prefix=query_prefix,
        document_prefix=document_prefix,
        embed_batch_size=settings.embed_batch_size,
    )


def build_llm(settings: Settings) -> LLM | None:
    """The language model that ``settings`` name, or None for ``excerpts``, which needs none.

    With ``llm_fallback_url`` it is two servers; see ``fallback``.

    Raises:
        ConfigError: the server's address can't be used, or ``gguf`` is asked for and no file is named.
    """
    if settings.llm_provider == "excerpts":
        return None
    if settings.llm_provider == "gguf":
        from brain_pipeline.models.gguf import GgufLLM  # noqa: PLC0415

        return GgufLLM(
            settings.llm_model_path, context_window=settings.llm_context_window, max_tokens=settings.llm_max_tokens
        )
    first = _ollama_llm(settings, settings.llm_url, settings.llm_model)
    if settings.llm_fallback_url is None:
        return first
    from brain_pipeline.models.fallback import FallbackLLM  # noqa: PLC0415

    second = _ollama_llm(settings, settings.llm_fallback_url, settings.llm_fallback_model or settings.llm_model)
    return FallbackLLM(first, second)


def _ollama_llm(settings: Settings, url: str, model: str) -> OllamaLLM:
    from brain_pipeline.models.endpoint import Endpoint  # noqa: PLC0415
    from brain_pipeline.models.ollama import OllamaLLM  # noqa: PLC0415

    endpoint = Endpoint(
        url, model, settings.llm_connect_timeout, settings.llm_read_timeout, settings.allow_public_hosts
    )
    return OllamaLLM(
        endpoint,
        keep_alive=settings.llm_keep_alive,
        context_window=settings.llm_context_window,
        max_tokens=settings.llm_max_tokens,
    )
