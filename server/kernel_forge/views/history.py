"""Entries of the ledger for people and for programs. The basis stands in every line: no number goes without."""

import re
from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime
from typing import Any

from kernel_forge.domain.measurement import FEWEST_FOR_INTERVAL
from kernel_forge.domain.record import Audit, Entry, Json, Kind, Record, Unreadable
from kernel_forge.domain.tuning import Budget
from kernel_forge.views.timing import TOO_FEW, duration
from kernel_forge.views.tuning import ended_text
from kernel_forge.views.words import printable, seconds_text

_WORD = re.compile(r"(?<=[a-z])(?=[A-Z])")


End = Entry | Unreadable | None
"""How a search ended, where it has."""


def entry_line(entry: Entry | Unreadable, of_run: Entry | None = None, end: End = None) -> str:
    """One entry in one line; ``of_run`` is the search that it belongs to, ``end`` how it ended itself."""
    if isinstance(entry, Unreadable):
        return printable(f"{entry.number:>4}  ? unreadable: {entry.reason}")
    record = entry.record
    subject = record.subject or (of_run.record.subject if of_run is not None else None)
    name = f"{subject.path}:{subject.kernel}" if subject is not None else f"run {record.run}"
    found = end.record if isinstance(end, Entry) else record
    sizes = {} if len(_cases(found)) > 1 else record.sizes  # several stand beside their times
    rest = " ".join(f"{k}={v}" for k, v in (*sizes.items(), *found.configuration.items()))
    parts = [f"{entry.number:>4}", _minute(record.started), f"{record.kind.value:<8}", name, _ended(record, end), rest]
    return printable("  ".join(parts).rstrip())


def _ended(record: Record, end: End) -> str:
    if isinstance(end, Unreadable):
        return f"? ended, but entry {end.number}, which says how, is unreadable ({record.basis})"
    return result(record if end is None else end.record)


def result(record: Record) -> str:
    """``✓ passed, 22 cases (emulated)``: the mark, the outcome or the time, and what the words may claim."""
    times = _times(record)
    if times is None:
        return f"{_mark(record)} {outcome_words(record.outcome)} ({record.basis})"
    if record.outcome.get("type") != "Tuned":
        return f"✓ {times}{', given up early' if record.details.get('early') is True else ''}"
    stopped = ", stopped on request" if record.details.get("ended") == "stopped" else ""
    if record.outcome.get("improved") is False:
        return f"✓ default stays, {times}{stopped}"
    ratio = record.details.get("speedup")
    faster = _number(ratio.get("value")) if isinstance(ratio, Mapping) else None
    mean = " in the mean" if len(_cases(record)) > 1 else ""
    return f"✓ tuned, {'' if faster is None else f'{faster:.3g} times as fast{mean}, '}{times}{stopped}"


def _cases(record: Record) -> list[Mapping[str, object]]:
    """The sizes that a search was for; none where the record does not say."""
    listed = record.details.get("cases") if record.kind in (Kind.TUNE, Kind.TUNE_END) else None
    return [c for c in listed if isinstance(c, Mapping)] if isinstance(listed, list | tuple) else []


def _times(record: Record) -> str | None:
    """A measured time with its interval, or those of several cases; with their basis. None without any."""
    measured = record.measurement
    seconds, low, high = (None if measured is None else _number(measured.get(k)) for k in ("seconds", "low", "high"))
    listed = record.details.get("seconds") if record.kind in (Kind.TRIAL, Kind.TUNE_END) else None
    each = [_number(value) for value in listed] if isinstance(listed, list | tuple) else []
    cases = _cases(record)
    if len(cases) > 1 and len(each) == len(cases):
        texts = (f"{_duration(s)} at {_short(c)}" for s, c in zip(each, cases, strict=True))
        return f"{', '.join(texts)} ({record.basis})"
    if measured is not None and seconds is not None:
        low, high = (seconds if low is None else low), (seconds if high is None else high)
        spread = f" ± {50 * (high - low) / seconds:.2g} %" if high > low and seconds else ""
        samples = _number(measured.get("samples"))
        if samples is not None and samples < FEWEST_FOR_INTERVAL:
            spread = f" with {TOO_FEW}"
        basis = str(measured.get("basis", record.basis))
        basis = basis if basis == record.basis else f"{record.basis}: {basis}"
        at = f" at {_short(cases[0])}, the first of {len(cases)} cases" if len(cases) > 1 else ""
        return f"{duration(seconds)}{spread}{at} ({basis})"
    return f"{', '.join(map(_duration, each))} ({record.basis})" if each and record.kind is Kind.TRIAL else None


def _duration(seconds: float | None) -> str:
    return "?" if seconds is None else duration(seconds)


def _short(values: Mapping[str, object]) -> str:
    return ",".join(f"{k}={v}" for k, v in values.items())


def outcome_words(outcome: Mapping[str, Json]) -> str:
    """``memory fault: guard-band``: the name of an outcome with what makes it out."""
    name, kind = str(outcome.get("type", "?")), outcome.get("kind")
    match name:
        case "Passed":
            return f"passed, {outcome.get('cases')} cases"
        case "Unavailable":
            return f"not verified: {outcome.get('reason')}"
        case "JobFailed":
            return f"no verdict ({kind}): {_first_line(outcome.get('message'))}"
        case "Begun":
            return "unfinished"
        case "Failed":
            return _first_line(outcome.get("message") or "failed")
        case "Mismatch":
            index = outcome.get("index")
            place = ", ".join(map(str, index)) if isinstance(index, list | tuple) else "?"
            return f"{kind}: {outcome.get('output')}[{place}]"
    words = _WORD.sub(" ", name).lower()
    return f"{words}: {kind}" if kind is not None else words


