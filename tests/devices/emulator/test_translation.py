"""What the host's compiler sees of several files that belong together."""

from pathlib import Path

from kernel_forge.devices.emulator.rewrite import translate

OURS = Path("/nowhere/ours")


def test_what_a_header_declares_at_namespace_scope_is_set_too(tmp_path: Path) -> None:
    (tmp_path / "h.h").write_text("#define SH __shared__\nextern __shared__ float pool[];\n")
    text = '#include "h.h"\nvoid f() { SH int n; }\n'
    made = translate(str(tmp_path / "m.cu"), text, (), lambda _: (), OURS)
    assert made.settings == ["pool = reinterpret_cast<float*>(kf_dynamic_shared());"]
    assert "kf_shared_n" in made.files["0_m.cu"]
    assert made.device_files["0_m.cu"].split("\n", 1)[1] == text.replace("h.h", "1_h.h")
