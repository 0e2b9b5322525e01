"""The constants among the public names."""

e = 2.718281828459045
inf = float("inf")
nan = float("nan")
newaxis = None
pi = 3.141592653589793
__array_api_version__ = "2025.12"
__version__ = "0.1.0"
