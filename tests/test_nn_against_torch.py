"""Functions of neural networks against PyTorch's: values and gradients, over options drawn at random."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from conftest import peer

import adjoint as ad

torch: Any = peer("torch")
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")  # PyTorch's, about options
SINGLE = {"hardsigmoid", "celu"}  # whose constants PyTorch has in single precision
F = torch.nn.functional
nn = ad.nn

# (ours, theirs, differentiable arrays): functions of as many tensors of either library
Made = tuple[Callable[..., Any], Callable[..., Any], list[np.ndarray[Any, Any]]]
CASES: dict[str, Callable[[Any], Made]] = {}


class Draw:
    """Choices and values of one call."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def pick(self, *options: Any) -> Any:
        return options[self.rng.integers(len(options))]

    def real(self, *shape: int) -> np.ndarray[Any, Any]:
        return self.rng.standard_normal(shape)

    def unit(self, *shape: int) -> np.ndarray[Any, Any]:
        return self.rng.uniform(0.05, 0.95, shape)

    def ints(self, low: int, high: int, *shape: int) -> np.ndarray[Any, Any]:
        return self.rng.integers(low, high, shape)


def case(*names: str) -> Callable[[Callable[[Any, Draw], Made]], None]:
    def add(make: Callable[[Any, Draw], Made]) -> None:
        for name in names:
            CASES[name] = lambda d, name=name: make(name, d)

    return add


def both(name: str, *args: Any, torch_args: Any = None, torch_name: str = "", **how: Any) -> Any:
    """The function of a name in either library, of tensors and then the same further arguments."""
    theirs = getattr(F, torch_name or name)
    return (
        lambda *xs: getattr(nn, name)(*xs, *args, **how),
        lambda *xs: theirs(*xs, *(args if torch_args is None else torch_args), **how),
    )


def constant(x: Any) -> tuple[Any, Any]:
    return ad.asarray(x), torch.tensor(x)


# --- convolutions and windows ---


@case("conv1d", "conv2d", "conv3d")
def _conv(name: str, d: Draw) -> Made:
    axes = int(name[4])
    groups, per = d.pick(1, 2), d.pick(1, 2)
    kernel = [int(d.pick(1, 2, 3)) for _ in range(axes)]
    how: dict[str, Any] = {"dilation": d.pick(1, 2), "groups": groups}
    how |= d.pick({"padding": d.pick("same", "valid")}, {"padding": d.pick(0, 1, 2), "stride": d.pick(1, 2, 3)})
    x = d.real(*d.pick((), (2,)), groups * per, *[6 + int(d.pick(0, 1)) for _ in range(axes)])
    weight = d.real(groups * d.pick(1, 3), per, *kernel)
    bias = [d.real(weight.shape[0])] if d.pick(True, False) else []
    return *both(name, **how), [x, weight, *bias]


@case("conv_transpose1d", "conv_transpose2d", "conv_transpose3d")
def _conv_transpose(name: str, d: Draw) -> Made:
    axes = int(name[14])
    groups, stride, dilation = d.pick(1, 2), d.pick(1, 2, 3), d.pick(1, 2)
    extra = int(d.ints(0, max(stride, dilation)))
    how = {
        "stride": stride, "padding": d.pick(0, 1, 2), "output_padding": extra, "groups": groups, "dilation": dilation
    }  # fmt: skip
    x = d.real(*d.pick((), (2,)), groups * d.pick(1, 2), *[4 + int(d.pick(0, 1)) for _ in range(axes)])
    weight = d.real(x.shape[-axes - 1], d.pick(1, 2), *[int(d.pick(2, 3)) for _ in range(axes)])
    bias = [d.real(weight.shape[1] * groups)] if d.pick(True, False) else []
    return *both(name, **how), [x, weight, *bias]


def _images(d: Draw, axes: int) -> np.ndarray[Any, Any]:
    return d.real(*d.pick((), (2,)), 3, *[int(d.pick(6, 7, 8)) for _ in range(axes)])


