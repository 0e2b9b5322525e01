"""Parts of SciPy for functions that are differentiated: special, stats, linalg, signal and integrate.

They need SciPy: `pip install 'adjoint[scipy]'`.
"""

from adjoint.backends import needed

needed("scipy", "scipy")
