"""`logsumexp`, where old versions of SciPy had it."""

from adjoint.autograd.scipy.special import logsumexp  # pyright: ignore[reportAttributeAccessIssue]

__all__ = ["logsumexp"]
