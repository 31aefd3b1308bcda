"""Reference of stencil3d.cu."""

import numpy as np


def stencil(u):
    p = np.pad(u, 1)
    neighbours = (
        p[:-2, 1:-1, 1:-1]
        + p[2:, 1:-1, 1:-1]
        + p[1:-1, :-2, 1:-1]
        + p[1:-1, 2:, 1:-1]
        + p[1:-1, 1:-1, :-2]
        + p[1:-1, 1:-1, 2:]
    )
    return neighbours - 6 * u
