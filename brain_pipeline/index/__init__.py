"""What is stored: chunks, the Chroma collection, and how mail gets in."""
