"""Artifacts on disk: shared by processes, bounded, and never believed when damaged."""

import multiprocessing
import os
import time
from pathlib import Path

import pytest

from kernel_forge.devices.artifact_cache import ENTRY_FILE, META_FILE, ArtifactCache


def entry(cache: ArtifactCache, key: str, size: int = 10, content: bytes = b"x") -> Path:
    built = cache.build_folder()
    (built / ENTRY_FILE).write_bytes(content * size)
    (built / META_FILE).write_text("{}")
    return cache.adopt(key, built)


def names(cache: ArtifactCache) -> set[str]:
    return {p.name for p in cache.root.iterdir()}


def test_an_entry_is_found_under_its_key_alone(tmp_path: Path) -> None:
    cache = ArtifactCache(tmp_path / "deep" / "root")
    assert cache.find("a") is None
    folder = entry(cache, "a")
    assert cache.find("a") == folder and cache.find("b") is None
    assert names(cache) == {"a"}


def test_the_first_of_two_builds_stays(tmp_path: Path) -> None:
    cache = ArtifactCache(tmp_path)
    first = entry(cache, "a", content=b"1")
    assert entry(cache, "a", content=b"2") == first
    assert (first / ENTRY_FILE).read_bytes() == b"1" * 10
    assert names(cache) == {"a"}


@pytest.mark.parametrize("damage", ["no entry", "empty entry", "no sources", "empty sources"])
def test_a_damaged_entry_is_removed_and_built_anew(tmp_path: Path, damage: str) -> None:
    cache = ArtifactCache(tmp_path)
    file = entry(cache, "a") / (ENTRY_FILE if damage.endswith("entry") else META_FILE)
    if damage.startswith("no "):
        file.unlink()
    else:
        file.write_bytes(b"")
    assert cache.find("a") is None
    assert cache.find("a") is None and names(cache) == set()
    entry(cache, "a")
    assert cache.find("a") is not None


def test_the_least_recently_used_go_first(tmp_path: Path) -> None:
    cache = ArtifactCache(tmp_path, size_limit=3500)
    for age, key in ((300, "old"), (200, "older but used"), (100, "young")):
        folder = entry(cache, key, 1000)
        os.utime(folder, (time.time() - age, time.time() - age))
    assert cache.find("older but used") is not None
    entry(cache, "new", 1000)
    assert names(cache) == {"older but used", "young", "new"}


def test_an_entry_larger_than_the_limit_stays_until_the_next(tmp_path: Path) -> None:
    cache = ArtifactCache(tmp_path, size_limit=100)
    entry(cache, "large", 1000)
    assert names(cache) == {"large"}
    other = cache.build_folder()  # a build under way is nobody's to remove
    (other / "kernel.o").write_bytes(b"x" * 1000)
    entry(cache, "next", 10)
    assert names(cache) == {"next", other.name}


def test_an_entry_that_appears_during_the_search_for_it_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = ArtifactCache(tmp_path)
    find, stat = os.utime, Path.stat

    def utime(path: Path) -> None:
        try:
            find(path)
        finally:
            entry(cache, "a")  # another process, just now

    def late_stat(path: Path, **options: bool) -> os.stat_result:
        try:
            return stat(path, **options)
        except FileNotFoundError:
            monkeypatch.undo()
            entry(cache, "a")
            raise

    monkeypatch.setattr(os, "utime", utime)
    monkeypatch.setattr(Path, "stat", late_stat)
    assert cache.find("a") is None
    monkeypatch.undo()
    assert cache.find("a") is not None


def _write_and_read(root: Path, number: int, failed: "multiprocessing.Queue[str]") -> None:
    cache = ArtifactCache(root, size_limit=20_000)
    for turn in range(60):
        key = f"k{(turn * 7 + number) % 9}"
        found = cache.find(key)
        if found is None:
            entry(cache, key, 4000, key.encode()[-1:])
            continue
        try:
            content = (found / ENTRY_FILE).read_bytes()
        except FileNotFoundError:
            continue  # evicted by another process just now: callers compile again
        if content != key.encode()[-1:] * 4000:
            failed.put(f"{key}: {len(content)} bytes of {content[:1]!r}")


def test_processes_that_share_a_cache_never_see_half_an_entry(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    failed: multiprocessing.Queue[str] = context.Queue()
    processes = [context.Process(target=_write_and_read, args=(tmp_path, i, failed)) for i in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    assert [p.exitcode for p in processes] == [0, 0, 0]
    assert failed.empty()
    assert not [p for p in tmp_path.iterdir() if p.name.startswith(".")]
    assert sum(f.stat().st_size for f in tmp_path.rglob(ENTRY_FILE)) <= 20_000 + 3 * 4000
