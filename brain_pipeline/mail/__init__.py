"""Reading mail: bytes in, records out."""
