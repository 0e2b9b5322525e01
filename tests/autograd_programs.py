"""Whole programs as users of HIPS autograd write them: one function of a package, of either library.

`of(name)` gives a module of the package, as in `of("numpy.random")`. Each program returns what is compared. `put` makes
the arrays that it starts from: NumPy's own, or those of another library.
"""

from __future__ import annotations

import string
from typing import Any

import numpy

Of = Any  # modules by name; "" is the package itself
Put = Any


def _rng(seed: int = 0) -> numpy.random.Generator:
    return numpy.random.default_rng(seed)


def classifier(of: Of, put: Put) -> Any:
    """A network of two layers with weight decay, by Adam over a list of pairs."""
    np, grad = of("numpy"), of("").grad
    from_scipy = of("scipy.special")
    rng = _rng()
    inputs, labels = put(rng.normal(size=(20, 5))), put(numpy.eye(3)[rng.integers(0, 3, 20)])
    start = [(put(0.3 * rng.normal(size=(m, n))), put(numpy.zeros(n))) for m, n in ((5, 7), (7, 3))]

    def scores(layers: Any, x: Any) -> Any:
        for weights, bias in layers:
            out = np.dot(x, weights) + bias
            x = np.tanh(out)
        return out - from_scipy.logsumexp(out, axis=1, keepdims=True)

    def loss(layers: Any, i: Any) -> Any:
        flat, _ = of("misc.flatten").flatten(layers)
        rows = slice(5 * (i % 4), 5 * (i % 4) + 5)
        return 0.1 * np.dot(flat, flat) - np.sum(scores(layers, inputs[rows]) * labels[rows])

    trained = of("misc.optimizers").adam(grad(loss), start, num_iters=8, step_size=0.01)
    return [trained, loss(trained, 0), np.sum(np.argmax(scores(trained, inputs), axis=1) == np.argmax(labels, axis=1))]


def recurrent(of: Of, put: Put) -> Any:
    """A recurrent network over letters, with a dictionary of parameters."""
    np, value_and_grad = of("numpy"), of("").value_and_grad
    text = "how now brown cow"
    letters = string.ascii_lowercase + " "
    onehot = put(numpy.eye(27)[[letters.index(c) for c in text]][:, None, :])
    rng = _rng(1)
    sizes = {"start": (1, 6), "change": (27 + 6 + 1, 6), "predict": (6 + 1, 27)}
    params = {name: put(0.4 * rng.normal(size=size)) for name, size in sizes.items()}

    def joined(*parts: Any) -> Any:
        return np.hstack([*parts, np.ones((parts[0].shape[0], 1))])

    def loss(params: Any) -> Any:
        state, total = np.repeat(params["start"], onehot.shape[1], axis=0), 0.0
        for t in range(len(text) - 1):
            state = np.tanh(np.dot(joined(onehot[t], state), params["change"]))
            logits = np.dot(joined(state), params["predict"])
            total = total - np.sum(
                (logits - of("scipy.special").logsumexp(logits, axis=1, keepdims=True)) * onehot[t + 1]
            )
        return total / len(text)

    value, slopes = value_and_grad(loss)(params)
    return [value, [slopes[name] for name in sizes]]


def long_memory(of: Of, put: Put) -> Any:
    """An LSTM whose gates are one product that is split, by RMSprop."""
    np, grad = of("numpy"), of("").grad
    rng = _rng(2)
    sequence = put(rng.normal(size=(6, 3, 4)))
    start = {"gates": put(0.3 * rng.normal(size=(4 + 5 + 1, 20))), "out": put(0.3 * rng.normal(size=(5, 4)))}

    def sigmoid(x: Any) -> Any:
        return 0.5 * (np.tanh(x / 2.0) + 1.0)

    def loss(params: Any, i: int) -> Any:
        hidden = cell = put(numpy.zeros((3, 5)))
        error = 0.0
        for t in range(5):
            gates = np.dot(np.concatenate((sequence[t], hidden, put(numpy.ones((3, 1)))), axis=1), params["gates"])
            change, ignore, forget, keep = np.split(gates, 4, axis=1)
            cell = sigmoid(ignore) * np.tanh(change) + sigmoid(forget) * cell
            hidden = sigmoid(keep) * np.tanh(cell)
            error = error + np.mean((np.dot(hidden, params["out"]) - sequence[t + 1]) ** 2)
        return error

    trained = of("misc.optimizers").rmsprop(grad(loss), start, num_iters=5, step_size=0.01)
    return [trained["gates"], trained["out"], loss(trained, 0)]


