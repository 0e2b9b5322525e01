"""Metrics over batches, each equal to that of all examples at once."""
