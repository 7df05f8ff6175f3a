"""At stake: a file that came with a repository sends workers elsewhere unasked; one that is trusted does not count."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agentctl.adapters.taskdir import Root, TaskDir
from agentctl.errors import AgentctlError, NotFound, Refused, UsageError
from agentctl.operations.start.batch_findings import Surroundings
from agentctl.operations.start.placing import placement_for
from agentctl.operations.start.requests import SpawnRequest
from agentctl.operations.trust.trusting import list_trust, revoke_files, trust_files
from tests.steps import Task, new_task
from tests.support import run


@pytest.fixture
def task(root: Path) -> Task:
    return new_task()


def write(root: Path, text: str) -> Path:
    file = root / "config.yaml"
    file.write_text(text, encoding="utf-8")
    return file


def placed(task: Task, **asked: Any) -> dict[str, Any] | None:
    return placement_for(SpawnRequest(argv=["true"], **asked), None, None, Surroundings(TaskDir(str(task.path))))


def in_task(task: Task, config: str) -> None:
    file = task.path / "task.yaml"
    text = file.read_text(encoding="utf-8")
    assert "\nconfig: {" in text
    file.write_text(text.replace("\nconfig: {", f"\nconfig: {{{config}, ", 1), encoding="utf-8")


def test_the_settings_of_a_root_count_once_a_person_trusts_them_as_they_are(task: Task, root: Path) -> None:
    file = write(root, "runner: loopback\nresources: {cpus: 2}\n")
    said = run("spawn", "--", "true", check=False)
    assert said.code == 1
    assert f"{file} says where workers run (cpus: 2; workers run by loopback), and is not trusted" in said.err
    assert f"agentctl trust {file}" in said.err
    assert not list((task.path / "agents").iterdir())
    trust_files(Root(str(root)), [str(file)])
    found = placed(task)
    assert found is not None
    assert (found["runner"], found["cpus"]) == ("loopback", 2)
    write(root, "runner: loopback\nresources: {cpus: 3}\n")
    with pytest.raises(Refused, match="is not trusted"):
        placed(task)
    with pytest.raises(Refused, match="is not trusted"):
        placed(task, runner="loopback")
    assert placed(task, runner="local") is None, "what it says is of no matter"


def test_a_task_and_a_command_say_it_nearer_than_the_root(task: Task, root: Path) -> None:
    trust_files(Root(str(root)), [str(write(root, "runner: loopback\nresources: {cpus: 2}\n"))])
    found = placed(task, cpus=5)
    assert found is not None
    assert found["cpus"] == 5
    in_task(task, "runner: local")
    assert placed(task) is None
    found = placed(task, runner="loopback")
    assert found is not None
    assert found["cpus"] == 2


def test_a_root_that_names_resources_alone_sends_nobody_away(task: Task, root: Path) -> None:
    trust_files(Root(str(root)), [str(write(root, "resources: {cpus: 2}\n"))])
    assert placed(task) is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("notify: {}\n", "config.yaml:1: unknown key 'notify'; known in a root: runner, resources"),
        ("runner: slurm\nresources: {cores: 2}\n", "config.yaml:2: cores is not a resource"),
        ("runner: [slurm]\n", "config.yaml:1: runner must be the name of a runner"),
        ("runner: a b\n", "config.yaml:1: runner must be the name of a runner"),
    ],
    ids=lambda one: one[:20],
)
def test_a_file_that_cannot_be_read_names_its_line_and_cannot_be_trusted(
    task: Task, root: Path, text: str, words: str
) -> None:
    file = write(root, text)
    with pytest.raises(UsageError) as caught:
        trust_files(Root(str(root)), [str(file)])
    assert words in str(caught.value)
    with pytest.raises(Refused, match="it cannot be read"):
        placed(task)


def link(file: Path) -> None:
    (file.parent / "other").write_text("runner: loopback\n", encoding="utf-8")
    file.symlink_to("other")


@pytest.mark.parametrize("make", [link, os.mkfifo, os.mkdir], ids=["link", "FIFO", "folder"])
def test_what_is_no_file_of_a_person_is_neither_followed_nor_waited_for(
    task: Task, root: Path, make: Callable[[Path], object]
) -> None:
    make(root / "config.yaml")
    with pytest.raises(AgentctlError, match="is not a plain file"):
        placed(task)
    _, warnings = list_trust(Root(str(root)))
    assert [line for line in warnings if "config.yaml is not a plain file" in line]


def test_trust_shows_it_and_takes_it_back(task: Task, root: Path) -> None:
    file = write(root, "runner: slurm\nresources: {args: [--account=lab]}\n")
    (row,) = json.loads(run("trust", "--json").out)
    said = ["options of the engine: --account=lab", "workers run by slurm"]
    assert row == {"path": str(file), "kind": "settings", "agent": None, "trusted": False, "powers": said}
    run("trust", str(file))
    assert [each["trusted"] for each in list_trust(Root(str(root)))[0]] == [True]
    file.unlink()
    (row,) = revoke_files(Root(str(root)), [str(file)])
    assert (row["kind"], row["trusted"]) == ("settings", False)
    with pytest.raises(NotFound, match="was not trusted"):
        revoke_files(Root(str(root)), [str(file)])
