"""Reference of cross_entropy.cu."""

import numpy as np


def cross_entropy(logits, target):
    shifted = logits - logits.max(axis=1, keepdims=True)
    picked = np.take_along_axis(shifted, target[:, None], axis=1)[:, 0]
    return np.log(np.exp(shifted).sum(axis=1)) - picked
