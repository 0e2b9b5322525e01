"""Pictures with Matplotlib: which entries of a Jacobian are zero, the curves of a training, a confusion matrix.

>>> import numpy as np
>>> import adjoint as ad
>>> import matplotlib
>>> matplotlib.use("agg")  # draws without a screen
>>> axes = ad.plot.spy(ad.jacobian(ad.diff)(np.ones(4)))
>>> axes.get_title()
'3 x 4, 6 nonzero'
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from adjoint import errors
from adjoint.functions.arguments import is_numeric, items
from adjoint.renamed import refusing
from adjoint.tensor import Tensor
from adjoint.train.run import History

__all__ = ["confusion", "history", "spy"]
globals()["__getattr__"] = refusing(__name__)  # unseen by type checkers, which refuse other names themselves

_WRITTEN = 30  # classes up to which a confusion matrix has numbers in it
_SMOOTH = 60  # points of a mean over steps
_DOTS = 1000  # rows or columns from which nonzero entries are dots, whatever their size


def __dir__() -> list[str]:
    return __all__


def _pyplot() -> Any:
    try:
        return importlib.import_module("matplotlib.pyplot")
    except ImportError as error:
        raise errors.MissingLibraryError("ad.plot needs Matplotlib: pip install 'adjoint[draw]'") from error


def _axes(ax: Any, name: str) -> Any:
    """The axes to draw on: those given, or new ones."""
    if ax is None:
        return _pyplot().subplots(layout="constrained")[1]
    if not hasattr(ax, "imshow"):
        raise errors.ArgumentTypeError(f"{name}: ax are axes of Matplotlib, received {errors.shown(ax)}")
    return ax


def spy(matrix: Any, /, *, ax: Any = None) -> Any:
    """The entries of a matrix that are not zero, coloured by their size on a logarithmic scale.

    For Jacobians and Hessians, dense ones and those of `ad.sparse_jacobian` and `ad.sparse_hessian`. A Jacobian of more
    axes is to be reshaped, to a row for each number of the result. From 1,000 rows or columns on entries are dots. nan
    and infinity count as large.

    Parameters
    ----------
    matrix
        Two axes: a tensor, an array, or a sparse matrix of SciPy.
    ax
        The Matplotlib axes to draw on; None makes a figure. They are what is returned.

    Raises
    ------
    ShapeError, ArgumentTypeError
        It has not two axes; it is no array of numbers, or `ax` are no axes.
    MissingLibraryError
        Matplotlib is not installed.

    Examples
    --------
    >>> import numpy as np
    >>> import adjoint as ad
    >>> import matplotlib
    >>> matplotlib.use("agg")  # draws without a screen
    >>> ad.plot.spy(ad.hessian(lambda x: (x[1:] * x[:-1]).sum())(np.ones(5))).get_title()
    '5 x 5, 8 nonzero'
    """
    sparse = hasattr(matrix, "tocoo")
    if not sparse and not is_numeric(matrix):
        raise errors.ArgumentTypeError(f"spy: expected a matrix of numbers, received {errors.shown(matrix)}")
    if len(matrix.shape) != 2:
        raise errors.ShapeError(
            f"spy: expected a matrix, received shape {tuple(matrix.shape)}; reshape a Jacobian to (numbers of the "
            "result, numbers of the argument)"
        )
    rows, columns = matrix.shape
    if sparse:
        triples = matrix.tocoo()
        i, j, values = triples.row, triples.col, np.asarray(triples.data)
    else:
        dense = matrix.detach().numpy() if isinstance(matrix, Tensor) else np.asarray(matrix)
        i, j = np.nonzero(dense)
        values = dense[i, j]
    kept = values != 0
    i, j, sizes = i[kept], j[kept], np.abs(values[kept]).astype(float)
    axes = _axes(ax, "spy")
    axes.set_title(f"{rows} x {columns}, {len(sizes):,} nonzero")
    if max(rows, columns) >= _DOTS:
        axes.plot(j, i, ",", color="#3b82f6")
    elif len(sizes):
        finite = sizes[np.isfinite(sizes)]
        low, high = (finite.min(), finite.max()) if len(finite) else (1.0, 1.0)
        image = np.full((rows, columns), np.nan)
        image[i, j] = np.log10(np.where(np.isfinite(sizes), sizes, high))
        drawn = axes.imshow(image, cmap="viridis", interpolation="nearest")
        if high > low:
            axes.figure.colorbar(drawn, ax=axes, label="log10 of the size", shrink=0.8)
    axes.set_xlim(-0.5, columns - 0.5)
    axes.set_ylim(rows - 0.5, -0.5)
    axes.set_aspect("equal")
    return axes


def history(record: History, /) -> Any:
    """The curves of a training: the loss, each metric, and the rate if it changes, of training and validation.

    The loss of single steps is drawn as it is and as a mean of neighbours; scales are logarithmic where that helps.
    Returns the Matplotlib figure.

    Raises
    ------
    ArgumentTypeError, ArgumentError
        It is no history, as `Learner.fit` gives; nothing is in it.
    MissingLibraryError
        Matplotlib is not installed.

    Examples
    --------
    >>> import adjoint as ad
    >>> import matplotlib
    >>> matplotlib.use("agg")  # draws without a screen
    >>> learner = ad.train.Learner(ad.nn.Linear(2, 1), ad.nn.mse_loss, ad.optim.SGD(lr=0.1))
    >>> model, history = learner.fit([(ad.ones((4, 2)), ad.ones((4, 1)))], epochs=3)
    >>> [axes.get_title() for axes in ad.plot.history(history).axes]
    ['loss']
    """
    from adjoint.train.charts import COLOURS, charts, means  # which brings libraries for pages

    if not isinstance(record, History):
        raise errors.ArgumentTypeError(f"history: expected what Learner.fit gives, received {errors.shown(record)}")
    drawn = charts(record.rows, record.steps)
    if not drawn:
        raise errors.ArgumentError("history: there is no epoch in it; call Learner.fit first")
    columns = min(3, len(drawn))
    rows = -(-len(drawn) // columns)
    figure, grid = _pyplot().subplots(
        rows, columns, figsize=(4.2 * columns, 3 * rows), squeeze=False, layout="constrained"
    )
    for axes, chart in zip(grid.flat, drawn, strict=False):
        for series, colour in zip(chart.series, COLOURS, strict=False):
            points = np.array(series.points)
            mark = "" if series.noisy or len(points) > _SMOOTH else "o"
            if series.noisy and len(points) > _SMOOTH:
                axes.plot(*points.T, color=colour, alpha=0.3, linewidth=1)
                points = np.array(means(series.points, _SMOOTH))
            axes.plot(*points.T, mark + "-", color=colour, label=series.name, markersize=3)
        axes.set_title(chart.title)
        axes.set_xlabel(chart.along)
        axes.set_yscale("log" if chart.log else "linear")
        if any(series.name for series in chart.series):
            axes.legend()
    for axes in grid.flat[len(drawn) :]:
        axes.remove()
    return figure


def confusion(matrix: Any, /, *, labels: Sequence[str] | None = None, ax: Any = None) -> Any:
    """A confusion matrix: rows are classes, columns what was predicted; colours are parts of a row.

    Parameters
    ----------
    matrix
        (classes, classes), as `ad.train.ConfusionMatrix` gives it: a NumPy array or a tensor.
    labels
        The names of the classes; their numbers for None.
    ax
        The Matplotlib axes to draw on; None makes a figure. They are what is returned.

    Raises
    ------
    ShapeError, ArgumentTypeError, ArgumentError
        The matrix is not square; it is no array of numbers, or `labels` are no names; there are not as many as classes.
    MissingLibraryError
        Matplotlib is not installed.

    Examples
    --------
    >>> import adjoint as ad
    >>> import matplotlib
    >>> matplotlib.use("agg")  # draws without a screen
    >>> matrix = ad.train.ConfusionMatrix().compute([0, 1, 1, 0], [0, 1, 0, 0])
    >>> [text.get_text() for text in ad.plot.confusion(matrix, labels=["cat", "dog"]).texts]
    ['2', '1', '0', '1']
    """
    if not is_numeric(matrix):
        raise errors.ArgumentTypeError(f"confusion: expected a matrix of numbers, received {errors.shown(matrix)}")
    counts = matrix.detach().numpy() if isinstance(matrix, Tensor) else np.asarray(matrix)
    if counts.ndim != 2 or counts.shape[0] != counts.shape[1]:
        raise errors.ShapeError(f"confusion: expected a row and a column for each class, received shape {counts.shape}")
    names = list(range(len(counts))) if labels is None else items(labels)
    if names is None:
        raise errors.ArgumentTypeError(f"confusion: labels are the names of classes, received {errors.shown(labels)}")
    if len(names) != len(counts):
        raise errors.ArgumentError(f"confusion: there are {len(counts)} classes and {len(names)} labels")
    whole = counts.sum(axis=1, keepdims=True)
    parts = np.divide(counts, whole, out=np.zeros(counts.shape), where=whole > 0)
    axes = _axes(ax, "confusion")
    axes.imshow(parts, cmap="Blues", vmin=0, vmax=1)
    axes.set_xlabel("predicted")
    axes.set_ylabel("class")
    if len(names) <= _WRITTEN:
        axes.set_xticks(range(len(names)), [str(name) for name in names], rotation=90 if len(names) > 10 else 0)
        axes.set_yticks(range(len(names)), [str(name) for name in names])
        for (row, column), count in np.ndenumerate(counts):
            colour = "white" if parts[row, column] > 0.5 else "black"
            axes.text(column, row, f"{count:.4g}", ha="center", va="center", color=colour, fontsize=8)
    return axes
