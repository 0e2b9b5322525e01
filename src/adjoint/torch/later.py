"""Functions that fewer programs use: the module of one is imported when it is first asked for."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from adjoint.methods import modules_of
from adjoint.torch.operators import FUNCTIONS, METHODS
from adjoint.torch.tensor import Tensor

# A name with "-" in front is no method of tensors, one with "." is that alone.
TABLE = {
    "statistics": (
        "-bucketize -cdist corrcoef cov cummax cummin -cumulative_trapezoid -gradient histc histogram -isin mode "
        "msort nanmedian nanquantile quantile renorm .renorm_ -trapezoid -trapz unique_consecutive"
    ),
    "placing": (
        "as_strided_scatter -atleast_1d -atleast_2d -atleast_3d -block_diag -cartesian_prod -combinations "
        "diag_embed diagflat diagonal_scatter dsplit -fill .fill_diagonal_ hsplit index_reduce .index_reduce_ put "
        ".put_ -range scatter_reduce .scatter_reduce_ select_scatter slice_scatter .squeeze_ .sum_to_size "
        ".swapaxes_ .swapdims_ .t_ .transpose_ -tril_indices -triu_indices -unravel_index .unsqueeze_ -vander "
        "-view_as_complex -view_as_real vsplit"
    ),
    "copies": (
        "-alias_copy -as_strided_copy -detach_copy -diagonal_copy -expand_copy narrow_copy -permute_copy -select_copy "
        "-slice_copy -split_copy -split_with_sizes_copy -squeeze_copy -t_copy -transpose_copy -unbind_copy "
        "-unfold_copy -unsqueeze_copy -view_as_complex_copy -view_as_real_copy -view_copy"
    ),
    "exchange": ".__dlpack__ .__dlpack_device__ -from_dlpack -frombuffer -to_dlpack",
    "resizing": ("-empty_permuted -empty_strided .as_strided_ .new_empty_strided .resize_ .resize_as_ .set_"),
    "matrices": (
        "-chain_matmul cholesky cholesky_inverse cholesky_solve cross det inner inverse logdet lu lu_solve "
        "-lu_unpack matrix_exp matrix_power norm orgqr -pca_lowrank pinverse qr slogdet svd -svd_lowrank"
    ),
    "special": (
        "float_power .float_power_ frexp igamma .igamma_ igammac .igammac_ ldexp .ldexp_ mvlgamma .mvlgamma_ "
        "polygamma .polygamma_"
    ),
    "older": (
        ".apply_ .as_subclass .eig .hardshrink .lstsq .map_ .map2_ nonzero_static .prelu .reinforce .resize "
        ".resize_as .solve split_with_sizes .symeig triangular_solve unsafe_chunk unsafe_split unsafe_split_with_sizes"
    ),
    "signals": (
        "-bartlett_window -binomial -blackman_window .cauchy_ .geometric_ -hamming_window -hann_window istft "
        "-kaiser_window .log_normal_ -poisson -randint_like stft"
    ),
}


def _names(words: str, apart: str) -> str:
    """The words of a table without those that begin with one mark, and without the other mark."""
    return " ".join([word.lstrip("-.") for word in words.split() if word[0] != apart])


_FUNCTIONS = modules_of({module: _names(words, ".") for module, words in TABLE.items()})
_METHODS = modules_of({module: _names(words, "-") for module, words in TABLE.items()})


def function(name: str) -> Any:
    """The function of a name, None where there is none."""
    module = _FUNCTIONS.get(name)
    if module is None:
        return None
    import_module(f"adjoint.torch.{module}")
    return FUNCTIONS[name]


class _Later:
    """A method until it is first asked for: then its own takes its place."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, x: Any, cls: Any = None) -> Any:
        import_module(f"adjoint.torch.{_METHODS[self._name]}")
        setattr(Tensor, self._name, METHODS[self._name])
        return getattr(cls if x is None else x, self._name)


def give_methods() -> None:
    """Give `Tensor` the names of its methods here."""
    for name in _METHODS:
        setattr(Tensor, name, _Later(name))


def names() -> list[str]:
    """The functions, by name."""
    return list(_FUNCTIONS)


def load() -> None:
    """Import all, as the count in docs does."""
    for module in TABLE:
        import_module(f"adjoint.torch.{module}")
