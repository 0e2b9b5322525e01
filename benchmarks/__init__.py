"""Ours against PyTorch, JAX and HIPS autograd: `python -m benchmarks`."""
