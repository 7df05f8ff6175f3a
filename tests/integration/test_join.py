"""At stake: one report has the results of all workers, and no worker can write another one's part."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from agentctl.adapters.eventlog import LogReader
from agentctl.adapters.taskdir import Root
from agentctl.domain.events import BadLine, Event
from agentctl.operations.show.joining import join_results
from tests.steps import new_task, spawn, spawn_batch
from tests.support import run, worker


@pytest.mark.slow
def test_a_report_has_every_worker_in_the_order_of_the_roster(root: Path, tmp_path: Path) -> None:
    task = new_task()
    spawn_batch(
        {"name": name, "argv": argv}
        for name, argv in {
            "third": ["/bin/sh", "-c", "printf 'hello\\033[2J\\n## first\\n'"],
            "second": ["/bin/sh", "-c", "echo out; exit 3"],
            "first": ["/bin/sh", "-c", "head -c 100000 /dev/zero | tr '\\0' x"],
        }.items()
    )
    run("wait-all", check=False)
    told = run("join", "--json", "--max-bytes", "50").json
    assert [part["agentInstance"] for part in told["workers"]] == ["third", "second", "first"]
    assert json.loads((task.path / "report.json").read_bytes())["workers"] == told["workers"]
    first = told["workers"][2]
    whole = hashlib.sha256(b"x" * 100_000).hexdigest()
    assert (first["truncated"], first["size"], first["sha256"], len(first["text"])) == (True, 100_000, whole, 50)
    assert (told["workers"][1]["status"], told["workers"][1]["exitCode"]) == ("failed", 3)
    text = (task.path / "report.md").read_text(encoding="utf-8")
    assert [line for line in text.splitlines() if line.startswith("## ")] == ["## third", "## second", "## first"]
    assert "> ## first" in text
    assert "\x1b" not in text
    assert f"sha256 {whole}" in text


@pytest.mark.slow
def test_a_report_tells_questions_and_who_answered(root: Path, tmp_path: Path) -> None:
    new_task()
    spawn(worker("asks", "--kind", "confirm", "Delete the old logs?"), name="a")
    run("wait-any", "a", "--for", "blocked")
    assert "Not answered." in _report(tmp_path, "a")
    question = run("interact", "list", "--json").json[0]
    run("interact", "respond", "a", "--id", "q1", (question["options"] or [{"id": "yes"}])[0]["id"])
    run("wait", "a", check=False)
    assert "Answered by user:" in _report(tmp_path, "a")


def _report(folder: Path, *instances: str) -> str:
    run("join", *instances, "--out", folder / "report")
    return (folder / "report" / "report.md").read_text(encoding="utf-8")


def test_an_unknown_worker_writes_no_report(root: Path) -> None:
    task = new_task()
    assert run("join", "nobody", check=False).code == 3
    assert not (task.path / "report.md").exists()


def test_the_log_is_read_once_however_many_are_joined(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = new_task()
    spawn_batch({"name": f"w{number}", "argv": ["true"]} for number in range(6))
    run("wait-all")
    read = LogReader.rows
    looks: list[str] = []

    def counted(reader: LogReader) -> Iterator[tuple[int, Event] | BadLine]:
        looks.append(str(reader.offset))
        return read(reader)

    monkeypatch.setattr(LogReader, "rows", counted)
    joined = {}
    for chosen in (["w0"], [f"w{number}" for number in range(6)]):
        looks.clear()
        report = join_results(Root(root).task(task.path.name), chosen).report
        joined[len(report["workers"])] = len(looks)
    assert joined[6] == joined[1]
