"""SciPy's functions, and what is here for them; "" where the function of that name here is another one."""

_ROOT = "ad.implicit.root, which has derivatives"
_MINIMUM = "ad.scipy.minimize, or ad.implicit.minimize, whose result has derivatives"
_INTEGRAL = "ad.trapezoid, or a sum over the nodes of a quadrature rule"
_ON_GRIDS = "ad.nn.grid_sample"
_PRODUCT = (
    "S.toarray() @ x; of a large S, ad.external(lambda x: S @ x, vjp=lambda g, x: S.T @ g, jvp=lambda t, x: S @ t)"
)
_OPERATORS = {
    "__matmul__": _PRODUCT,
    "__mul__": "S.toarray() * x",
    "__rmatmul__": "x @ S.toarray()",
    "__rmul__": "x * S.toarray()",
    "__truediv__": "S.toarray() / x",
    "dot": _PRODUCT,
    "multiply": "S.toarray() * x",
}
_LINEAR = "scipy.interpolate.{}(x, np.eye(len(x)))(t) @ y, as it is linear in y"
SCIPY = {
    **dict.fromkeys(
        [f"scipy.integrate.{name}" for name in "BDF DOP853 LSODA RK23 RK45 Radau ode odeint solve_ivp".split()],
        "ad.odeint",
    ),
    **{
        f"scipy.integrate.{name}": _INTEGRAL
        for name in "dblquad fixed_quad nquad quad quad_vec romb tanhsinh tplquad".split()
    },
    "scipy.fftpack.diff": "ad.fft.ifft of a multiple of ad.fft.fft(x)",
    "scipy.integrate.simpson": "ad.trapezoid",
    "scipy.integrate.solve_bvp": "ad.implicit.root of the equations at the points of a mesh",
    "scipy.integrate.cumulative_simpson": "ad.cumulative_trapezoid",
    "scipy.interpolate.insert": "",
    "scipy.interpolate.interp1d": "ad.interp",
    **{
        f"scipy.interpolate.{name}": _LINEAR.format(name)
        for name in "BarycentricInterpolator CubicSpline KroghInterpolator make_interp_spline".split()
    },
    "scipy.linalg.cho_factor": "ad.linalg.cholesky",
    "scipy.linalg.cho_solve": "ad.linalg.cholesky_solve",
    "scipy.ndimage.convolve": "ad.nn.conv2d of an image, with the weights flipped, and ad.convolve of two vectors",
    "scipy.ndimage.correlate": "ad.nn.conv2d of an image, and ad.correlate of two vectors",
    **{
        f"scipy.ndimage.{name}": "ad.nn.conv2d with the weights of the filter"
        for name in "gaussian_filter gaussian_laplace laplace prewitt sobel uniform_filter".split()
    },
    **{
        f"scipy.ndimage.{name}": _ON_GRIDS
        for name in "affine_transform geometric_transform map_coordinates rotate shift".split()
    },
    "scipy.ndimage.maximum": "ad.max, and ad.segment_max by labels",
    "scipy.ndimage.maximum_filter": "ad.nn.max_pool2d with stride=1",
    "scipy.ndimage.mean": "ad.mean, and ad.segment_mean by labels",
    "scipy.ndimage.minimum": "ad.min, and ad.segment_min by labels",
    "scipy.ndimage.minimum_filter": "-ad.nn.max_pool2d(-x) with stride=1",
    "scipy.ndimage.sum": "ad.sum, and ad.segment_sum by labels",
    "scipy.ndimage.sum_labels": "ad.segment_sum",
    "scipy.ndimage.zoom": "ad.nn.interpolate",
    **{
        f"scipy.optimize.{name}": _MINIMUM
        for name in (
            "basinhopping bracket brent brute differential_evolution direct dual_annealing fmin fmin_bfgs fmin_cg "
            "fmin_cobyla fmin_l_bfgs_b fmin_ncg fmin_powell fmin_slsqp fmin_tnc fminbound golden line_search minimize "
            "minimize_scalar shgo"
        ).split()
    },
    "scipy.optimize.approx_fprime": "ad.grad or ad.jacobian, which are exact",
    "scipy.optimize.check_grad": "ad.testing.check_grads",
    "scipy.optimize.leastsq": "ad.scipy.least_squares",
    "scipy.optimize.lsq_linear": "ad.scipy.least_squares, or ad.linalg.lstsq where there are no bounds",
    "scipy.optimize.root": f"ad.scipy.root, or {_ROOT}",
    "scipy.optimize.fixed_point": "ad.implicit.fixed_point, which has derivatives",
    **{
        f"scipy.optimize.{name}": _ROOT
        for name in (
            "anderson bisect brenth brentq broyden1 broyden2 diagbroyden excitingmixing fsolve linearmixing newton "
            "newton_krylov ridder root_scalar toms748"
        ).split()
    },
    "scipy.signal.fftconvolve": "ad.convolve",
    "scipy.signal.oaconvolve": "ad.convolve",
    "scipy.signal.convolve2d": "ad.nn.conv2d, with the weights flipped",
    "scipy.signal.correlate2d": "ad.nn.conv2d",
    "scipy.signal.istft": "ad.fft.istft",
    "scipy.signal.lfilter": "ad.convolve for b alone, and ad.scan over the time",
    "scipy.signal.savgol_filter": "ad.convolve(x, scipy.signal.savgol_coeffs(n, k), 'same')",
    "scipy.signal.sawtooth": "2 * (t / (2 * np.pi) % 1) - 1",
    "scipy.signal.square": "ad.sign(ad.sin(t))",
    "scipy.signal.stft": "ad.fft.stft",
    **{
        f"scipy.sparse.{kind}_array.{name}": use
        for kind in "bsr coo csc csr dia dok lil".split()
        for name, use in _OPERATORS.items()
    },
    **{
        f"scipy.sparse.linalg.{name}": "ad.linalg.solve, or ad.implicit.root with linear_solver="
        for name in (
            "bicg bicgstab cg cgs factorized gcrotmk gmres lgmres minres qmr splu spsolve spsolve_triangular tfqmr"
        ).split()
    },
    **{
        f"scipy.sparse.{kind}_matrix.{name}": _PRODUCT
        for kind in "bsr coo csc csr dia dok lil".split()
        for name in ("__mul__", "__matmul__", "dot")
    },
    "scipy.sparse.linalg.aslinearoperator": "ad.implicit.root with linear_solver=",
    "scipy.sparse.linalg.eigs": "ad.linalg.eig",
    "scipy.sparse.linalg.eigsh": "ad.linalg.eigh",
    "scipy.sparse.linalg.expm_multiply": "ad.linalg.expm(A) @ b",
    "scipy.sparse.linalg.lobpcg": "ad.linalg.eigh",
    "scipy.sparse.linalg.lsmr": "ad.linalg.lstsq",
    "scipy.sparse.linalg.lsqr": "ad.linalg.lstsq",
    "scipy.sparse.linalg.svds": "ad.linalg.svd, or ad.linalg.svd_lowrank",
    "scipy.spatial.distance_matrix": "ad.cdist",
    "scipy.spatial.distance.chebyshev": "ad.linalg.vector_norm(x - y, ord=np.inf)",
    "scipy.spatial.distance.minkowski": "ad.linalg.vector_norm(x - y, ord=p)",
    "scipy.spatial.distance.cdist": "ad.cdist",
    "scipy.spatial.distance.cityblock": "abs(x - y).sum()",
    "scipy.spatial.distance.cosine": "1 - ad.nn.cosine_similarity(x, y, axis=0)",
    "scipy.spatial.distance.euclidean": "ad.linalg.vector_norm(x - y)",
    "scipy.spatial.distance.pdist": "ad.nn.pdist",
    "scipy.spatial.distance.sqeuclidean": "((x - y) ** 2).sum()",
}
