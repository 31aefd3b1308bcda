"""The first configurations, spread over the space before any model knows anything."""

import numpy as np

from kernel_forge.search.candidates import Encoder
from kernel_forge.search.parameters import Ints
from kernel_forge.search.space import SearchSpace

_CONSIDERED = 400
_ALTERNATIVES = 5


def spread(space: SearchSpace, count: int, rng: np.random.Generator) -> Ints:
    """``count`` configurations far from each other (all where there are fewer): randomised maximin distance."""
    pool = rng.permutation(space.sample(_CONSIDERED, rng))
    points = Encoder(space).coordinates(pool)
    chosen = [0]
    distance = np.abs(points - points[0]).sum(1)
    while len(chosen) < min(count, len(pool)):
        distance[chosen] = -1.0
        farthest = np.argsort(-distance, kind="stable")[:_ALTERNATIVES]
        pick = int(rng.choice(farthest[distance[farthest] >= 0]))
        chosen.append(pick)
        distance = np.minimum(distance, np.abs(points - points[pick]).sum(1))
    return pool[chosen]
