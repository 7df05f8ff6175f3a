"""At stake: a result is bounded and says so: how much was cut, how large the whole is, its hash and where it lies."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from tests.steps import held, new_task, spawn, spawn_batch
from tests.support import alike, run, worker


def test_the_tail_of_stdout_stands_in_for_a_result_and_the_cut_is_marked(root: Path) -> None:
    task = new_task()
    spawn(["sh", "-c", "seq 1 5000; echo to stderr >&2"], name="a")
    run("wait", "a")
    whole = (task.agent("a") / "stdout.log").read_bytes()
    told = run("result", "a", "--json").json
    assert (told["source"], told["truncated"], told["size"]) == ("stdout", True, len(whole))
    assert told["sha256"] == hashlib.sha256(whole).hexdigest()
    assert told["path"] == str(task.agent("a") / "stdout.log")
    assert told["text"].encode() == whole[-4000:]
    plain = run("result", "a")
    assert plain.out.encode() == whole[-4000:]
    assert plain.err == f"[cut: 4000 of {len(whole)} bytes; whole: {told['path']}]\n"
    assert run("result", "a", "--max-bytes", "1000000").out.encode() == whole
    assert run("result", "a", "--max-bytes", "0", "--json").json["text"] == ""


@pytest.mark.parametrize(
    ("printed", "limit"), [(r"\303\251" * 30, 31), *alike((r"\377" * 3, 2), (r"\360\237\220\215" * 30, 30))]
)
def test_binary_and_cut_characters_stay_within_the_bound(root: Path, printed: str, limit: int) -> None:
    new_task()
    spawn(["sh", "-c", f"printf '{printed}'"], name="a")
    run("wait", "a")
    told = run("result", "a", "--max-bytes", str(limit), "--json").json
    assert len(told["text"].encode()) <= limit
    assert told["truncated"] is True


@pytest.mark.slow
def test_a_long_declared_summary_is_cut_marked_and_found_whole(root: Path, tmp_path: Path) -> None:
    task = new_task()
    file = tmp_path / "report.md"
    file.write_text("short")
    spawn(worker("reports", "--summary", "\u00e9" * 5000, "--file", file), name="a")
    run("wait", "a")
    told = run("result", "a", "--json").json
    assert (told["truncated"], told["size"]) == (True, 10_000)
    assert told["summary"] == "\u00e9" * 2000
    assert told["path"] == str(task.agent("a") / "result.json")
    assert told["sha256"] == hashlib.sha256(("\u00e9" * 5000).encode()).hexdigest()
    assert f"[cut: 4000 of 10000 bytes; whole: {told['path']}]" in run("result", "a").err


@pytest.mark.slow
def test_the_exit_code_tells_of_the_worker(root: Path, tmp_path: Path) -> None:
    task = new_task()
    spawn_batch(
        [
            {"name": "good", "argv": ["echo", "fine"]},
            {"name": "bad", "argv": ["sh", "-c", "echo half; exit 3"]},
            {"name": "silent", "argv": ["true"]},
            held(tmp_path / "gate", "late"),
        ]
    )
    task.ended("good", "bad", "silent")
    assert (run("result", "good").out, run("result", "silent").out) == ("fine\n", "")
    bad = run("result", "bad", check=False)
    assert (bad.code, bad.out) == (7, "half\n")
    late = run("result", "late", check=False)
    assert late.code == 1
    assert "late is running" in late.err
    assert run("result", "nobody", check=False).code == 3
    assert run("result", "silent", "--json").json["source"] == "none"
    (tmp_path / "gate").touch()
    task.ended("late")
