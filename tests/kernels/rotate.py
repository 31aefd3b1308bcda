"""Reference of rotate.cu."""

import numpy as np


def rotate(image, sine, cosine):
    height, width = image.shape
    padded = np.pad(image, 1)  # black around, so that every blend has its four pixels
    x = np.arange(width) + 0.5 - 0.5 * width
    y = (np.arange(height) + 0.5 - 0.5 * height)[:, None]
    # From the middle of the first pixel, and no further than the black around.
    u = np.clip(cosine * x + sine * y + 0.5 * width - 0.5, -1, width)
    v = np.clip(cosine * y - sine * x + 0.5 * height - 0.5, -1, height)
    i, j = (np.minimum(np.floor(c), n - 1).astype(int) for c, n in ((u, width), (v, height)))
    a, b = u - i, v - j
    top = (1 - a) * padded[j + 1, i + 1] + a * padded[j + 1, i + 2]
    bottom = (1 - a) * padded[j + 2, i + 1] + a * padded[j + 2, i + 2]
    return (1 - b) * top + b * bottom
