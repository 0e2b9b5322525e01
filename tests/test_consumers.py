"""Libraries on tensors, with gradients: what docs/consumers.md says works does."""

from __future__ import annotations

import importlib.util
import json
import os
from pathlib import Path

import processes
import pytest

TESTS = Path(__file__).resolve().parent
pytestmark = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("scipy", "sklearn", "einops", "opt_einsum")),
    reason="needs the libraries that run on tensors: pip install 'adjoint[test]'",
)

# what must have right gradients with any versions that the project supports
CORE = {
    "scipy.special": "erf expit gammaln digamma logsumexp xlogy",
    "scipy.stats": "skew kurtosis zscore gmean moment quantile",
    "scipy.integrate": "trapezoid cumulative_simpson",
    "scipy.differentiate": "derivative jacobian",
    "sklearn.metrics.pairwise": "euclidean_distances rbf_kernel cosine_similarity",
    "sklearn.preprocessing": "MinMaxScaler Normalizer",
    "sklearn.decomposition": "PCA.explained_variance_",
    "sklearn.linear_model": "Ridge.coef_",
    "einops.array_api": "rearrange reduce repeat",
    'opt_einsum (backend="numpy")': "contract",
}


@pytest.mark.slow
def test_what_works_is_what_the_page_says() -> None:
    code = "import consumers, json; f = consumers.outcomes(); print(json.dumps([f, consumers.table(f)]))"
    env = os.environ | {"SCIPY_ARRAY_API": "1"}
    ran = processes.python(code, cwd=TESTS, env=env)
    found, table = json.loads(ran.stdout)
    for topic, names in CORE.items():
        assert {name: found[topic][name] for name in names.split()} == dict.fromkeys(names.split(), "gradient")
    page = (TESTS.parent / "docs" / "consumers.md").read_text()
    if table.splitlines()[-1] in page:  # with the same versions, the whole table
        assert table in page, "run python tests/consumers.py --write"