def gaussian_process(of: Of, put: Put) -> Any:
    """The marginal likelihood of a Gaussian process by its settings, and what it predicts."""
    np, value_and_grad, hessian = of("numpy"), of("").value_and_grad, of("").hessian
    normal = of("scipy.stats").multivariate_normal
    x = put(numpy.linspace(-2.0, 2.0, 8)[:, None])
    y = put(numpy.sin(3 * numpy.linspace(-2.0, 2.0, 8)))
    places = put(numpy.linspace(-3.0, 3.0, 5)[:, None])

    def kernel(settings: Any, a: Any, b: Any) -> Any:
        distance = np.expand_dims(a / np.exp(settings[1:]), 1) - np.expand_dims(b / np.exp(settings[1:]), 0)
        return np.exp(settings[0]) * np.exp(-0.5 * np.sum(distance**2, axis=2))

    def likelihood(params: Any) -> Any:
        mean, noise, settings = params[0], np.exp(params[1]) + 0.001, params[2:]
        covariance = kernel(settings, x, x) + noise * np.eye(len(y))
        return normal.logpdf(y, mean * np.ones(len(y)), covariance)

    def predicted(params: Any) -> Any:
        covariance = kernel(params[2:], x, x) + np.exp(params[1]) * np.eye(len(y))
        across = kernel(params[2:], places, x)
        mean = params[0] + np.dot(across, np.linalg.solve(covariance, y - params[0]))
        rest = kernel(params[2:], places, places) - np.dot(across, np.linalg.solve(covariance, across.T))
        return np.concatenate([mean, np.diag(rest)])

    params = put(numpy.array([0.1, -1.0, 0.3, -0.2]))
    return [*value_and_grad(likelihood)(params), hessian(likelihood)(params), of("").jacobian(predicted)(params)]


def black_box_inference(of: Of, put: Put) -> Any:
    """Stochastic variational inference of two numbers, whose noise is drawn by the package's generator."""
    np, norm = of("numpy"), of("scipy.stats").norm
    generator = of("numpy.random").RandomState(0)

    def density(x: Any) -> Any:
        return norm.logpdf(x[:, 1], 0.0, 1.35) + norm.logpdf(x[:, 0], 0.0, np.exp(x[:, 1]))

    def objective(params: Any, i: int) -> Any:
        mean, log_std = params[:2], params[2:]
        samples = generator.randn(10, 2) * np.exp(log_std) + mean
        entropy = 0.5 * 2 * (1.0 + np.log(2 * np.pi)) + np.sum(log_std)
        return -(entropy + np.mean(density(samples)))

    start = put(numpy.array([-1.0, -1.0, -5.0, -5.0]))
    return of("misc.optimizers").adam(of("").grad(objective), start, step_size=0.1, num_iters=12)


