"""The embedder and the language model, made from settings."""
