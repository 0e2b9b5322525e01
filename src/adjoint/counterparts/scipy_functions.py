"""SciPy's functions, and what is here for them."""

_ROOT = "ad.implicit.root, which has derivatives"
_MINIMUM = "ad.scipy.minimize, or ad.implicit.minimize, whose result has derivatives"
_INTEGRAL = "ad.trapezoid, or a sum over the nodes of a quadrature rule"
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
    "scipy.integrate.simpson": "ad.trapezoid",
    "scipy.integrate.solve_bvp": "ad.implicit.root of the equations at the points of a mesh",
    "scipy.integrate.cumulative_simpson": "ad.cumulative_trapezoid",
    "scipy.interpolate.interp1d": "ad.interp",
    **{
        f"scipy.interpolate.{name}": _LINEAR.format(name)
        for name in "BarycentricInterpolator CubicSpline KroghInterpolator make_interp_spline".split()
    },
    "scipy.linalg.cho_factor": "ad.linalg.cholesky",
    "scipy.linalg.cho_solve": "ad.linalg.cholesky_solve",
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
    **{
        f"scipy.sparse.linalg.{name}": "ad.linalg.solve, or ad.implicit.root with linear_solver="
        for name in "bicg bicgstab cg gmres lgmres minres spsolve".split()
    },
    "scipy.spatial.distance.cdist": "ad.cdist",
    "scipy.spatial.distance.cityblock": "abs(x - y).sum()",
    "scipy.spatial.distance.cosine": "1 - ad.nn.cosine_similarity(x, y, axis=0)",
    "scipy.spatial.distance.euclidean": "ad.linalg.vector_norm(x - y)",
    "scipy.spatial.distance.pdist": "ad.nn.pdist",
    "scipy.spatial.distance.sqeuclidean": "((x - y) ** 2).sum()",
}
