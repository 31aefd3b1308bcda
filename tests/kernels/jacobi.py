"""Reference of jacobi.cu."""

import numpy as np


def jacobi(a, steps):
    for _ in range(steps):
        padded = np.pad(a, 1)
        a = 0.5 * a + 0.25 * (padded[:-2] + padded[2:])
    return a
