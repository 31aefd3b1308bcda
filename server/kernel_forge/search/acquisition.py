"""How much an evaluation is worth."""

import numpy as np
from scipy.special import erfcx, ndtr

from kernel_forge.search.parameters import Floats

_ROOT_2PI = np.sqrt(2 * np.pi)


def log_expected_improvement(mean: Floats, deviation: Floats, best: float) -> Floats:
    """Logarithm of the expected improvement below ``best`` under normal beliefs; all of shape ``(n,)``.

    Exact far below what a plain logarithm resolves, so that hopeless candidates keep an order (Ament and others, 2023).
    """
    u = (best - mean) / deviation
    density = np.exp(-0.5 * u * u) / _ROOT_2PI
    near = np.log(np.maximum(density + u * ndtr(u), 1e-300))
    # density(u) * (1 + u * Phi(u) / density(u)), with Phi/density from the scaled complementary error function.
    tail = np.minimum(u, -1.0)
    bracket = np.maximum(1 + tail * np.sqrt(np.pi / 2) * erfcx(-tail / np.sqrt(2)), 1e-16)
    far = -0.5 * tail * tail - np.log(_ROOT_2PI) + np.log(bracket)
    result: Floats = np.log(deviation) + np.where(u > -5, near, far)
    return result
