"""ba: cameras and points that observations determine.  ht: the pose of a hand.  Both Jacobians are sparse."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.gradbench.libraries import Library, Problem, Run, arrays

Data = tuple[Any, ...]


def _ba_data(n: int, m: int, p: int) -> Data:
    """n equal cameras (rotation, centre, focal length, principal point, distortion), m equal points, p observations."""
    rng = np.random.default_rng(31337)
    camera = np.concatenate([rng.normal(size=3) * 0.1, rng.normal(size=3), [500.0], rng.normal(size=2), [1e-2, 1e-3]])
    point = np.asarray([0.1, -0.2, 4.0]) + camera[3:6]
    observed = np.stack([np.arange(p) % n, np.arange(p) % m])
    return np.tile(camera, (n, 1)), np.tile(point, (m, 1)), np.full(p, 0.8), np.tile([0.5, 0.7], (p, 1)), observed


BLOCK = 8192  # observations: what lies between stays in a core's cache


def _ba(lib: Library, data: Data) -> Run:
    """Values, and rows and columns, of the Jacobian: 15 by residual, of camera, point and weight, and -2 w by weight.

    Residuals are computed for many observations at once, coordinate by coordinate, and depend each on its own numbers:
    the gradient of the sum of all has the derivatives of each.
    """
    xp = lib.xp
    cameras, points, weights, features, (camera_of, point_of) = data
    n, m, p = len(cameras), len(points), len(weights)

    def residuals(*given: Any) -> tuple[Any, Any]:
        a, b, c, cx, cy, cz, focal, px, py, k1, k2, x, y, z, weight, u, v = given
        angle = xp.sqrt(a * a + b * b + c * c)
        a, b, c = a / angle, b / angle, c / angle
        x, y, z = x - cx, y - cy, z - cz
        cosine, sine = xp.cos(angle), xp.sin(angle)
        along = (a * x + b * y + c * z) * (1.0 - cosine)
        depth = z * cosine + (a * y - b * x) * sine + c * along
        across = (x * cosine + (b * z - c * y) * sine + a * along) / depth
        up = (y * cosine + (c * x - a * z) * sine + b * along) / depth
        square = across * across + up * up
        scale = (1.0 + k1 * square + k2 * square * square) * focal
        return weight * (across * scale + px - u), weight * (up * scale + py - v)

    def gradients(*given: Any) -> list[Any]:
        """Two rows for each observation, in turn."""
        by = tuple(range(15))
        first = lib.grad(lambda *given: xp.sum(residuals(*given)[0]), by)(*given)
        second = lib.grad(lambda *given: xp.sum(residuals(*given)[1]), by)(*given)
        return [*first, *second]

    run = lib.compiled(gradients)
    given = np.concatenate([cameras[camera_of].T, points[point_of].T, weights[None], features.T])
    blocks = [arrays(lib, [*given[:, k : k + BLOCK].copy()]) for k in range(0, p, BLOCK)]
    rows = np.concatenate([np.repeat(np.arange(2 * p), 15), 2 * p + np.arange(p)])
    of_camera, of_point = 11 * camera_of[:, None] + np.arange(11), 11 * n + 3 * point_of[:, None] + np.arange(3)
    of_weight = 11 * n + 3 * m + np.arange(p)[:, None]
    columns = np.repeat(np.concatenate([of_camera, of_point, of_weight], 1), 2, axis=0).reshape(-1)
    columns = np.concatenate([columns, of_weight[:, 0]])

    def jacobian() -> Any:
        values = np.empty(31 * p)
        table = values[: 30 * p].reshape(p, 30)
        for k, block in enumerate(blocks):
            for column, derivative in enumerate(run(*block)):
                table[k * BLOCK : (k + 1) * BLOCK, column] = derivative
        values[30 * p :] = -2 * weights
        return rows, columns, values

    return jacobian


BONES, FINGERS = 22, 5


def _ht_data(points: int) -> Data:
    """A hand of 22 bones and 544 vertices: pose, coordinates in triangles, and the model."""
    rng = np.random.default_rng(31337)
    parents = np.concatenate([[-1], [0 if k % 4 == 0 else k for k in range(20)], [0]])
    relatives = np.tile(np.eye(4), (BONES, 1, 1))
    relatives[:, :3, 3] = rng.normal(size=(BONES, 3))
    inverses = np.tile(np.eye(4), (BONES, 1, 1))
    inverses[:, :3, 3] = rng.normal(size=(BONES, 3))
    vertices = np.concatenate([rng.normal(size=(544, 3)), np.ones((544, 1))], 1)
    weights = rng.random((544, BONES))
    weights /= weights.sum(1, keepdims=True)
    triangles = rng.integers(0, 544, (1084, 3))
    return (
        rng.normal(size=26) * 0.3,
        rng.random((points, 2)) / 2,
        (parents, relatives, inverses, vertices, weights, triangles[rng.integers(0, 1084, points)]),
        rng.normal(size=(points, 3)),
    )


def _ht(lib: Library, data: Data) -> Run:
    """Derivatives of distances by the 26 of the pose, and by the two coordinates in its triangle that each has."""
    xp = lib.xp
    theta, us, (parents, relatives, inverses, vertices, weights, corners), points = data
    fingers = np.asarray([[6 + 4 * f, 6 + 4 * f + 1, 6 + 4 * f + 2, 6 + 4 * f + 3] for f in range(FINGERS)])
    # rotations of bones: three of each finger bend by one angle, the first of them spreads by another
    bend, spread = np.full(BONES, -1), np.full(BONES, -1)
    for f in range(FINGERS):
        first = 2 + 4 * f
        bend[first : first + 3] = fingers[f][[0, 2, 3]]
        spread[first] = fingers[f][1]
    used_bend, used_spread = lib.array((bend >= 0) * 1.0), lib.array((spread >= 0) * 1.0)
    relatives, inverses, vertices, weights, points = arrays(lib, (relatives, inverses, vertices, weights, points))
    eye = lib.array(np.eye(4))
    units = lib.array(np.eye(26))
    both = lib.array(np.stack([np.tile([1.0, 0.0], (len(us), 1)), np.tile([0.0, 1.0], (len(us), 1))]))

    def turned(angle: Any, i: int, j: int) -> Any:
        """Matrices of rotations by these angles that turn axis i towards j."""
        plane, across = np.zeros((4, 4)), np.zeros((4, 4))
        plane[i, i] = plane[j, j] = 1.0
        across[j, i], across[i, j] = 1.0, -1.0
        c, s = xp.cos(angle)[:, None, None], xp.sin(angle)[:, None, None]
        return eye + (c - 1.0) * lib.array(plane) + s * lib.array(across)

    def pose(theta: Any) -> Any:
        """Positions of all vertices."""
        x, z = theta[np.maximum(bend, 0)] * used_bend, theta[np.maximum(spread, 0)] * used_spread
        local = xp.matmul(relatives, xp.matmul(turned(z, 0, 1), turned(x, 1, 2)))
        absolute: list[Any] = []
        for k, parent in enumerate(parents):
            absolute.append(local[k] if parent < 0 else xp.matmul(absolute[parent], local[k]))
        moves = xp.matmul(xp.stack(absolute, 0), inverses)  # (22, 4, 4)
        blended = xp.matmul(weights, xp.reshape(moves, (BONES, 16)))
        placed = xp.sum(xp.reshape(blended, (-1, 4, 4))[:, :3, :] * vertices[:, None, :], 2)
        axis = theta[:3]
        angle = xp.sqrt(xp.sum(axis * axis))
        axis = axis / angle
        zero = axis[0] * 0.0
        skew = xp.stack(
            [
                xp.stack([zero, -axis[2], axis[1]], 0),
                xp.stack([axis[2], zero, -axis[0]], 0),
                xp.stack([-axis[1], axis[0], zero], 0),
            ],
            0,
        )
        rotation = eye[:3, :3] + xp.sin(angle) * skew + (1.0 - xp.cos(angle)) * xp.matmul(skew, skew)
        return xp.matmul(placed, rotation.T) + theta[3:6]

    def errors(theta: Any, us: Any) -> Any:
        at = pose(theta)
        u, v = us[:, 0:1], us[:, 1:2]
        return points - (u * at[corners[:, 0]] + v * at[corners[:, 1]] + (1.0 - u - v) * at[corners[:, 2]])

    def jacobian(theta: Any, us: Any) -> Any:
        """By each angle, and by the first and by the second coordinates of all points at once."""
        by_theta = lib.vmap(lambda t: lib.jvp(lambda theta: errors(theta, us), (theta,), (t,))[1])(units)
        by_us = lib.vmap(lambda t: lib.jvp(lambda us: errors(theta, us), (us,), (t,))[1])(both)
        return lib.concat([by_us, by_theta])

    run, (theta, us) = lib.compiled(jacobian), arrays(lib, (theta, us))
    return lambda: run(theta, us)


PROBLEMS = [
    Problem(
        "ba",
        {"1 (31,843)": (49, 7776, 31843), "8 (384,000)": (350, 62000, 384000)},
        _ba_data,
        _ba,
    ),
    Problem("ht", {f"{n:,} points": (n,) for n in (100, 1600)}, _ht_data, _ht),
]