def _pooling(d: Draw) -> dict[str, Any]:
    how = {"kernel_size": d.pick(2, 3), "stride": d.pick(None, 1, 2, 3), "ceil_mode": d.pick(True, False)}
    return {**how, "padding": d.pick(0, 1)}


@case("max_pool1d", "max_pool2d", "max_pool3d")
def _max_pool(name: str, d: Draw) -> Made:
    how = _pooling(d) | {"dilation": d.pick(1, 2)}
    if d.pick(True, False):
        return *both(name, **how), [_images(d, int(name[8]))]
    ours, theirs = both(name, **how, return_indices=True)
    x = _images(d, int(name[8]))
    np.testing.assert_array_equal(ours(ad.tensor(x))[1].numpy(), theirs(torch.tensor(x))[1].numpy())
    return (lambda x: ours(x)[0]), (lambda x: theirs(x)[0]), [x]


@case("avg_pool1d", "avg_pool2d", "avg_pool3d")
def _avg_pool(name: str, d: Draw) -> Made:
    axes = int(name[8])
    how = _pooling(d) | {"count_include_pad": d.pick(True, False)}
    if axes > 1:
        how |= {"divisor_override": d.pick(None, 3)}
    return *both(name, **how), [_images(d, axes)]


@case("lp_pool1d", "lp_pool2d", "lp_pool3d")
def _lp_pool(name: str, d: Draw) -> Made:
    how = {"norm_type": d.pick(1, 2, 3.0), "kernel_size": d.pick(2, 3), "stride": d.pick(None, 1, 2)}
    return *both(name, **how, ceil_mode=d.pick(True, False)), [abs(_images(d, int(name[7])))]


@case(*[f"adaptive_{kind}_pool{axes}d" for kind in ("avg", "max") for axes in (1, 2, 3)])
def _adaptive(name: str, d: Draw) -> Made:
    axes = int(name[-2])
    size = d.pick(1, 3, [int(d.pick(2, 4, 5)) for _ in range(axes)], [None, 2, 3][:axes] if axes > 1 else 2)
    x = _images(d, axes)
    if "max" in name and d.pick(True, False):
        ours, theirs = both(name, size, return_indices=True)
        np.testing.assert_array_equal(ours(ad.tensor(x))[1].numpy(), theirs(torch.tensor(x))[1].numpy())
    return *both(name, size), [x]


@case("fractional_max_pool2d", "fractional_max_pool3d")
def _fractional(name: str, d: Draw) -> Made:
    """With the numbers that we draw; PyTorch's have the axes of images in the other order."""
    axes, x, seed = int(name[-2]), d.real(*d.pick((), (2,)), 3, 6, 7, 5), int(d.ints(0, 1000))
    x = x if axes == 3 else x[..., 0]
    kernel = [int(d.pick(1, 2, 3)) for _ in range(axes)]
    size = d.pick({"output_size": [int(d.pick(1, 2)) for _ in range(axes)]}, {"output_ratio": (0.5, 0.4, 0.4)[:axes]})
    how = {"kernel_size": kernel, **size}

    def ours(x: Any) -> Any:
        ad.random.seed(seed)
        return getattr(nn, name)(x, **how, return_indices=True)

    def theirs(x: Any) -> Any:
        ad.random.seed(seed)
        drawn = ad.random.uniform((*x.shape[:-axes], axes), dtype=str(x.dtype).removeprefix("torch."))
        samples = torch.tensor(drawn.numpy()).reshape(-1, 3, axes)
        pool = getattr(F, f"{name}_with_indices")
        return pool(x, **how, _random_samples=samples.flip(-1) if axes == 2 else samples)

    np.testing.assert_array_equal(ours(ad.tensor(x))[1].numpy(), theirs(torch.tensor(x))[1].numpy())
    return (lambda x: ours(x)[0]), (lambda x: theirs(x)[0]), [x]