def mixture(of: Of, put: Put) -> Any:
    """A mixture of Gaussians by SciPy's Newton method, with products of the Hessian."""
    import scipy.optimize

    np, special = of("numpy"), of("scipy.special")
    normal = of("scipy.stats").multivariate_normal
    rng = _rng(3)
    data = numpy.concatenate([rng.normal(size=(15, 2)) * 0.4 + centre for centre in ([0, 2], [2, 0])])
    start = {"weights": numpy.zeros(2), "means": rng.normal(size=(2, 2)), "roots": [numpy.eye(2), 1.5 * numpy.eye(2)]}
    flat, unflatten = of("misc.flatten").flatten(start)

    def loss(vector: Any) -> Any:
        params = unflatten(vector)
        weights = params["weights"] - special.logsumexp(params["weights"])
        parts = [
            w + normal.logpdf(data, mean, np.dot(root.T, root) + 1e-3 * np.eye(2))
            for w, mean, root in zip(weights, params["means"], params["roots"])  # noqa: B905  boxes have no length
        ]
        return -np.sum(special.logsumexp(np.vstack(parts), axis=0)) + 0.1 * np.sum(vector**2)

    value_and_slope, product = of("").value_and_grad(loss), of("").hessian_vector_product(loss)
    found = scipy.optimize.minimize(
        value_and_slope, flat, jac=True, hessp=product, method="trust-ncg", options={"maxiter": 6}
    )
    return [flat, value_and_slope(flat), product(flat, numpy.arange(float(flat.size))), found.x, found.fun]


def convolutions(of: Of, put: Put) -> Any:
    """A network of a convolution along two axes, pooling, and a product."""
    np, convolve = of("numpy"), of("scipy.signal").convolve
    rng = _rng(4)
    images, labels = put(rng.normal(size=(3, 1, 9, 9))), put(numpy.eye(4)[[0, 2, 3]])
    shapes = {"filters": (1, 5, 4, 4), "bias": (1, 5, 1, 1), "last": (45, 4)}
    params = {name: put(0.3 * rng.normal(size=shape)) for name, shape in shapes.items()}

    def loss(params: Any) -> Any:
        maps = convolve(images, params["filters"], axes=([2, 3], [2, 3]), dot_axes=([1], [0]), mode="valid")
        maps = maps + params["bias"]
        pooled = np.max(np.max(maps.reshape((3, 5, 3, 2, 3, 2)), axis=3), axis=4)
        out = np.dot(np.maximum(pooled, 0.0).reshape((3, 45)), params["last"])
        out = out - of("scipy.special").logsumexp(out, axis=1, keepdims=True)
        return -np.sum(out * labels)

    slopes = of("").grad(loss)(params)
    return [loss(params), [slopes[name] for name in shapes]]


def fluid(of: Of, put: Put) -> Any:
    """A flow is projected and carried along, and its first velocities are fitted to a picture."""
    np = of("numpy")
    rng = _rng(5)
    n, steps = 6, 3
    density, target = put(rng.uniform(size=(n, n))), put(rng.uniform(size=(n, n)))
    rows, columns = numpy.meshgrid(numpy.arange(n), numpy.arange(n), indexing="ij")

    def project(vx: Any, vy: Any) -> Any:
        p = np.zeros(vx.shape)
        div = (
            -0.5
            / n
            * (np.roll(vx, -1, axis=0) - np.roll(vx, 1, axis=0) + np.roll(vy, -1, axis=1) - np.roll(vy, 1, axis=1))
        )
        for _ in range(4):
            p = (div + sum([np.roll(p, k, axis=i) for k in (1, -1) for i in (0, 1)])) / 4.0
        return (
            vx - 0.5 * n * (np.roll(p, -1, axis=0) - np.roll(p, 1, axis=0)),
            vy - 0.5 * n * (np.roll(p, -1, axis=1) - np.roll(p, 1, axis=1)),
        )

    def advect(f: Any, vx: Any, vy: Any) -> Any:
        x, y = (rows - vx).ravel(), (columns - vy).ravel()
        left, top = np.array(np.floor(x), dtype=int), np.array(np.floor(y), dtype=int)
        rw, bw = x - left, y - top
        left, right, top, bottom = left % n, (left + 1) % n, top % n, (top + 1) % n
        flat = (1 - rw) * ((1 - bw) * f[left, top] + bw * f[left, bottom]) + rw * (
            (1 - bw) * f[right, top] + bw * f[right, bottom]
        )
        return np.reshape(flat, (n, n))

    def loss(params: Any) -> Any:
        vx, vy = np.reshape(params[: n * n], (n, n)), np.reshape(params[n * n :], (n, n))
        smoke = density
        for _ in range(steps):
            vx, vy = project(advect(vx, vx, vy), advect(vy, vx, vy))
            smoke = advect(smoke, vx, vy)
        return np.mean((target - smoke) ** 2)

    return of("").value_and_grad(loss)(put(0.3 * rng.normal(size=2 * n * n)))