def entry_lines(entry: Entry | Unreadable, place: str, end: End = None) -> list[str]:
    """One entry in full, as far as it is for people (``--json`` has all); ``end`` as in :func:`entry_line`."""
    if isinstance(entry, Unreadable):
        return [printable(line) for line in (f"run {entry.number} of {place}", f"  ? unreadable: {entry.reason}")]
    record = entry.record
    lines = [f"run {entry.number} of {place}", f"  {record.kind.value:<10} {_ended(record, end)}"]
    message = record.outcome.get("message")
    if isinstance(message, str) and message:
        lines.append(f"             {_first_line(message)}")

    def say(name: str, value: object) -> None:
        if value not in (None, "", {}, (), []):
            lines.append(f"  {name:<10} {value}")

    subject, platform = record.subject, record.platform
    if subject is not None:
        say("kernel", f"{subject.kernel} in {subject.path}")
        say("source", f"sha256 {subject.source}")
        for path, digest in subject.files.items():
            say("with", f"{path}, sha256 {digest}")
    say("sampler", record.details.get("sampler"))
    say("cases", "; ".join(map(_short, cases)) if len(cases := _cases(record)) > 1 else None)
    say("search", _search(end.record, record) if isinstance(end, Entry) else None)
    say("fixed", _pairs(_mapping(record.details.get("fixed"))))
    say("tunables", _pairs(record.configuration))
    say("sizes", _pairs(record.sizes))
    case = record.details.get("case")
    if isinstance(case, Mapping):
        say("case", f"{_pairs(_mapping(case.get('sizes')))}, inputs {case.get('inputs')}, seed {case.get('seed')}")
    say("seed", record.seed)
    say("took", None if record.seconds is None else seconds_text(record.seconds))
    if platform is not None:
        say("device", f"{platform.device}: {platform.description} ({platform.basis})")
        say("compiler", platform.compiler)
        say("driver", platform.driver)
        say("flags", " ".join(_flags(platform.include_dirs, platform.defines, platform.flags)))
    say("tool", f"kernel-forge {record.tool}")
    say("started", record.started.isoformat(timespec="seconds"))
    say("recorded", entry.recorded.isoformat(timespec="seconds"))
    say("belongs to", None if record.run is None else f"run {record.run}")
    if record.generation is not None:
        say("generation", _pairs({k: v for k, v in asdict(record.generation).items() if v}))
    say("hash", entry.hash)
    say("previous", entry.previous)
    if subject is not None and subject.spec:
        lines.append("  spec")
        lines.extend(f"    {line}" for line in subject.spec.splitlines())
    return [printable(line) for line in lines]


def _search(end: Record, begun: Record) -> str | None:
    """How much was tried, and why the search ended."""
    details, parts = end.details, list[str]()
    for name, words in (("trials", "trials"), ("failed", "failed"), ("early", "given up early")):
        count = details.get(name)
        parts += [f"{count} {words}"] if isinstance(count, int) and (count or name == "trials") else []
    budget, ended = begun.details.get("budget"), details.get("ended")
    patience = budget.get("patience") if isinstance(budget, Mapping) else None
    why = ended_text(str(ended), Budget(patience=patience if isinstance(patience, int) else None)) if ended else None
    return "; ".join(text for text in (", ".join(parts), why) if text) or None


def entry_json(entry: Entry | Unreadable) -> dict[str, Any]:
    """One entry as JSON data: everything that it says, with its number as ``run``; times are ISO 8601, UTC.

    One that is unreadable has its number, and why it is.
    """
    if isinstance(entry, Unreadable):
        return {"run": entry.number, "unreadable": entry.reason}
    record = asdict(entry.record)
    belongs_to = record.pop("run")
    return {
        "run": entry.number,
        **record,
        "kind": entry.record.kind.value,
        "started": entry.record.started.isoformat(),
        "recorded": entry.recorded.isoformat(),
        "belongs_to": belongs_to,
        "key": entry.key,
        "hash": entry.hash,
        "previous": entry.previous,
    }


def audit_lines(audit: Audit, place: str, *, anchored: bool) -> list[str]:
    """What an audit says: one headline, then each further trouble."""
    count = audit.anchor.count
    lines = [f"✗ {place}: entry {audit.bad.number} {audit.bad.reason}"] if audit.bad is not None else []
    lines.extend(f"✗ {place}: {what}" for what in audit.altered)
    if lines:
        sound = f"the {count} before are sound" if count else "nothing before it is there"
        return [*lines, f"  {sound}"] if audit.bad is not None else lines
    against = "and against the anchor" if anchored else "(what was cut off its end, an anchor alone can show)"
    return [f"✓ {place}: {count} entries, each as it was written {against}", f"  last hash {audit.anchor.hash}"]


def _mark(record: Record) -> str:
    name = record.outcome.get("type")
    if name in ("Passed", "Timed", "Tuned"):
        return "✓"
    return "?" if name in ("Unavailable", "JobFailed", "Begun") else "✗"


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def _minute(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M}Z"


def _first_line(text: object) -> str:
    lines = str(text).strip().splitlines()
    return lines[-1 if str(text).startswith("Traceback") else 0][:200] if lines else ""


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}


def _pairs(values: Mapping[str, object]) -> str:
    return ", ".join(f"{k} = {v}" for k, v in values.items())


def _flags(include_dirs: tuple[str, ...], defines: Mapping[str, str], flags: tuple[str, ...]) -> list[str]:
    return [*(f"-I{d}" for d in include_dirs), *(f"-D{k}={v}" for k, v in defines.items()), *flags]