@case("max_unpool1d", "max_unpool2d", "max_unpool3d")
def _max_unpool(name: str, d: Draw) -> Made:
    axes = int(name[10])
    pool = getattr(F, f"max_pool{axes}d_with_indices")
    x = _images(d, axes)
    kernel, stride, padding = d.pick(2, 3), d.pick(None, 3), d.pick(0, 1)
    out, places = pool(torch.tensor(x), kernel, stride, padding)
    size = d.pick(x.shape, x.shape[1:], x.shape[-axes:])
    size = size if len(size) >= axes else x.shape[-axes:]
    ours, theirs = constant(places.numpy())
    return (
        lambda x: (
            nn.max_unpool1d(x, ours, kernel, stride, padding, size)
            if axes == 1
            else getattr(nn, name)(x, ours, kernel, stride, padding, output_size=size)
        ),
        lambda x: getattr(F, name)(x, theirs, kernel, stride, padding, list(x.shape[:-axes]) + list(size[-axes:])),
        [out.numpy()],
    )


@case("unfold")
def _unfold(name: str, d: Draw) -> Made:
    how = {"dilation": d.pick(1, (1, 2)), "padding": d.pick(0, 1, (1, 0)), "stride": d.pick(1, 2, (2, 3))}
    return *both(name, d.pick(2, (3, 2)), **how), [_images(d, 2)]


@case("fold")
def _fold(name: str, d: Draw) -> Made:
    how = {"dilation": d.pick(1, (1, 2)), "padding": d.pick(0, 1, (1, 0)), "stride": d.pick(1, 2, (2, 3))}
    kernel, size = d.pick(2, (3, 2)), (int(d.pick(5, 6)), 7)
    patches = F.unfold(torch.zeros(2, 3, *size), kernel, **how)
    return *both(name, size, kernel, **how), [d.real(*patches.shape[d.pick(0, 1) :])]


# --- images ---


@case("interpolate")
def _interpolate(name: str, d: Draw) -> Made:
    axes = d.pick(1, 2, 3)
    modes = {1: "linear", 2: d.pick("bilinear", "bicubic"), 3: "trilinear"}
    mode = d.pick("nearest", "nearest-exact", "area", modes[axes], modes[axes])
    how: dict[str, Any] = {"mode": mode}
    if mode.endswith(("linear", "cubic")):
        how["align_corners"] = d.pick(True, False, None)
    if axes == 2 and mode.startswith("bi"):
        how["antialias"] = d.pick(True, False)
    if d.pick(True, False):
        how["size"] = d.pick(7, [int(d.pick(1, 3, 9)) for _ in range(axes)])
    else:
        how["scale_factor"] = d.pick(2, 0.7, 1.6, [float(d.pick(0.5, 1.3, 2)) for _ in range(axes)])
        how["recompute_scale_factor"] = d.pick(None, True)
    return *both(name, **how), [d.real(2, 2, *[int(d.pick(4, 5)) for _ in range(axes)])]


@case("grid_sample")
def _grid_sample(name: str, d: Draw) -> Made:
    axes = d.pick(2, 2, 3)
    how = {
        "mode": d.pick("bilinear", "nearest", *["bicubic"] * (axes == 2)),
        "padding_mode": d.pick("zeros", "border", "reflection"),
        "align_corners": d.pick(True, False),
    }
    grid = d.rng.uniform(-1.6, 1.6, (2, *[3, 2, 4][:axes], axes))
    return *both(name, **how), [d.real(2, 3, *[4, 5, 3][:axes]), grid]


@case("affine_grid")
def _affine_grid(name: str, d: Draw) -> Made:
    axes = d.pick(2, 3)
    return *both(name, [2, 3, 4, 1, 5][: axes + 2], d.pick(True, False)), [d.real(2, axes, axes + 1)]


@case("channel_shuffle")
def _channel_shuffle(name: str, d: Draw) -> Made:
    return *both("channel_shuffle", d.pick(1, 2, 3)), [d.real(2, 6, *d.pick((2, 3), (3, 4)))]


@case("pdist")
def _pdist(name: str, d: Draw) -> Made:
    return *both(name, d.pick(1, 2.0, 3.0, math.inf)), [d.real(d.pick(1, 2, 5), 3)]


@case("pixel_shuffle", "pixel_unshuffle")
def _pixels(name: str, d: Draw) -> Made:
    return *both(name, 2), [d.real(*d.pick((), (2,), (1, 2)), 8, 4, 6)]