def adversaries(of: Of, put: Put) -> Any:
    """Two networks against each other, by two gradients of one function."""
    np, grad = of("numpy"), of("").grad
    rng = _rng(6)
    real = put(rng.normal(size=(8, 2)) + 2.0)
    sizes = {"maker": [(3, 6), (6, 2)], "judge": [(2, 6), (6, 1)]}
    both = [[(put(0.5 * rng.normal(size=s)), put(numpy.zeros(s[1]))) for s in sizes[k]] for k in sizes]

    def net(layers: Any, x: Any) -> Any:
        for k, (w, b) in enumerate(layers):
            x = np.dot(x, w) + b
            if k + 1 < len(layers):
                x = np.maximum(x, 0.01 * x)
        return x

    def objective(maker: Any, judge: Any, noise: Any) -> Any:
        of_fake, of_real = net(judge, net(maker, noise)), net(judge, real)
        return np.mean(-np.logaddexp(0.0, -of_real)) + np.mean(-np.logaddexp(0.0, of_fake))

    maker, judge = both
    for _ in range(3):
        noise = put(rng.normal(size=(8, 3)))
        down, up = grad(objective, 0)(maker, judge, noise), grad(objective, 1)(maker, judge, noise)
        maker = [(w - 0.1 * dw, b - 0.1 * db) for (w, b), (dw, db) in zip(maker, down, strict=True)]
        judge = [(w + 0.1 * dw, b + 0.1 * db) for (w, b), (dw, db) in zip(judge, up, strict=True)]
    return [maker, judge]


def autoencoder(of: Of, put: Put) -> Any:
    """A variational autoencoder, whose encoder's result is cut into halves."""
    np, norm = of("numpy"), of("scipy.stats").norm
    rng = _rng(7)
    data, noise = put(rng.integers(0, 2, (6, 8)).astype(float)), put(rng.normal(size=(6, 2)))
    shapes = [(8, 4), (2, 8)]
    start = [put(0.5 * rng.normal(size=s)) for s in shapes]

    def bound(params: Any, i: int) -> Any:
        encode, decode = params
        both = np.dot(data, encode)
        mean, spread = both[:, :2], np.log1p(np.exp(both[:, 2:]))
        latents = mean + spread * noise
        logits = np.dot(latents, decode)
        fit = np.sum(-np.logaddexp(0.0, -logits * (2 * data - 1)), axis=-1)
        prior = np.sum(norm.logpdf(latents, 0.0, 1.0) - norm.logpdf(latents, mean, spread), axis=-1)
        return -np.mean(fit + prior)

    trained = of("misc.optimizers").sgd(of("").grad(bound), start, num_iters=5, step_size=0.05)
    return [trained, bound(trained, 0)]


def hidden_states(of: Of, put: Put) -> Any:
    """Expected counts of a hidden Markov model are the gradient of what its messages sum to."""
    np, logsumexp = of("numpy"), of("scipy.special").logsumexp
    rng = _rng(8)
    tables = [numpy.log(rng.dirichlet(numpy.ones(k), size=s)) for k, s in ((3, None), (3, 3), (4, 3))]
    seen = rng.integers(0, 4, 9)

    def total(tables: Any) -> Any:
        first, moves, shown = tables
        message = first + shown[:, seen[0]]
        for y in seen[1:]:
            message = logsumexp(message[:, np.newaxis] + moves, axis=0) + shown[:, y]
        return logsumexp(message)

    counts = of("").grad(total)(tuple(map(put, tables)))
    again = [c / np.sum(c, axis=-1, keepdims=True) for c in counts]
    return [total(tables), counts, again]


