"""``python -m brain_pipeline.cli``, where the installed command is not on the path."""

from brain_pipeline.cli import main

main()