@case("pad")
def _pad(name: str, d: Draw) -> Made:
    mode = d.pick("constant", "reflect", "replicate", "circular")
    axes = d.pick(1, 2, 3)
    widths = [int(v) for v in d.ints(-1, 3, 2 * axes)]
    x = d.real(2, 3, *[4, 5, 4][:axes])
    return *both(name, widths, mode, **({"value": 1.5} if mode == "constant" else {})), [x]


# --- activations ---


def _elementwise(names: str, *args: Callable[[Draw], tuple[Any, ...]]) -> None:
    for name in names.split():
        CASES[name] = lambda d, name=name: (*both(name, *d.pick(*args)(d)), [3 * d.real(3, 4)])


_elementwise("relu sigmoid silu relu6 selu mish hardswish hardsigmoid softsign tanhshrink logsigmoid", lambda d: ())
_elementwise("leaky_relu elu celu hardshrink softshrink", lambda d: (), lambda d: (d.pick(0.1, 0.7),))
_elementwise("hardtanh", lambda d: (), lambda d: (-0.4, 0.9))
_elementwise("rrelu", lambda d: (), lambda d: (0.1, 0.2))
_elementwise("threshold", lambda d: (0.3, -2.0))
_elementwise("glu", lambda d: (-1,), lambda d: (1,))
CASES["softplus"] = lambda d: (*both("softplus", d.pick(1, 2, 0.5)), [3 * d.real(4)])
CASES["gelu"] = lambda d: (*both("gelu", approximate=d.pick("none", "tanh")), [2 * d.real(3, 2)])
CASES["prelu"] = lambda d: (*both("prelu"), [d.real(2, 3, 4), d.real(d.pick(1, 3))])


@case("softmax", "softmin", "log_softmax")
def _softmax(name: str, d: Draw) -> Made:
    axis = d.pick(0, 1, -1)
    return *both(name, axis), [d.real(2, 3, 4)]


# --- normalisations ---


def _affine(d: Draw, *shape: int) -> list[Any]:
    return d.pick([], [d.real(*shape)], [d.real(*shape), d.real(*shape)])


@case("layer_norm", "rms_norm")
def _layer_norm(name: str, d: Draw) -> Made:
    shape = d.pick((4,), (3, 4), (2, 3, 4))
    eps = d.pick(1e-5, 0.1)
    parts = _affine(d, *shape)[: 1 if name == "rms_norm" else 2]
    return (
        lambda x, *wb: getattr(nn, name)(x, shape, *wb, eps=eps),
        lambda x, *wb: getattr(F, name)(x, shape, *wb, eps=eps),
        [d.real(*d.pick((2, 3, 4), (3, 2, 3, 4))), *parts],
    )


@case("batch_norm")
def _batch_norm(name: str, d: Draw) -> Made:
    training, eps = d.pick(True, False), d.pick(1e-5, 0.1)
    x, mean, var = d.real(4, 3, *d.pick((), (5,), (2, 3))), d.real(3), 0.5 + d.unit(3)
    if training:
        ours, theirs = (None, None), (None, None)
    else:
        ours, theirs = zip(constant(mean), constant(var), strict=True)
    return (
        lambda x, *wb: nn.batch_norm(
            x, *[v if v is None else v.astype(x.dtype) for v in ours], *wb, training=training, eps=eps
        ),
        lambda x, *wb: F.batch_norm(
            x, *[v if v is None else v.to(x.dtype) for v in theirs], *wb, training=training, eps=eps
        ),
        [x, *_affine(d, 3)],
    )


@case("group_norm")
def _group_norm(name: str, d: Draw) -> Made:
    groups = d.pick(1, 2, 3, 6)
    if d.pick(True, False):
        return *both(name, groups), [d.real(2, 6, *d.pick((3,), (3, 2)))]
    return (
        lambda x, w, b: nn.group_norm(x, groups, w, b),
        lambda x, w, b: F.group_norm(x, groups, w, b),
        [d.real(2, 6, 3), d.real(6), d.real(6)],
    )