def counts_of_failures(of: Of, put: Put) -> Any:
    """A negative binomial distribution is fitted by SciPy, with the gradient and the Hessian."""
    import scipy.optimize

    np, special = of("numpy"), of("scipy.special")
    data = numpy.array([3.0, 1.0, 4.0, 1.0, 5.0, 9.0, 2.0])

    def loss(params: Any) -> Any:
        r, p = np.exp(params[0]), 1 / (1 + np.exp(-params[1]))
        terms = special.gammaln(data + r) - special.gammaln(r) - special.gammaln(data + 1)
        return -np.sum(terms + data * np.log(p) + r * np.log1p(-p))

    start = numpy.array([0.5, 0.2])
    slope, second = of("").grad(loss), of("").hessian(loss)
    found = scipy.optimize.minimize(loss, start, jac=slope, hess=second, method="trust-exact")
    return [slope(start), second(start), found.x]


def next_experiment(of: Of, put: Put) -> Any:
    """Expected improvement by the cumulative normal distribution, and where it is largest."""
    import scipy.optimize

    np, norm = of("numpy"), of("scipy.stats").norm
    known = numpy.array([-1.0, 0.3, 1.2])
    heights = numpy.sin(2 * known)

    def improvement(x: Any) -> Any:
        near = np.exp(-0.5 * (np.expand_dims(x, 1) - np.expand_dims(known, 0)) ** 2)
        inside = np.exp(-0.5 * (known[:, None] - known[None, :]) ** 2) + 0.01 * np.eye(3)
        mean = np.dot(near, np.linalg.solve(inside, heights))
        std = np.sqrt(1.01 - np.diag(np.dot(near, np.linalg.solve(inside, near.T))))
        z = (mean - np.max(heights)) / std
        return np.sum(std * (z * norm.cdf(z) + norm.pdf(z)))

    value_and_slope = of("").value_and_grad(lambda x: -improvement(x))
    found = scipy.optimize.minimize(value_and_slope, numpy.array([0.7]), jac=True, method="L-BFGS-B", bounds=[(-2, 2)])
    return [value_and_slope(numpy.array([0.5])), of("").hessian(improvement)(numpy.array([0.5])), found.x]


def components(of: Of, put: Put) -> Any:
    """Independent components: the log determinant of a matrix of weights, and a heavy-tailed density."""
    np, t = of("numpy"), of("scipy.stats").t
    signals = put(_rng(9).normal(size=(12, 3)))

    def loss(weights: Any) -> Any:
        return -np.sum(t.logpdf(np.dot(signals, weights), 1.1)) - 12 * np.linalg.slogdet(weights)[1]

    start = put(numpy.eye(3) + 0.1 * _rng(10).normal(size=(3, 3)))
    ahead = of("differential_operators").make_jvp_reversemode(loss)(start)(put(numpy.ones((3, 3))))
    back = of("").make_vjp(loss)(start)
    return [*of("").value_and_grad(loss)(start), ahead, back[1], back[0](put(numpy.array(2.0)))]


def latent_variables(of: Of, put: Put) -> Any:
    """A Gaussian process of latent places, a deep one: gradients by a dictionary of nested lists."""
    np = of("numpy")
    normal = of("scipy.stats").multivariate_normal
    rng = _rng(11)
    data = put(rng.normal(size=(5, 3)))
    start = {"latent": [put(rng.normal(size=(5, 2)))], "settings": (put(numpy.array([0.2, 0.1])), {"noise": 0.1})}

    def loss(params: Any) -> Any:
        (latent,), (settings, noise) = params["latent"], params["settings"]
        squares = np.sum((latent[:, None, :] - latent[None, :, :]) ** 2 * np.exp(settings), axis=-1)
        covariance = np.exp(-squares) + np.exp(noise["noise"]) * np.eye(5)
        likelihood = sum([normal.logpdf(data[:, k], np.zeros(5), covariance) for k in range(3)])
        return -likelihood + 0.5 * np.sum(latent**2)

    value, slopes = of("").value_and_grad(loss)(start)
    return [value, slopes["latent"][0], slopes["settings"][0], slopes["settings"][1]["noise"]]


