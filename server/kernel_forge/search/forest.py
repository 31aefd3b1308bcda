"""Extremely randomised regression trees, grown level by level over all trees at once.

Geurts, Ernst and Wehenkel, *Extremely randomized trees*, 2006, with bootstrap samples. A few thousand candidates and
some hundred observations: NumPy is fast enough, and a machine-learning library would be the largest dependency here.
"""

import numpy as np
import numpy.typing as npt

from kernel_forge.search.parameters import Floats, Ints, Mask

Features = npt.NDArray[np.float32]

_TREES = 16
_LEAST_TO_SPLIT = 3
_FEATURES_PER_NODE = 24
_DEEPEST = 40


class Forest:
    """Trees fitted to ``values``, shape ``(n,)``, at ``features``, shape ``(n, features)``."""

    def __init__(self, features: Features, values: Floats, rng: np.random.Generator, trees: int = _TREES) -> None:
        count = len(features)
        rows = rng.integers(count, size=(trees, count)).ravel()
        node = np.repeat(np.arange(trees), count)
        self._trees = trees
        self._levels: list[tuple[Ints, npt.NDArray[np.float32], Ints]] = []
        self._means: list[Floats] = []
        for _ in range(_DEEPEST):
            nodes = int(node[-1]) + 1 if len(node) else 0
            starts = np.searchsorted(node, np.arange(nodes))
            sizes = np.diff(np.append(starts, len(node)))
            targets = values[rows]
            sums = np.add.reduceat(targets, starts)
            self._means.append(sums / sizes)
            split, feature, threshold = _splits(features, rows, targets, node, starts, sizes, sums, rng)
            # Children of split nodes are numbered in order, left before right; leaves have none (-1).
            child = np.where(split, 2 * (np.cumsum(split) - 1), -1)
            self._levels.append((np.where(split, feature, 0), threshold, child))
            if not split.any():
                break
            inside = split[node]
            rows, parent = rows[inside], node[inside]
            right = features[rows, feature[parent]] > threshold[parent]
            node = child[parent] + right
            order = np.argsort(node, kind="stable")
            rows, node = rows[order], node[order]

    def predict(self, features: Features) -> Floats:
        """What each tree says, shape ``(trees, len(features))``."""
        count = len(features)
        found = np.empty(self._trees * count)
        where = np.arange(len(found))
        node = np.repeat(np.arange(self._trees), count)
        row = np.tile(np.arange(count), self._trees)
        for (feature, threshold, child), means in zip(self._levels, self._means, strict=True):
            next_node = child[node]
            leaf = next_node < 0
            found[where[leaf]] = means[node[leaf]]
            inside = ~leaf
            where, row, node, next_node = where[inside], row[inside], node[inside], next_node[inside]
            if not len(where):
                break
            node = next_node + (features[row, feature[node]] > threshold[node])
        else:
            found[where] = self._means[-1][node] if len(where) else 0.0
        return found.reshape(self._trees, count)


def _splits(
    features: Features,
    rows: Ints,
    targets: Floats,
    node: Ints,
    starts: Ints,
    sizes: Ints,
    sums: Floats,
    rng: np.random.Generator,
) -> tuple[Mask, Ints, npt.NDArray[np.float32]]:
    """For each node: whether it splits, on which feature, at which threshold (larger goes right)."""
    some = _some_features(features.shape[1], len(starts), rng)
    seen = features[rows[:, None], some[node]]
    low = np.minimum.reduceat(seen, starts)
    high = np.maximum.reduceat(seen, starts)
    thresholds = low + rng.random(low.shape, np.float32) * (high - low)
    usable = (high > low) & (thresholds < high)
    right = seen > thresholds[node]
    count_right = np.add.reduceat(right, starts, dtype=np.float64)
    sum_right = np.add.reduceat(np.where(right, targets[:, None], 0.0), starts)
    count_left, sum_left = sizes[:, None] - count_right, sums[:, None] - sum_right
    with np.errstate(divide="ignore", invalid="ignore"):
        gain = sum_left**2 / count_left + sum_right**2 / count_right
    gain = np.where(usable, gain, -np.inf)
    pick = gain.argmax(1)
    flat = np.maximum.reduceat(targets, starts) <= np.minimum.reduceat(targets, starts)
    split = usable.any(1) & (sizes >= _LEAST_TO_SPLIT) & ~flat
    at = np.arange(len(pick))
    return split, some[at, pick], thresholds[at, pick]


def _some_features(features: int, nodes: int, rng: np.random.Generator) -> Ints:
    """For each node a few features, drawn with replacement where there are many; shape ``(nodes, few)``."""
    if features <= _FEATURES_PER_NODE:
        return np.tile(np.arange(features), (nodes, 1))
    return rng.integers(features, size=(nodes, _FEATURES_PER_NODE))