@case("instance_norm")
def _instance_norm(name: str, d: Draw) -> Made:
    x, eps = d.real(2, 3, *d.pick((5,), (2, 3), (2, 2, 3))), d.pick(1e-5, 0.1)
    if d.pick(True, False):
        return (
            lambda x, m, v: nn.instance_norm(x, running_mean=m, running_var=v, use_input_stats=False, eps=eps),
            lambda x, m, v: F.instance_norm(x, m, v, use_input_stats=False, eps=eps),
            [x, d.real(3), 0.5 + d.unit(3)],
        )
    return (
        lambda x, w=None, b=None: nn.instance_norm(x, weight=w, bias=b, eps=eps),
        lambda x, w=None, b=None: F.instance_norm(x, weight=w, bias=b, eps=eps),
        [x, *_affine(d, 3)],
    )


@case("local_response_norm")
def _local_response_norm(name: str, d: Draw) -> Made:
    return *both(name, d.pick(1, 2, 3, 5), 0.3, 0.6, 1.5), [d.real(2, 5, *d.pick((3,), (2, 3)))]


@case("normalize")
def _normalize(name: str, d: Draw) -> Made:
    return *both(name, d.pick(1, 2, 3.0), d.pick(0, 1, -1)), [d.real(3, 4)]


# --- layers ---


@case("linear")
def _linear(name: str, d: Draw) -> Made:
    return *both(name), [d.real(*d.pick((), (2,), (2, 3)), 4), d.real(3, 4), *d.pick([], [d.real(3)])]


@case("bilinear")
def _bilinear(name: str, d: Draw) -> Made:
    lead = d.pick((2,), (2, 3))
    return *both(name), [d.real(*lead, 4), d.real(*lead, 2), d.real(3, 4, 2), *d.pick([], [d.real(3)])]


def _written(w: Any, f: Callable[[Any], Any]) -> Any:
    """f of a table that it may write to, as a function of the table."""
    table = w.detach().clone()
    f(table)
    return f(w + (table - w).detach())


@case("embedding")
def _embedding(name: str, d: Draw) -> Made:
    ours, theirs = constant(d.ints(0, 5, *d.pick((4,), (2, 3))))
    how = {"padding_idx": d.pick(None, 2, -1)}
    if d.pick(True, False):  # whose second derivative is none of the values that differences are taken of
        how["scale_grad_by_freq"] = True
    elif d.pick(True, False):
        how |= {"max_norm": d.pick(0.5, 1.5), "norm_type": d.pick(1.0, 2.0)}
        # theirs writes to the table: a copy of it, whose gradient is the table's
        return (
            lambda w: nn.embedding(ours, w, **how),
            lambda w: _written(w, lambda table: F.embedding(theirs, table, **how)),
            [d.real(5, 3)],
        )
    return (lambda w: nn.embedding(ours, w, **how)), (lambda w: F.embedding(theirs, w, **how)), [d.real(5, 3)]


@case("embedding_bag")
def _embedding_bag(name: str, d: Draw) -> Made:
    how: dict[str, Any] = {"mode": d.pick("sum", "mean", "max"), "padding_idx": d.pick(None, 1, -2)}
    given = [d.ints(0, 5, 4, 3)]
    if d.pick(True, False):
        offsets = np.sort(np.append(0, d.ints(0, 9, 3)))  # some bags are empty
        given = [d.ints(0, 5, 8), offsets.clip(0, 8)]
        how["include_last_offset"] = d.pick(True, False)
        if how["include_last_offset"]:
            given[1][-1] = 8  # PyTorch does not say what it does where that is less
    ours, theirs = zip(*map(constant, given), strict=True)
    factors = [d.real(*given[0].shape)] if how["mode"] == "sum" and d.pick(True, False) else []
    return (
        lambda w, *f: nn.embedding_bag(ours[0], w, *ours[1:], **how, per_sample_weights=f[0] if f else None),
        lambda w, *f: F.embedding_bag(theirs[0], w, *theirs[1:], **how, per_sample_weights=f[0] if f else None),
        [d.real(5, 3), *factors],
    )


