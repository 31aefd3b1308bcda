import math

import pytest

from kernel_forge.lsp.settings import Settings, read_settings


def test_a_section_or_its_content_is_read() -> None:
    for raw in ({"kernelForge": {"timeLimit": 5}}, {"timeLimit": 5}):
        settings, problems = read_settings(raw, Settings())
        assert settings == Settings(time_limit=5.0)
        assert problems == ()


def test_a_wrong_entry_keeps_its_old_value_and_is_named() -> None:
    settings, problems = read_settings({"timeLimit": -1, "verifyOnSave": False}, Settings(time_limit=7.0))
    assert settings == Settings(time_limit=7.0, verify_on_save=False)
    assert problems == ("kernelForge.timeLimit: -1 is not a number of seconds above 0 and up to 86400",)


def test_compiler_flags_are_a_list() -> None:
    settings, problems = read_settings({"compilerFlags": ["-use_fast_math"]}, Settings())
    assert (settings, problems) == (Settings(compiler_flags=("-use_fast_math",)), ())
    settings, problems = read_settings({"compilerFlags": "-use_fast_math"}, Settings())
    assert settings == Settings() and problems == (
        "kernelForge.compilerFlags: '-use_fast_math' is not a list of flags",
    )


def test_entries_of_others_are_left_alone() -> None:
    assert read_settings({"interpreter": ["python3"]}, Settings()) == (Settings(), ())


def test_anything_but_an_object_is_ignored() -> None:
    assert read_settings(None, Settings()) == (Settings(), ())


def test_a_workspace_cannot_declare_itself_trusted() -> None:
    untrusted, _ = read_settings({"trusted": False}, Settings(), may_trust=True)
    assert not untrusted.trusted
    assert read_settings({"trusted": True}, untrusted) == (untrusted, ())


@pytest.mark.parametrize("seconds", [0, 86401, 10**400, math.inf, math.nan, True, "5"])
def test_a_time_limit_is_a_number_of_seconds_up_to_a_day(seconds: object) -> None:
    settings, problems = read_settings({"timeLimit": seconds}, Settings())
    assert settings == Settings() and len(problems) == 1


def test_names_that_no_file_or_macro_can_have_are_refused() -> None:
    raw = {"includeDirs": ["/a\0b"], "defines": {"A": {"deep": 1}}}
    assert read_settings(raw, Settings())[0] == Settings()
    assert read_settings({"includeDirs": ["\ud800"], "defines": {"A": "\0"}}, Settings())[0] == Settings()


def test_the_budget_of_autotune() -> None:
    raw = {"tuneTrials": 5, "tuneSeconds": 2, "tuneSampler": "random", "tuningHints": False}
    expected = Settings(tune_trials=5, tune_seconds=2.0, tune_sampler="random", tuning_hints=False)
    assert read_settings(raw, Settings()) == (expected, ())


@pytest.mark.parametrize(
    "raw",
    [
        *({"tuneTrials": value} for value in (0, -1, 1.5, True, "5", 10**7, None)),
        *({"tuneSeconds": value} for value in (0, math.nan, True, 86401, None)),
        *({"tuneSampler": value} for value in ("", 5, None)),
        {"tuningHints": 1},
    ],
)
def test_what_is_no_budget_keeps_its_old_value_and_is_named(raw: dict[str, object]) -> None:
    settings, problems = read_settings(raw, Settings())
    assert settings == Settings() and len(problems) == 1 and problems[0].startswith(f"kernelForge.{next(iter(raw))}: ")
