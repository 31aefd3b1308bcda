"""Whether a search on record is the very one that is asked for, so that its trials count; and what differs if not."""

from collections.abc import Iterator, Mapping

from kernel_forge.domain.record import Json, Platform, Record, Subject

_ASKED = {"cases": "the cases", "fixed": "the tunables that are --set", "sampler": "the sampler"}


def differences(
    record: Record, subject: Subject, platform: Platform, details: Mapping[str, Json], seed: int | None
) -> tuple[str, ...]:
    """What a search on record does not share with one that is asked for, in words; empty where nothing differs.

    Paths are left out, which may be written relative in one of two. ``seed`` is None where any will do.
    """
    return tuple(dict.fromkeys(_differences(record, subject, platform, details, seed)))


def _differences(
    record: Record, subject: Subject, platform: Platform, details: Mapping[str, Json], seed: int | None
) -> Iterator[str]:
    was, on = record.subject, record.platform
    if was is None or on is None or was.kernel != subject.kernel:
        yield "the kernel"
        return
    if was.source != subject.source:
        yield "the file"
    if was.spec != subject.spec:
        yield "the spec"
    if sorted(was.files.values()) != sorted(subject.files.values()):
        yield "headers or Python files"
    if (on.device, on.basis) != (platform.device, platform.basis):
        yield "the device"
    elif (on.compiler, on.driver) != (platform.compiler, platform.driver):
        yield "the compiler or driver"
    if tuple(on.include_dirs) != tuple(platform.include_dirs) or dict(on.defines) != dict(platform.defines):
        yield "include folders or macros"
    if tuple(on.flags) != tuple(platform.flags):
        yield "the compiler's flags"
    for name, words in _ASKED.items():
        if record.details.get(name) != details[name]:
            yield words
    if seed is not None and seed != record.seed:
        yield "the seed"