def spiral(of: Of, put: Put) -> Any:
    """A network in a differential equation."""
    np, odeint = of("numpy"), of("scipy.integrate").odeint
    rng = _rng(12)
    times, y0 = numpy.linspace(0.0, 1.0, 4), numpy.array([2.0, 0.0])
    target = rng.normal(size=(4, 2))
    start = [(0.3 * rng.normal(size=s), numpy.zeros(s[1])) for s in ((2, 5), (5, 2))]
    flat, unflatten = of("misc.flatten").flatten(start)

    def slope(y: Any, t: Any, params: Any) -> Any:
        (w1, b1), (w2, b2) = unflatten(params)
        return np.dot(np.tanh(np.dot(y**3, w1) + b1), w2) + b2

    def loss(params: Any) -> Any:
        return np.mean(
            (odeint(slope, y0, times, of("builtins").tuple((params,)), rtol=1e-10, atol=1e-10) - target) ** 2
        )

    return [loss(flat), of("").grad(loss)(flat)]


def own_rule(of: Of, put: Put) -> Any:
    """A function with a rule, below a square root that is found by a fixed point."""
    np, extend = of("numpy"), of("extend")

    @extend.primitive
    def logsumexp(x: Any) -> Any:
        return numpy.max(x) + numpy.log(numpy.sum(numpy.exp(x - numpy.max(x))))

    extend.defvjp(logsumexp, lambda ans, x: lambda g: g * np.exp(x - ans))
    newton = lambda a: lambda x: 0.5 * (x + a / x)
    fixed_point = of("misc.fixed_points").fixed_point
    root = lambda a: fixed_point(newton, a, 1.0, lambda x, y: np.abs(x - y), 1e-12)
    x = put(numpy.array([1.5, 0.7, 0.1]))
    f = lambda x: logsumexp(x * x) * root(2.0 + x[0])
    return [f(x), of("").grad(f)(x), of("").hessian(lambda x: logsumexp(x * x))(x)]


def rosenbrock(of: Of, put: Put) -> Any:
    """Newton's method, quasi-Newton methods, Gauss-Newton products, and derivatives up to the third."""
    import scipy.optimize

    np, a = of("numpy"), of("")

    def f(x: Any) -> Any:
        return 100 * np.sum((x[1:] - x[:-1] ** 2) ** 2) + np.sum((1 - x[:-1]) ** 2)

    start = numpy.array([0.3, -0.2, 0.5])
    found = scipy.optimize.minimize(a.value_and_grad(f), start, method="BFGS", jac=True, options={"maxiter": 8})
    newton = start - np.linalg.solve(a.hessian(f)(start), a.grad(f)(start))
    residuals = lambda x: np.concatenate([10 * (x[1:] - x[:-1] ** 2), 1 - x[:-1]])
    third = a.jacobian(a.hessian(f))(start)
    return [found.x, newton, a.make_ggnvp(residuals)(start)(numpy.ones(3)), third, a.make_hvp(f)(start)[0](start)]


def series(of: Of, put: Put) -> Any:
    """A sine by its series in a loop that looks at values, and its derivatives element by element."""
    np, each = of("numpy"), of("").elementwise_grad

    def sine(x: Any) -> Any:
        term = total = x
        i = 0
        while np.max(np.abs(term)) > 1e-14:
            term = -term * x * x / ((2 * i + 3) * (2 * i + 2))
            total, i = total + term, i + 1
        return total

    x = put(numpy.linspace(-2.0, 2.0, 5))
    return [sine(x), each(sine)(x), each(each(sine))(x), each(each(each(sine)))(x)]


