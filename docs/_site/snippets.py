"""Examples for entries whose docstring has none: the build runs each call, and the page shows what it gave."""

from __future__ import annotations

import functools
import importlib.util
import tempfile
from typing import Any

import adjoint as ad

# calls by the names that they are shown for; `{}` is the function
CALLS = {
    "{}(ad.tensor([0.25, 0.5]))": (
        "acos asin atan atanh cos cosh sinh asinh tan tanh exp exp2 expm1 log log10 log1p log2 sqrt square "
        "reciprocal special.loggamma special.entr special.expit special.log_expit special.erfcinv special.erfcx "
        "special.erfinv special.ndtri special.ellipkm1 special.exp1 special.i0e special.i1 special.i1e "
        "special.k0e special.k1 special.k1e special.y1"
    ),
    "{}(ad.tensor([1.0, 3.0]))": "acosh",
    "{}(ad.tensor([-1.5, 0.5, 2.0]))": (
        "abs angle ceil conj floor negative positive real round sign signbit trunc deg2rad rad2deg nn.celu nn.elu "
        "nn.gelu nn.hardshrink nn.hardsigmoid nn.hardswish nn.hardtanh nn.leaky_relu nn.log_softmax nn.logsigmoid "
        "nn.mish nn.relu6 nn.selu nn.sigmoid nn.silu nn.softmin nn.softplus nn.softshrink nn.softsign "
        "nn.tanhshrink special.softmax special.log_softmax linalg.vector_norm mean min prod std var argmin argmax "
        "sort argsort cummin cumulative_prod ptp"
    ),
    "{}(ad.tensor([3.0, 5.0]), ad.tensor([2.0, -1.0]))": (
        "add atan2 copysign divide equal floor_divide fmin fmod greater greater_equal heaviside hypot less "
        "less_equal logaddexp maximum minimum multiply nextafter not_equal pow remainder subtract outer vdot "
        "linalg.outer isclose allclose array_equal nn.mse_loss nn.l1_loss nn.huber_loss nn.smooth_l1_loss "
        "nn.poisson_nll_loss nn.soft_margin_loss nn.hinge_embedding_loss"
    ),
    "{}(ad.tensor([6, 3]), ad.tensor([2, 1]))": (
        "bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift"
    ),
    "{}(ad.tensor([1, 2]))": "bitwise_invert",
    "{}(ad.tensor([1.0, float('inf'), float('nan')]))": "isfinite isinf isnan",
    "{}(ad.tensor([True, False]), ad.tensor([True, True]))": "logical_and logical_or logical_xor",
    "{}(ad.tensor([True, False]))": "logical_not all any flatnonzero nonzero",
    "{}(ad.tensor([1.0, 2.0]), ad.tensor([3, 4]))": "ldexp",
    "{}(ad.tensor([0.2, 0.5]), ad.tensor([0.5, 0.25]))": (
        "special.rel_entr special.xlog1py special.beta special.ellipeinc"
    ),
    "{}(ad.tensor([1.0, 2.0]), ad.tensor([0.5, 0.25]))": "special.gammaincc special.gammainccinv special.chdtri",
    "{}(ad.tensor([1.0, 2.0]), ad.tensor([0.5, 3.0]))": (
        "special.chdtr special.chdtrc special.iv special.ive special.kve special.yv"
    ),
    "{}(2, ad.tensor([0.5, 3.0]))": "special.kn special.yn",
    "{}(2.0, 3.0, ad.tensor([0.25, 0.5]))": "special.betaincc special.betainccinv special.betaincinv",
    "{}(ad.tensor([1.0, float('nan'), 3.0]))": (
        "nanargmax nanargmin nancumprod nanmax nanmean nanmedian nanmin nanprod nanstd nanvar"
    ),
    "{}(ad.tensor([1.0, float('nan'), 3.0]), 0.25)": "nanquantile",
    "{}(ad.tensor([1.0, float('nan'), 3.0]), 25)": "nanpercentile",
    "{}(ad.tensor([1.0, 2.0, 4.0]), 25)": "percentile",
    "{}(ad.tensor([[1.0, 2.0, 4.0], [3.0, 1.0, 0.0]]))": (
        "corrcoef fliplr flipud flip ravel rot90 tril triu matrix_transpose linalg.matrix_transpose diagonal unstack"
    ),
    "{}(ad.tensor([[2.0, 1.0], [1.0, 3.0]]))": "linalg.det",
    "{}(ad.tensor([1.0, 2.0]), ad.tensor([3.0]))": "append",
    "{}(ad.tensor(1.0))": "atleast_1d atleast_2d atleast_3d",
    "{}(ad.tensor([1.0, 2.0]), ad.tensor([[3.0], [4.0]]))": "broadcast_arrays",
    "{}(ad.tensor([1.0, 2.0]), (2, 2))": "broadcast_to",
    "{}([ad.tensor([1.0, 2.0]), ad.tensor([3.0, 4.0])])": "column_stack concat dstack stack vstack",
    "{}(ad.tensor([1.0, 2.0]))": (
        "diagflat empty_like ones_like zeros_like cumulative_trapezoid vander unwrap from_dlpack"
    ),
    "{}(ad.tensor([1.0, 2.0]), axis=0)": "expand_dims",
    "{}(ad.ones((2, 3)), 0, 1)": "moveaxis swapaxes",
    "{}(ad.ones((1, 2)), (1, 0))": "permute_dims",
    "{}(ad.tensor([1.0, 2.0, 3.0]), 1)": "roll delete argpartition",
    "{}(ad.tensor([1.0, 2.0, 3.0, 4.0]), 2)": "split",
    "{}(ad.tensor([[1.0, 2.0]]), axis=0)": "squeeze",
    "{}(ad.tensor([1.0, 2.0]), (2,))": "tile",
    "{}((2, 3))": "zeros ones",
    "{}(ad.tensor([1, 2]), 7)": "full_like",
    "{}(3)": "tri diag_indices tril_indices triu_indices fft.bartlett fft.hamming fft.blackman fft.cosine fft.nuttall",
    "{}(ad.log(ad.tensor([0.25, 0.75])), ad.tensor([0.5, 0.5]))": "nn.kl_div",
    "{}()(ad.log(ad.tensor([0.25, 0.75])), ad.tensor([0.5, 0.5]))": "nn.KLDivLoss",
    "{}(ad.tensor([1.0, 2.0]), ad.tensor([3.0, 4.0, 5.0]))": "meshgrid",
    "{}(ad.tensor([[3.0, 1.0, 2.0]]), ad.tensor([[1, 2, 0]]), axis=1)": "take_along_axis",
    "{}(ad.tensor([3, 1, 3]))": "unique_counts unique_inverse",
    "{}(ad.tensor([0.5, 2.5]), ad.tensor([0.0, 1.0, 2.0]))": "digitize",
    "{}(ad.tensor([1.0, 2.0, 5.0]), ad.tensor([0, 0, 1]), num_segments=2)": (
        "segment_max segment_mean segment_min segment_prod"
    ),
    "{}(ad.tensor([[1.0, 2.0], [3.0, 4.0]]), ad.eye(2))": "tensordot linalg.tensordot",
    "{}(ad.tensor([[1.0, 2.0], [3.0, 4.0]]))": (
        "fft.fft2 fft.hfft2 fft.ifft2 fft.ifftn fft.ihfft fft.ihfft2 fft.ihfftn fft.irfft2 fft.irfftn fft.rfft2 "
        "fft.ifftshift"
    ),
    "{}(ad.tensor([0.25, 0.5]), ad.tensor([0.0, 1.0]))": "nn.binary_cross_entropy nn.binary_cross_entropy_with_logits",
    "{}(ad.tensor([1.0, 2.0]), ad.tensor([1.5, 1.0]), ad.tensor([1.0, 4.0]))": "nn.gaussian_nll_loss",
    "{}(ad.tensor([[1.0, 2.0]]), ad.tensor([[2.0, 0.0]]))": "nn.cosine_similarity nn.pairwise_distance",
    "{}(ad.tensor([[1.0, 2.0]]), ad.tensor([[2.0, 0.0]]), ad.tensor([[0.0, 2.0]]))": (
        "nn.triplet_margin_loss nn.triplet_margin_with_distance_loss"
    ),
    "{}(ad.tensor([[1.0, 2.0]]), ad.tensor([[2.0, 0.0]]), ad.tensor([1.0]))": "nn.cosine_embedding_loss",
    "{}(ad.tensor([1.0, 2.0]), ad.tensor([2.0, 0.0]), ad.tensor([1.0, -1.0]))": "nn.margin_ranking_loss",
    "{}(ad.tensor([[0.5, 2.0, 1.0]]), ad.tensor([1]))": "nn.multi_margin_loss nn.nll_loss",
    "{}(ad.tensor([[0.5, 2.0]]), ad.tensor([[1.0, 0.0]]))": "nn.multilabel_soft_margin_loss",
    "{}(ad.tensor([[1.0, 2.0]]), ad.tensor([[1.0, 0.0], [0.5, 1.0]]))": "nn.linear",
    "{}(ad.tensor([[1.0, 2.0, 6.0]]), (3,))": "nn.layer_norm nn.rms_norm",
    "{}(ad.tensor([1.0, 2.0, 3.0, 4.0]))": "nn.glu",
    "{}(ad.tensor([1.0, 2.0]), 1.5, 0.0)": "nn.threshold",
    "{}(ad.tensor([[[1.0, 5.0, 2.0, 3.0]]]), 2)": (
        "nn.adaptive_avg_pool1d nn.adaptive_max_pool1d nn.avg_pool1d nn.max_pool1d"
    ),
    "{}(ad.tensor([[[1.0, 5.0, 2.0, 3.0]]]), 2, 2)": "nn.lp_pool1d",
    "{}(ad.tensor([[[1.0, 5.0, 2.0]]]), ad.tensor([[[1.0, -1.0]]]))": "nn.conv1d nn.conv_transpose1d",
    "{}(ad.ones((1, 4, 1, 1)), 2)": "nn.pixel_shuffle",
    "{}(ad.ones((1, 1, 2, 2)), 2).shape": "nn.pixel_unshuffle",
    "{}()(ad.tensor([-1.5, 0.5, 2.0]))": (
        "nn.CELU nn.ELU nn.GELU nn.Hardshrink nn.Hardsigmoid nn.Hardswish nn.Hardtanh nn.LeakyReLU nn.LogSigmoid "
        "nn.LogSoftmax nn.Mish nn.ReLU nn.ReLU6 nn.SELU nn.SiLU nn.Sigmoid nn.Softmax nn.Softmin nn.Softplus "
        "nn.Softshrink nn.Softsign nn.Tanh nn.Tanhshrink nn.Identity"
    ),
    "{}()(ad.tensor([0.25, 0.5]), ad.tensor([0.0, 1.0]))": (
        "nn.BCELoss nn.BCEWithLogitsLoss nn.HingeEmbeddingLoss nn.HuberLoss nn.L1Loss nn.MSELoss "
        "nn.PoissonNLLLoss nn.SmoothL1Loss nn.SoftMarginLoss"
    ),
    "{}()(ad.tensor([[0.5, 2.0, 1.0]]), ad.tensor([1]))": "nn.CrossEntropyLoss nn.MultiMarginLoss nn.NLLLoss",
    "{}(2)(ad.tensor([[[1.0, 5.0, 2.0, 3.0]]]))": "nn.AdaptiveAvgPool1d nn.AdaptiveMaxPool1d nn.AvgPool1d nn.MaxPool1d",
    "{}(2)(ad.ones((1, 1, 4, 4))).shape": "nn.AdaptiveAvgPool2d nn.AdaptiveMaxPool2d nn.AvgPool2d nn.MaxPool2d",
    "{}(2)(ad.ones((1, 1, 4, 4, 4))).shape": "nn.AdaptiveAvgPool3d nn.AdaptiveMaxPool3d nn.AvgPool3d nn.MaxPool3d",
    "{}(ad.ones((1, 1, 4, 4, 4)), 2).shape": (
        "nn.adaptive_avg_pool3d nn.adaptive_max_pool3d nn.avg_pool3d nn.max_pool3d"
    ),
    "{}.logpdf(ad.tensor([0.5, 2.0]))": (
        "stats.cauchy stats.expon stats.gumbel_r stats.halfnorm stats.laplace stats.logistic stats.norm stats.uniform"
    ),
    "{}.logpdf(ad.tensor([0.5, 2.0]), 2.0)": (
        "stats.chi2 stats.gamma stats.invgamma stats.lognorm stats.pareto stats.skewnorm stats.t stats.vonmises "
        "stats.weibull_min"
    ),
    "{}.logpdf(ad.tensor([0.25, 0.5]), 2.0, 3.0)": "stats.beta stats.f",
    "{}.logpdf(ad.tensor([0.25, 0.5]), -1.0, 1.0)": "stats.truncnorm",
    "{}.logpmf(ad.tensor([0, 1]), 0.25)": "stats.bernoulli stats.poisson",
    "{}.logpmf(ad.tensor([1, 2]), 0.25)": "stats.geom",
    "{}.logpmf(ad.tensor([0, 1]), 3, 0.25)": "stats.binom stats.nbinom",
    "{}.logpdf(ad.tensor([0.25, 0.75]), ad.tensor([2.0, 3.0]))": "stats.dirichlet",
    "{}.logpdf(ad.tensor([0.5, 1.0]), ad.zeros(2), ad.eye(2))": "stats.multivariate_normal",
    "{}.logpmf(ad.tensor([1, 2]), 3, ad.tensor([0.25, 0.75]))": "stats.multinomial",
    "{}(2)(ad.ones((1, 4, 1, 1))).shape": "nn.PixelShuffle nn.ChannelShuffle",
    "{}(2)(ad.ones((1, 1, 2, 2))).shape": "nn.PixelUnshuffle nn.Unfold",
    "{}(0.5)(ad.ones((2, 3))).shape": "nn.Dropout nn.AlphaDropout",
    "{}()(ad.tensor([1.0, 2.0, 3.0, 4.0]))": "nn.GLU nn.PReLU",
    "{}()(ad.tensor([1.0, 2.0]), ad.tensor([1.5, 1.0]), ad.tensor([1.0, 4.0]))": "nn.GaussianNLLLoss",
    "{}()(ad.tensor([[1.0, 2.0]]), ad.tensor([[2.0, 0.0]]))": "nn.CosineSimilarity nn.PairwiseDistance",
    "{}()(ad.tensor([[1.0, 2.0]]), ad.tensor([[2.0, 0.0]]), ad.tensor([[0.0, 2.0]]))": (
        "nn.TripletMarginLoss nn.TripletMarginWithDistanceLoss"
    ),
    "{}()(ad.tensor([[1.0, 2.0]]), ad.tensor([[2.0, 0.0]]), ad.tensor([1.0]))": "nn.CosineEmbeddingLoss",
    "{}()(ad.tensor([1.0, 2.0]), ad.tensor([2.0, 0.0]), ad.tensor([1.0, -1.0]))": "nn.MarginRankingLoss",
    "{}()(ad.tensor([[0.5, 2.0]]), ad.tensor([[1.0, 0.0]]))": "nn.MultiLabelSoftMarginLoss",
    "{}(3)(ad.tensor([[1.0, 2.0, 6.0]]))": "nn.RMSNorm",
    "{}(1, 2, 3)(ad.ones((1, 1, 4, 4, 4))).shape": "nn.Conv3d nn.ConvTranspose3d",
    "{}(1, 2, 3)(ad.ones((1, 1, 4, 4))).shape": "nn.ConvTranspose2d",
    "{}(2, 2)(ad.ones((1, 1, 4))).shape": "nn.LPPool1d",
    "{}(2, 2)(ad.ones((1, 1, 4, 4))).shape": "nn.LPPool2d",
    "{}(2, 2)(ad.ones((1, 1, 4, 4, 4))).shape": "nn.LPPool3d",
    "{}(0.5, (2, 3)).shape": "random.bernoulli",
    "{}(0, 10, (2, 3)).shape": "random.integers",
    "{}(0.5, shape=(2, 3)).shape": "random.geometric random.chisquare random.student_t random.weibull",
    "{}(lr=0.1)": (
        "optim.Adadelta optim.Adagrad optim.Adam optim.AdamW optim.Adamax optim.Lion optim.NAdam optim.RAdam "
        "optim.RMSprop optim.SGD"
    ),
    "{}()": "default_device default_dtype",
    "{}((2, 3)).dtype": "empty",
    "{}(0.5)(ad.ones((1, 2, 4))).shape": "nn.Dropout1d nn.FeatureAlphaDropout",
    "{}(0.5)(ad.ones((1, 2, 4, 4))).shape": "nn.Dropout2d",
    "{}(0.5)(ad.ones((1, 2, 4, 4, 4))).shape": "nn.Dropout3d",
    "{}(ad.ones((1, 2, 4)), 0.5).shape": "nn.dropout1d nn.feature_alpha_dropout",
    "{}(ad.ones((1, 2, 4, 4, 4)), 0.5).shape": "nn.dropout3d",
    "{}((4, 4), 2)(ad.ones((1, 4, 9))).shape": "nn.Fold",
    "{}(ad.ones((1, 4, 9)), (4, 4), 2).shape": "nn.fold",
    "{}(2, output_size=3)(ad.ones((1, 1, 6, 6))).shape": "nn.FractionalMaxPool2d",
    "{}(2, output_size=3)(ad.ones((1, 1, 6, 6, 6))).shape": "nn.FractionalMaxPool3d",
    "{}(ad.square)(ad.tensor([1.0, 2.0]))": "nn.Lambda",
    "{}(2)(ad.ones((1, 4, 3))).shape": "nn.LocalResponseNorm",
    "{}(ad.ones((1, 4, 3)), 2).shape": "nn.local_response_norm",
    "{}(2)(ad.tensor([[[5.0, 3.0]]]), ad.tensor([[[1, 2]]]))": "nn.MaxUnpool1d",
    "{}(ad.tensor([[[5.0, 3.0]]]), ad.tensor([[[1, 2]]]), 2)": "nn.max_unpool1d",
    "{}(2)(ad.ones((1, 1, 1, 1)), ad.tensor([[[[3]]]])).shape": "nn.MaxUnpool2d",
    "{}(2)(ad.ones((1, 1, 1, 1, 1)), ad.tensor([[[[[3]]]]])).shape": "nn.MaxUnpool3d",
    "{}(ad.ones((1, 1, 1, 1, 1)), ad.tensor([[[[[3]]]]]), 2).shape": "nn.max_unpool3d",
    "{}()(ad.tensor([[0.5, 2.0, 1.0]]), ad.tensor([[1, -1, 0]]))": "nn.MultiLabelMarginLoss",
    "{}(ad.tensor([[0.5, 2.0, 1.0]]), ad.tensor([[1, -1, 0]]))": "nn.multilabel_margin_loss",
    "{}((1, 2))(ad.tensor([3.0, 4.0]))": "nn.Pad",
    "{}(1.5, 0.0)(ad.tensor([1.0, 2.0]))": "nn.Threshold",
    "{}()(ad.ones((2, 3))).shape": "nn.RReLU",
    "{}(ad.ones((2, 3))).shape": "nn.rrelu nn.gumbel_softmax",
    "{}(ad.tensor([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]]), (1, 1, 2, 2)).shape": "nn.affine_grid",
    "{}(ad.ones((1, 2)), ad.ones((1, 3)), ad.ones((4, 2, 3)))": "nn.bilinear",
    "{}(ad.ones((1, 1, 4, 4, 4)), ad.ones((2, 1, 3, 3, 3))).shape": "nn.conv3d",
    "{}(ad.ones((1, 1, 4, 4, 4)), ad.ones((1, 2, 3, 3, 3))).shape": "nn.conv_transpose3d",
    "{}(ad.tensor([[1.0, 2.0, 3.0, 6.0]]), 2)": "nn.group_norm",
    "{}(ad.tensor([[[1.0, 2.0, 6.0]]]))": "nn.instance_norm",
    "{}(ad.ones((1, 1, 4, 4, 4)), 2, 2).shape": "nn.lp_pool3d",
    "{}(ad.tensor([-2.0, 1.0]), ad.tensor([0.25]))": "nn.prelu",
    "{}(0.1)(0)": "optim.constant",
    "{}(0.1, 100)(50)": "optim.cosine",
    "{}(0.1, 0.9)(10)": "optim.exponential",
    "{}(0.1, 0.0, 100)(50)": "optim.linear optim.polynomial",
    "{}(0.1, 100)(30)": "optim.one_cycle",
    "{}(2.0, 3.0, (2, 3)).shape": "random.beta",
    "{}(10, 0.5, (2, 3)).shape": "random.binomial",
    "{}(shape=(2, 3)).shape": "random.lognormal random.rademacher",
    "{}(-1.0, 1.0, shape=(2, 3)).shape": "random.truncated_normal",
    "{}(5).shape": "random.permutation",
    "{}((2, 3)).shape": (
        "nn.init.kaiming_normal nn.init.kaiming_uniform nn.init.lecun_normal nn.init.normal "
        "nn.init.truncated_normal nn.init.uniform nn.init.xavier_normal random.normal random.uniform "
        "random.cauchy random.gumbel random.laplace random.logistic"
    ),
    "{}((3,))": "indices nn.init.ones nn.init.zeros",
    "{}((3,), 0.5)": "nn.init.constant",
    "{}(512, 100)(50)": "optim.noam",
    "{}(ad.optim.constant(0.1), 10)(5)": "optim.warmup",
    "{}([ad.optim.constant(0.1), ad.optim.constant(0.01)], [10])(20)": "optim.joined",
    "{}(scale_factor=2)(ad.ones((1, 1, 2, 2))).shape": "nn.Interpolate",
}


