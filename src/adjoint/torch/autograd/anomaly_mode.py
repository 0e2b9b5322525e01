"""`torch.autograd.detect_anomaly`: where the operation was that fails in backward, and gradients that are nan."""

from __future__ import annotations

import warnings

from adjoint.torch import state


class detect_anomaly:
    """A block in which an error in backward comes with the place of the operation, and a nan is an error.

    >>> import adjoint.torch as torch
    >>> torch.is_anomaly_enabled()
    False
    """

    def __init__(self, check_nan: bool = True) -> None:
        self._on, self._before = (True, check_nan), state.anomaly
        warnings.warn(
            "Anomaly Detection has been enabled. This mode will increase the runtime and should only be enabled for "
            "debugging.",
            stacklevel=2,
        )

    def __enter__(self) -> None:
        state.set_anomaly(*self._on)

    def __exit__(self, *_: object) -> None:
        state.set_anomaly(*self._before)


class set_detect_anomaly:
    """Detect anomalies or not: from now on, or inside of a `with` block."""

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        self._before = state.anomaly
        state.set_anomaly(mode, check_nan)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        state.set_anomaly(*self._before)
