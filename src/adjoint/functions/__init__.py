"""The public functions over `Tensor`, by topic; the topics are the modules."""
