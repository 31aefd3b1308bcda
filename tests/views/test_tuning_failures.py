"""Failed trials in words: what does not fit apart from what is wrong."""

from dataclasses import replace

from kernel_forge.domain.text import Location, Range
from kernel_forge.domain.tuning import TunedTrial
from kernel_forge.views.tuning_failures import failure_texts, wrong_lines
from kernel_forge.views.tuning_hover import tuning_text
from tests.views.tunings import EMULATED, wrong

AT_24 = Location("/work/scale.cu", Range.of_line(23))


def test_failures_are_grouped_and_few() -> None:
    trials = [
        TunedTrial({}, None, f"{kind}: {'xy'[i % 2]}")
        for kind, count in zip("abcdefg", range(7, 0, -1), strict=True)
        for i in range(count)
    ]
    texts = failure_texts([*trials, TunedTrial({}, (1.0,)), TunedTrial({}, None)])
    assert texts[0] == "7 × a: x (and other reasons)"
    assert len(texts) == 6
    assert texts[-1] == "4 more of other kinds"  # 2 of f, 1 of g and the one without a reason
    assert failure_texts([TunedTrial({}, None)]) == ["1 × without a reason"]


def test_reasons_that_differ_in_their_numbers_are_one() -> None:
    """A user counts causes: 67072 and 98304 bytes too many are the same one."""
    reason = "does not launch: {} bytes of static shared memory; CUDA allows 49152"
    trials = [TunedTrial({}, None, reason.format(n)) for n in (67072, 98304)]
    assert failure_texts(trials) == [f"2 × {reason.format(67072)}"]


def test_what_is_wrong_is_told_by_cause_with_what_repeats_it() -> None:
    """Three wrong results on one line, and one fault elsewhere; what does not compile is no wrong result."""
    result = replace(wrong(), location=AT_24)
    trials = [
        TunedTrial({"BLOCK": 64, "VECTOR": True}, None, "memory fault: read past x", outcome=None),
        *(
            TunedTrial({"BLOCK": n, "VECTOR": False}, None, f"wrong: y[{n}] wrong value", outcome=result, case={"n": 7})
            for n in (128, 256, 512)
        ),
        TunedTrial({"BLOCK": 32, "VECTOR": False}, None, "does not compile: too many registers"),
    ]
    tuning = replace(EMULATED, path="/my work/scale.cu", trials=tuple(trials))
    command = "kernel-forge verify '/my work/scale.cu:scale'"
    assert wrong_lines(tuning) == [
        "  warning: 4 configurations that were tried are wrong: "
        "with them the kernel does not compute what its spec says",
        "    3 × wrong: y[128] wrong value at /work/scale.cu:24 (n = 7)",
        f"      e.g. {command} --set BLOCK=128 --set VECTOR=false",
        "    1 × memory fault: read past x",
        f"      {command} --set BLOCK=64 --set VECTOR=true",
    ]
    assert wrong_lines(replace(tuning, trials=tuple(trials[-1:]))) == []
    assert "✗ **4 of the configurations tried are wrong**: BLOCK = 128, VECTOR = false: wrong" in tuning_text(tuning)
