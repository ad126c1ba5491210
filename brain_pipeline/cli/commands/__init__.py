"""One module for each command; a module that is put here is found."""
