"""Benchmarks: the brain against the floor and against what people would use instead, all on one machine in one run."""
