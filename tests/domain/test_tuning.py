"""Values of a tuning run."""

from dataclasses import replace

from kernel_forge.domain.tuning import CaseChoice, in_order
from tests.views.tunings import BEST, DEFAULT, FULL, verdict_of


def test_one_order_of_the_tunables_everywhere() -> None:
    """What a resumed search takes over from the ledger has its names in alphabetical order; [tune] has another."""
    parameters = {"VECTOR": (False, True), "BLOCK": (128, 256)}
    resumed = replace(
        FULL,
        space=replace(FULL.space, parameters=parameters),
        default_verdict=verdict_of(DEFAULT.configuration),
        rejected=(verdict_of({"BLOCK": 64, "VECTOR": True}),),
        choices=(CaseChoice({"n": 1}, {"BLOCK": 64, "VECTOR": True}, 1.0, None),),
    )
    found = in_order(resumed)
    assert found == resumed  # but for the order, which mappings do not compare
    assert found.baseline is not None and found.default_verdict is not None
    everywhere = [*found.trials, found.baseline, found.winner, *found.finalists, *found.rejected, *found.choices]
    for each in (*everywhere, found.verdict, found.default_verdict):
        assert list(each.configuration) == ["VECTOR", "BLOCK"]
    assert BEST.configuration == {"BLOCK": 256, "VECTOR": True}
