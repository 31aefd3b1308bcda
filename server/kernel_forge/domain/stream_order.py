"""Orders in which launches on several streams may begin: all that a GPU could take."""

import random
from collections.abc import Sequence

from kernel_forge.domain.launch import Launch, Schedule


def in_order(launches: Sequence[Launch], schedule: Schedule, seed: int) -> list[Launch]:
    """``launches`` as listed, or with the streams between two launches of the default stream in another order.

    ``REVERSE`` runs these streams whole, the last one first; ``RANDOM`` merges them. Two launches of one stream
    never change places.
    """
    ordered: list[Launch] = []
    beside: list[Launch] = []
    rng = random.Random(seed)
    for launch in launches:
        if launch.stream is None:
            ordered += _merged(beside, schedule, rng)
            ordered.append(launch)
            beside = []
        else:
            beside.append(launch)
    return ordered + _merged(beside, schedule, rng)


def _merged(launches: Sequence[Launch], schedule: Schedule, rng: random.Random) -> list[Launch]:
    if schedule is Schedule.FORWARD:
        return list(launches)
    streams: dict[str | None, list[Launch]] = {}
    for launch in launches:
        streams.setdefault(launch.stream, []).append(launch)
    if schedule is Schedule.REVERSE:
        return [launch for queue in reversed(streams.values()) for launch in queue]
    turns = [launch.stream for launch in launches]
    rng.shuffle(turns)
    return [streams[name].pop(0) for name in turns]