def natural_gradient(of: Of, put: Put) -> Any:
    """A step along the natural gradient: products with Fisher's matrix, solved by conjugate gradients."""
    import scipy.sparse.linalg

    np, a = of("numpy"), of("")
    rng = _rng(13)
    x, y = rng.normal(size=(9, 4)), rng.integers(0, 2, 9)

    def logits(w: Any) -> Any:
        return np.dot(x, np.tanh(w))

    def loss(w: Any) -> Any:
        out = logits(w)
        return np.mean(np.logaddexp(0.0, np.where(y > 0, -out, out)))

    w = 0.3 * rng.normal(size=4)
    rows = a.jacobian(logits)(w)
    product = a.make_ggnvp(logits, lambda out: np.sum(np.logaddexp(0.0, out)))(w)
    matrix = scipy.sparse.linalg.LinearOperator((4, 4), lambda v: product(v.ravel()) + 0.1 * v.ravel(), dtype=float)
    step, _ = scipy.sparse.linalg.cg(matrix, a.grad(loss)(w), rtol=1e-12)
    return [rows, product(numpy.ones(4)), step]


def spectrum(of: Of, put: Put) -> Any:
    """A signal fitted to amplitudes of its spectrum, through complex numbers."""
    np, a = of("numpy"), of("")
    rng = _rng(14)
    target = put(numpy.abs(numpy.fft.rfft(rng.normal(size=8))))

    def loss(x: Any) -> Any:
        return np.sum((np.abs(np.fft.rfft(x)) - target) ** 2)

    def phases(z: Any) -> Any:
        return np.sum(np.real(np.conj(z) * np.exp(1j * np.angle(z + 1.0))))

    z = put(rng.normal(size=3) + 1j * rng.normal(size=3))
    x = put(rng.normal(size=8))
    return [*a.value_and_grad(loss)(x), a.grad(phases)(z), a.holomorphic_grad(lambda z: np.sum(z**3))(z)]


def filtering(of: Of, put: Put) -> Any:
    """Kalman's filter: inverses, determinants and einsum, by a tuple of matrices."""
    np = of("numpy")
    rng = _rng(15)
    seen = put(rng.normal(size=(5, 2)))

    def likelihood(move: Any, look: Any, noise: Any) -> Any:
        mean, spread, total = np.zeros(3), np.eye(3), 0.0
        for y in seen:
            mean, spread = np.dot(move, mean), np.dot(np.dot(move, spread), move.T) + np.exp(noise) * np.eye(3)
            of_y = np.einsum("ij,jk,lk->il", look, spread, look) + 0.5 * np.eye(2)
            inverse, rest = np.linalg.inv(of_y), y - np.dot(look, mean)
            total = total - 0.5 * (np.dot(rest, np.dot(inverse, rest)) + np.log(np.linalg.det(of_y)))
            gain = np.dot(np.dot(spread, look.T), inverse)
            mean, spread = mean + np.dot(gain, rest), spread - np.dot(np.dot(gain, look), spread)
        return total

    args = put(0.5 * rng.normal(size=(3, 3))), put(rng.normal(size=(2, 3))), 0.1
    return of("").value_and_grad(likelihood, (0, 1, 2))(*args)


PROGRAMS = {
    f.__name__: f
    for f in (
        classifier, recurrent, long_memory, gaussian_process, black_box_inference, mixture, convolutions, fluid,
        adversaries, autoencoder, hidden_states, counts_of_failures, next_experiment, components, latent_variables,
        spiral, own_rule, rosenbrock, series, natural_gradient, spectrum, filtering,
    )
}  # fmt: skip

# SciPy's searches, and rules of users that call NumPy, take NumPy's arrays alone
OF_NUMPY = {"mixture", "counts_of_failures", "next_experiment", "spiral", "own_rule", "rosenbrock", "natural_gradient"}