@case("scaled_dot_product_attention")
def _attention(name: str, d: Draw) -> Made:
    lead, queries, keys, width = d.pick((2,), (2, 3)), d.pick(1, 4), d.pick(3, 5), d.pick(2, 3)
    how: dict[str, Any] = {"scale": d.pick(None, 0.3)}
    given = [d.real(*lead, queries, width), d.real(*lead, keys, width), d.real(*lead, keys, d.pick(1, 3))]
    match d.pick("none", "causal", "bools", "numbers", "heads", "large"):
        case "causal":
            how["is_causal"] = True
        case "bools":
            ours, theirs = constant(d.unit(queries, keys) < 0.6)
            return (
                lambda q, k, v: nn.scaled_dot_product_attention(q, k, v, ours, **how),
                lambda q, k, v: F.scaled_dot_product_attention(q, k, v, theirs, **how),
                given,
            )
        case "numbers":
            given.append(d.real(*d.pick((), lead), queries, keys))
        case "heads":
            given[0] = d.real(2, 6, queries, width)
            given[1:] = [d.real(2, 3, keys, width), d.real(2, 3, keys, 2)]
            how["enable_gqa"] = True
        case "large":
            given[0] = given[0] * 40
    return *both(name, **how), given


# --- losses ---


def _reduction(d: Draw, *more: str) -> dict[str, Any]:
    return {"reduction": d.pick("none", "mean", "sum", *more)}


@case("l1_loss", "mse_loss", "huber_loss", "smooth_l1_loss", "kl_div", "poisson_nll_loss")
def _distance(name: str, d: Draw) -> Made:
    how, shape = _reduction(d), d.pick((3,), (2, 3), (2, 2, 2))
    x, target = d.real(*shape), d.real(*shape)
    if name in ("l1_loss", "mse_loss", "huber_loss") and d.pick(True, False):
        return (
            lambda x, t, w: getattr(nn, name)(x, t, weight=w, **how),
            lambda x, t, w: getattr(F, name)(x, t, weight=w, **how),
            [x, target, d.unit(*shape)],
        )
    match name:
        case "huber_loss":
            how["delta"] = d.pick(0.3, 1.0)
        case "smooth_l1_loss":
            how["beta"] = d.pick(0.0, 0.3, 1.0)
        case "kl_div":
            how = _reduction(d, "batchmean") | {"log_target": d.pick(True, False)}
            target = d.unit(*shape)
            if how["log_target"]:
                target = np.log(d.unit(*shape))
        case "poisson_nll_loss":
            how |= {"log_input": d.pick(True, False), "full": d.pick(True, False)}
            fixed = constant(d.ints(0, 4, *shape) * 1.0)
            return (
                lambda x: nn.poisson_nll_loss(x, fixed[0].astype(x.dtype), **how),
                lambda x: F.poisson_nll_loss(x, fixed[1].to(x.dtype), **how),
                [abs(x)],
            )
        case _:
            pass
    return *both(name, **how), [x, target]


@case("gaussian_nll_loss")
def _gaussian(name: str, d: Draw) -> Made:
    how = _reduction(d) | {"full": d.pick(True, False), "eps": d.pick(1e-6, 0.5)}
    return *both(name, **how), [d.real(3, 2), d.real(3, 2), d.unit(*d.pick((3, 2), (3, 1)))]


@case("binary_cross_entropy", "binary_cross_entropy_with_logits")
def _binary(name: str, d: Draw) -> Made:
    logits = name.endswith("logits")
    x = 2 * d.real(3, 4) if logits else d.unit(3, 4)
    how, arrays = _reduction(d), [x, d.unit(3, 4)]
    names = ["weight"] * d.pick(False, True) + ["pos_weight"] * (logits and d.pick(False, True))
    fixed = {n: constant(d.unit(4)) for n in names}
    return (
        lambda x, t: getattr(nn, name)(x, t, **how, **{n: v[0].astype(x.dtype) for n, v in fixed.items()}),
        lambda x, t: getattr(F, name)(x, t, **how, **{n: v[1].to(x.dtype) for n, v in fixed.items()}),
        arrays,
    )


