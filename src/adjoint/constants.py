"""The constants among the public names."""

e: float = 2.718281828459045
inf: float = float("inf")
nan: float = float("nan")
newaxis: None = None
pi: float = 3.141592653589793
__array_api_version__: str = "2025.12"
__version__ = "0.1.0"