# ... and the lines of those that need more than one, or another library, which stands first
PROGRAMS = {
    "Backend": ("", "isinstance(ad.NumPy(), {})"),
    "CuPy": ("cupy", "ad.ones(2, device={}()).device"),
    "data.ImageFolder": (
        "PIL",
        "import os, tempfile, PIL.Image",
        "folder = tempfile.TemporaryDirectory()",
        "os.mkdir(folder.name + '/cats')",
        "PIL.Image.new('RGB', (4, 4)).save(folder.name + '/cats/tom.png')",
        "{}(folder.name, size=2)[0][0].shape",
    ),
    "data.Parquet": (
        "pyarrow",
        "import tempfile, pyarrow, pyarrow.parquet",
        "folder = tempfile.TemporaryDirectory()",
        "file = folder.name + '/a.parquet'",
        "pyarrow.parquet.write_table(pyarrow.table({{'x': [1.0, 2.0]}}), file)",
        "len({}(file))",
    ),
    "data.read_parquet": (
        "pyarrow",
        "import tempfile, pyarrow, pyarrow.parquet",
        "folder = tempfile.TemporaryDirectory()",
        "file = folder.name + '/a.parquet'",
        "pyarrow.parquet.write_table(pyarrow.table({{'x': [1.0, 2.0]}}), file)",
        "{}(file)['x'].tolist()",
    ),
    "nn.CTCLoss": (
        "",
        "logits = ad.nn.log_softmax(ad.zeros((3, 1, 2)), axis=-1)",
        "{}()(logits, ad.tensor([[1]]), ad.tensor([3]), ad.tensor([1]))",
    ),
    "nn.PositionalEncoding": ("", "{}()(ad.zeros((1, 2, 4)))"),
    "optim.Average": ("", "isinstance(ad.optim.EMA(), {})"),
    "optim.AverageState": ("", "isinstance(ad.optim.EMA().init([ad.tensor(1.0)]), {})"),
    "optim.AveragingOptimizer": ("", "isinstance(ad.optim.ScheduleFreeSGD(lr=0.1), {})"),
    "optim.EMA": (
        "",
        "average = {}(decay=0.5)",
        "state = average.update(average.init([ad.tensor(1.0)]), [ad.tensor(1.0)])",
        "average.model(average.update(state, [ad.tensor(3.0)]), [ad.tensor(0.0)])",
    ),
    "optim.SWA": (
        "",
        "average = {}()",
        "state = average.update(average.init([ad.tensor(1.0)]), [ad.tensor(1.0)])",
        "average.model(average.update(state, [ad.tensor(3.0)]), [ad.tensor(0.0)])",
    ),
    "optim.PlateauState": ("", "isinstance(ad.optim.Plateau().init(0.1), {})"),
    "optim.ScaleState": ("", "isinstance(ad.optim.GradScaler().init(), {})"),
    "optim.State": ("", "isinstance(ad.optim.SGD(lr=0.1).init([ad.tensor(1.0)]), {})"),
    "testing.GradsReport": (
        "",
        "report = ad.testing.grads_report(ad.sin, (0.5,))",
        "isinstance(report, {}), report.ok",
    ),
    "train.Run": (
        "",
        "class Twice(ad.train.Callback):\n    def step(self, run):\n        if run.step == 2: run.stop('twice')",
        "pairs = [(ad.ones((4, 2)), ad.ones((4, 1)))] * 3",
        "learner = ad.train.Learner(ad.nn.Linear(2, 1), ad.nn.mse_loss, ad.optim.SGD(lr=0.1), callbacks=[Twice()])",
        "model, history = learner.fit(pairs, epochs=9)",
        "len(history.steps['loss'])",
    ),
    "train.load": (
        "safetensors",
        "import tempfile",
        "folder = tempfile.TemporaryDirectory()",
        "file = folder.name + '/model'",
        "ad.train.save(file, [ad.tensor(1.0)], {{'epoch': 3}})",
        "{}(file, [ad.tensor(0.0)])",
    ),
    "tree.unflatten": ("", "{}(ad.tree.structure([0, (0,)]), [1.0, 2.0])"),
}


@functools.cache
def table() -> dict[str, str]:
    return {name: call for call, names in CALLS.items() for name in names.split()}


def example(full: str) -> str:
    """The lines of an example of a public name, as a session of Python shows them; "" where there is none here.

    Where the library that it needs is missing, what it gives is left out.
    """
    if (call := table().get(full)) is not None:
        library, lines = "", [call]
    elif full in PROGRAMS:
        library, *lines = PROGRAMS[full]
    else:
        return ""
    lines = [line.format(f"ad.{full}") for line in lines]
    shown = "\n".join([">>> " + line.replace("\n", "\n... ") for line in ["import adjoint as ad", *lines]])
    if library and importlib.util.find_spec(library) is None:
        return f"\n\n{shown}\n"
    scope: dict[str, Any] = {"ad": ad}
    exec("\n".join(lines[:-1]), scope)
    said = repr(eval(lines[-1], scope))
    for value in scope.values():
        if isinstance(value, tempfile.TemporaryDirectory):
            value.cleanup()
    return f"\n\n{shown}\n{said}\n"
