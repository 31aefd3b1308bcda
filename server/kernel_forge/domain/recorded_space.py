"""A search space that somebody measured in full: what replayed searches run on."""

from dataclasses import dataclass

Value = int | float | str


@dataclass(frozen=True, slots=True)
class RecordedTrial:
    """One configuration, in the order of the space's parameters, and its time in ms; None where it failed, and why."""

    configuration: tuple[Value, ...]
    time: float | None
    failure: str = ""


@dataclass(frozen=True, slots=True)
class RecordedSpace:
    """Every valid configuration of one kernel on one device, as recorded; what restrictions rule out is not there.

    Attributes:
        kernel, device: what was measured, and where; empty where the file does not say.
        parameters: names and values in order.
        trials: one per valid configuration.
    """

    kernel: str
    device: str
    parameters: tuple[tuple[str, tuple[Value, ...]], ...]
    trials: tuple[RecordedTrial, ...]
