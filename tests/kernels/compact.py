"""Reference of compact.cu."""

import numpy as np


def compact(x, kept):
    positive = x[x > 0]
    kept[: positive.size] = positive
    count = np.array([positive.size, positive.size > 0, positive.size == x.size], dtype=np.int64)
    return {"kept": kept, "count": count}
