"""Reference of layer_norm.cu."""

import numpy as np


def layer_norm(x, gamma, beta):
    mean = x.mean(axis=1)
    rstd = 1 / np.sqrt(x.var(axis=1) + 1e-5)
    y = (x - mean[:, None]) * rstd[:, None] * gamma + beta
    return {"y": y, "mean": mean, "rstd": rstd}
