"""Reference of convolution.cu."""

import numpy as np


def filter2d(image, coefficients):
    height, width = image.shape
    padded = np.pad(image, 2)
    kernel = coefficients.reshape(5, 5)
    return sum(kernel[j, i] * padded[j : j + height, i : i + width] for j in range(5) for i in range(5))