@case("cross_entropy", "nll_loss")
def _cross_entropy(name: str, d: Draw) -> Made:
    shape = d.pick((4,), (3, 4), (2, 4, 3), (2, 4, 2, 3))
    axis = min(1, len(shape) - 1)
    x, how = d.real(*shape), _reduction(d)
    weight = constant(d.unit(4)) if d.pick(True, False) else None
    if name == "cross_entropy":
        how["label_smoothing"] = d.pick(0.0, 0.3)
        if d.pick(True, False, False):
            target = constant(np.asarray(d.unit(*shape)))
            return (
                lambda x: nn.cross_entropy(x, target[0].astype(x.dtype), **_weight(weight, 0, x), **how),
                lambda x: F.cross_entropy(x, target[1].to(x.dtype), **_weight(weight, 1, x), **how),
                [x],
            )
    labels = d.ints(0, 4, *shape[:axis], *shape[axis + 1 :])
    if labels.ndim and d.pick(True, False):
        how["ignore_index"] = d.pick(-100, 2)
        labels[0] = how["ignore_index"]
        labels.flat[-1] = 1
    target = constant(labels)
    return (
        lambda x: getattr(nn, name)(x, target[0], **_weight(weight, 0, x), **how),
        lambda x: getattr(F, name)(x, target[1], **_weight(weight, 1, x), **how),
        [x],
    )


def _weight(weight: Any, i: int, x: Any) -> dict[str, Any]:
    if weight is None:
        return {}
    return {"weight": weight[i].to(x.dtype) if i else weight[i].astype(x.dtype)}


@case("multi_margin_loss", "multilabel_margin_loss")
def _margins(name: str, d: Draw) -> Made:
    shape, how = d.pick((4,), (3, 4)), _reduction(d)
    weight = None
    if name == "multi_margin_loss":
        labels = d.ints(0, 4, *shape[:-1])
        how |= {"p": d.pick(1, 2), "margin": d.pick(1.0, 0.4)}
        weight = constant(d.unit(4)) if d.pick(True, False) else None
    else:
        labels = np.array([d.rng.permutation(4) for _ in range(shape[0] if len(shape) == 2 else 1)]).reshape(shape)
        labels[..., d.pick(1, 2, 3) :] = -1
    target = constant(labels)
    return (
        lambda x: getattr(nn, name)(x, target[0], **_weight(weight, 0, x), **how),
        lambda x: getattr(F, name)(x, target[1], **_weight(weight, 1, x), **how),
        [d.real(*shape)],
    )


@case("multilabel_soft_margin_loss")
def _multilabel_soft(name: str, d: Draw) -> Made:
    how, weight = _reduction(d), constant(d.unit(4)) if d.pick(True, False) else None
    return (
        lambda x, t: nn.multilabel_soft_margin_loss(x, t, **_weight(weight, 0, x), **how),
        lambda x, t: F.multilabel_soft_margin_loss(x, t, **_weight(weight, 1, x), **how),
        [d.real(3, 4), d.unit(3, 4)],
    )


@case("soft_margin_loss", "hinge_embedding_loss", "margin_ranking_loss", "cosine_embedding_loss")
def _signs(name: str, d: Draw) -> Made:
    how = _reduction(d) | ({} if name == "soft_margin_loss" else {"margin": d.pick(0.0, 0.4)})
    shape = (3,) if name == "cosine_embedding_loss" else (3, 4)
    signs = constant(np.where(d.unit(*shape) < 0.5, -1.0, 1.0))
    arrays = [d.real(3, 4)] * (1 if name[:4] in ("soft", "hing") else 2)
    return (
        lambda *xs: getattr(nn, name)(*xs, signs[0].astype(xs[0].dtype), **how),
        lambda *xs: getattr(F, name)(*xs, signs[1].to(xs[0].dtype), **how),
        [x + d.real(3, 4) for x in arrays],
    )


