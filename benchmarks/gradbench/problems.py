"""All twelve."""

from benchmarks.gradbench import geometry, models, nested, sums

PROBLEMS = [*sums.PROBLEMS, *models.PROBLEMS, *geometry.PROBLEMS, *nested.PROBLEMS]
