"""The kernels of ``scripts/tuning_kernels``, which tuning is measured with: large spaces, right everywhere in them."""

from pathlib import Path

import pytest

from kernel_forge.devices.emulator import EmulatorDevice
from kernel_forge.domain.outcome import Passed
from kernel_forge.domain.spec import KernelSpec
from kernel_forge.jobs.requests import VerifyRequest
from kernel_forge.jobs.tune.space import search_space
from kernel_forge.jobs.verify import verify_file
from kernel_forge.knowledge import limits_of
from kernel_forge.source import SourceFile, parse
from kernel_forge.spec import read_specs

FOLDER = Path(__file__).resolve().parents[3] / "scripts" / "tuning_kernels"


@pytest.fixture(scope="module")
def device(tmp_path_factory: pytest.TempPathFactory) -> EmulatorDevice:
    return EmulatorDevice(tmp_path_factory.mktemp("cache"), lambda text: parse(text, "").host_ranges)


def read(name: str) -> tuple[SourceFile, KernelSpec]:
    path = FOLDER / f"{name}.cu"
    source = parse(path.read_text(encoding="utf-8"), str(path))
    reading = read_specs(source, None)
    assert not reading.problems
    (spec,) = reading.specs
    return source, spec


@pytest.mark.parametrize("name", ["matmul", "convolution", "softmax"])
def test_the_space_is_large(name: str) -> None:
    source, spec = read(name)
    space = search_space(spec, source, [spec.cases[0]], {}, limits_of((9, 0)), "H200")
    assert space.size > 1000
    assert space.index_of(spec.default_configuration) is not None


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("matmul", "TX=8 TY=8 WX=1 WY=1 BK=8 VEC=4 PAD=0 SPREAD=0 UNROLL=1"),
        ("matmul", "TX=16 TY=32 WX=8 WY=4 BK=32 VEC=4 PAD=1 SPREAD=1 UNROLL=8"),
        ("matmul", "TX=32 TY=4 WX=4 WY=8 BK=16 VEC=2 PAD=1 SPREAD=0 UNROLL=4"),
        ("convolution", "TX=128 TY=8 WX=4 WY=8 TILED=0 PAD=0 KEPT=1 UNROLL=1"),
        ("convolution", "TX=128 TY=2 WX=4 WY=4 TILED=1 PAD=1 KEPT=1 UNROLL=5"),
        ("convolution", "TX=16 TY=16 WX=1 WY=1 TILED=1 PAD=0 KEPT=0 UNROLL=1"),
        ("softmax", "TX=1024 TY=1 VEC=4 UNROLL=8 ONLINE=1 SHUFFLE=1 RESIDENT=2"),
        ("softmax", "TX=32 TY=8 VEC=2 UNROLL=4 ONLINE=0 SHUFFLE=1 RESIDENT=1"),
        ("softmax", "TX=64 TY=4 VEC=1 UNROLL=2 ONLINE=1 SHUFFLE=0 RESIDENT=1"),
        ("softmax", "TX=256 TY=4 VEC=4 UNROLL=1 ONLINE=0 SHUFFLE=1 RESIDENT=2"),
    ],
)
def test_it_is_right_at_the_ends_of_its_space(device: EmulatorDevice, name: str, values: str) -> None:
    configuration = {key: int(value) for key, value in (pair.split("=") for pair in values.split())}
    source, spec = read(name)
    space = search_space(spec, source, [spec.cases[0]], {}, limits_of((9, 0)), "H200")
    assert space.index_of(configuration) is not None
    request = VerifyRequest(source.path, source.text, configuration=configuration, seed=1)
    (verdict,) = verify_file(request, device, lambda _: None).verdicts
    assert isinstance(verdict.outcome, Passed), verdict