@case("triplet_margin_loss", "triplet_margin_with_distance_loss")
def _triplet(name: str, d: Draw) -> Made:
    how = _reduction(d) | {"margin": d.pick(0.5, 2.0), "swap": d.pick(True, False)}
    arrays = [d.real(*d.pick((4,), (3, 4))[-2:]) for _ in range(1)]
    arrays += [d.real(*arrays[0].shape), d.real(*arrays[0].shape)]
    if name == "triplet_margin_loss":
        return *both(name, **how, p=d.pick(1, 2, 3.0)), arrays

    def distance(x: Any, y: Any) -> Any:
        return abs(x - y).sum(-1)

    return *both(name, distance_function=distance, **how), arrays


@case("pairwise_distance")
def _pairwise(name: str, d: Draw) -> Made:
    p, keep = d.pick(1, 2, 3.0), d.pick(True, False)
    return (
        lambda x, y: nn.pairwise_distance(x, y, p, keepdims=keep),
        lambda x, y: F.pairwise_distance(x, y, p, keepdim=keep),
        [d.real(3, 4), d.real(*d.pick((3, 4), (1, 4)))],
    )


@case("cosine_similarity")
def _cosine(name: str, d: Draw) -> Made:
    axis, shapes = d.pick((1, ((3, 4), (3, 4))), (0, ((3, 4), (3, 1))), (-1, ((2, 3, 4), (3, 4))))
    return *both(name, axis), [d.real(*shape) for shape in shapes]


@case("ctc_loss")
def _ctc(name: str, d: Draw) -> Made:
    how = _reduction(d) | {"blank": d.pick(0, 2), "zero_infinity": d.pick(True, False)}
    time, batch, classes = 7, 3, 4
    labels = [c for c in range(classes) if c != how["blank"]]
    sizes = d.ints(1, 4, batch)
    targets = d.rng.choice(labels, (batch, 3))
    steps = np.array([7, 6, 7])
    if d.pick(True, False):
        targets = np.concatenate([row[:n] for row, n in zip(targets, sizes, strict=True)])
    given = [targets, steps, sizes]
    ours, theirs = zip(*map(constant, given), strict=True)
    return (
        lambda x: nn.ctc_loss(nn.log_softmax(x, -1), *ours, **how),
        lambda x: F.ctc_loss(F.log_softmax(x, -1), *theirs, **how),
        [d.real(time, batch, classes)],
    )


# --- the comparison ---


def cotangent(shape: Any, dtype: Any) -> Any:
    return np.cos(np.arange(1, 1 + math.prod(shape))).reshape(shape).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients_are_pytorchs(name: str, dtype: Any) -> None:
    compared = 0
    for seed in range(24):
        ours, theirs, arrays = CASES[name](Draw(seed))
        arrays = [np.asarray(x, dtype) for x in arrays]
        leaves = [torch.tensor(x, requires_grad=True) for x in arrays]
        try:
            expected = theirs(*leaves)
        except (RuntimeError, ValueError, NotImplementedError, AssertionError):
            continue  # options that PyTorch does not combine
        xs = [ad.asarray(x).require_grad() for x in arrays]
        out = ours(*xs)
        value = expected.detach().numpy()
        assert (out.shape, out.dtype) == (value.shape, value.dtype), f"seed {seed}"
        scale = max(1.0, float(np.abs(value[np.isfinite(value)]).max(initial=0)))
        tolerance = 2e-12 if dtype is np.float64 and name not in SINGLE else 2e-5
        np.testing.assert_allclose(
            out.numpy(), value, rtol=tolerance, atol=tolerance * scale, err_msg=f"value, seed {seed}"
        )
        g = cotangent(value.shape, dtype)
        gradients = out.backward(ad.asarray(g))
        pulled = torch.autograd.grad(expected, leaves, torch.tensor(g), allow_unused=True)
        for i, (x, other) in enumerate(zip(xs, pulled, strict=True)):
            wanted = np.zeros(x.shape, dtype) if other is None else other.numpy()
            mine = x.grad(gradients)
            found = np.zeros(x.shape, dtype) if mine is None else mine.numpy()
            size = max(1.0, float(np.abs(wanted[np.isfinite(wanted)]).max(initial=0)))
            np.testing.assert_allclose(
                found, wanted, rtol=10 * tolerance, atol=10 * tolerance * size, err_msg=f"gradient {i}, seed {seed}"
            )
        compared += 1
    assert compared >= 8
