"""At stake: where a person has said that starts wait, none is refused for want of a slot; elsewhere each is told how.

Nothing runs in most of these tasks: a cap of 0 leaves no slot to anybody.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

import pytest

import agentctl
from tests.advice import follow
from tests.inside import call
from tests.shells import define_shells
from tests.steps import new_task, row, spawn, statuses
from tests.support import Completed, run, worker

NO_SLOT = 5


def personal(text: str) -> None:
    file = Path(os.environ["HOME"]) / ".config" / "agentctl" / "config.yaml"
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


def template(config: str) -> None:
    folder = Path(os.environ["HOME"]) / ".config" / "agentctl" / "templates" / "mine"
    folder.mkdir(mode=0o700, parents=True)
    (folder / "task.yaml").write_text(f"config: {config}\nroster: [{{argv: ['true']}}]\n", encoding="utf-8")


def test_a_task_a_person_or_a_template_lets_starts_wait(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    template("{maxConcurrentAgents: 0, queue: true}")
    call(capsys, "new", "--queue", "--max-concurrent", "0", "a task")
    call(capsys, "new", "--template", "mine", "--id", "a-template")
    personal("config: {queue: true, maxConcurrentAgents: 0}\n")
    call(capsys, "new", "a person")
    call(capsys, "new", "--no-queue", "--id", "not-here", "not here")
    personal("config: {maxConcurrentAgents: 0}\n")
    call(capsys, "new", "nobody")

    for task in ("a-task", "a-template", "a-person"):
        assert call(capsys, "spawn", "--task", task, "--", "true").out == f"true-1 queued in {task}\n"
        assert call(capsys, "spawn", "--task", task, "--no-queue", "--", "true").code == NO_SLOT
    for task in ("not-here", "nobody"):
        assert call(capsys, "spawn", "--task", task, "--", "true").code == NO_SLOT
        assert call(capsys, "spawn", "--task", task, "--queue", "--", "true").code == 0


def test_a_wrong_default_is_told_with_its_place(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    new_task().set_config("{queue: 1}")
    refused = call(capsys, "spawn", "--", "true")
    assert refused.code == 2
    assert "task.yaml:10: queue must be true or false, not 1" in refused.err
    personal("config:\n  queue: sometimes\n")
    refused = call(capsys, "new", "a task")
    assert refused.code == 2
    assert "config.yaml:2: queue must be true or false, not 'sometimes'" in refused.err


def test_a_retry_waits_as_the_task_says(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    task = new_task()
    spawn(["false"], "--wait", name="bad", check=False)
    task.set_config("{maxConcurrentAgents: 0}")
    assert call(capsys, "retry", "bad").code == NO_SLOT
    task.set_config("{maxConcurrentAgents: 0, queue: true}")
    assert call(capsys, "retry", "bad", "--no-queue").code == NO_SLOT
    assert call(capsys, "retry", "bad").out == "bad-2 queued in t1\n"


def test_a_batch_waits_unless_it_is_told_not_to(root: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    task, file = new_task(cap=0), tmp_path / "jobs"

    def batch(*rows: Mapping[str, object], options: tuple[str, ...] = ()) -> Completed:
        file.write_text("".join(f"{json.dumps(one)}\n" for one in rows), encoding="utf-8")
        return call(capsys, "spawn", "--batch", str(file), *options)

    plain = {"argv": ["true"]}
    waits, leaves = {"shell": "true", "queue": True}, {"shell": "true", "queue": False}
    assert batch(plain, waits).code == 0
    assert batch(plain, leaves).code == NO_SLOT
    assert batch(waits, options=("--no-queue",)).code == NO_SLOT
    assert batch(leaves, options=("--queue",)).code == 0
    refused = batch(plain, leaves, waits)
    assert (refused.code, refused.err.splitlines()[0]) == (
        2, f"error: {file}:2: queue is false, and true in {file}:3",
    )  # fmt: skip
    refused = batch({"name": "a", "argv": ["true"]}, {**leaves, "after": ["a"]})
    assert (refused.code, refused.err) == (
        2, f"error: {file}:2: it starts after others, and queue is false: leave that out\n",
    )  # fmt: skip
    assert len(task.tickets()) == 3
    assert call(capsys, "spawn", "--after", "true-1", "--no-queue", "--", "true").code == 2


def test_a_program_waits_as_the_task_says(root: Path) -> None:
    task = new_task(cap=0)
    found = agentctl.Task.find()
    with pytest.raises(agentctl.NoFreeSlot):
        found.spawn(argv=["true"])
    with pytest.raises(agentctl.NoFreeSlot):
        found.spawn_many([{"argv": ["true"], "queue": False}])
    task.set_config("{maxConcurrentAgents: 0, queue: true}")
    assert found.spawn(argv=["true"]).status == "queued"
    with pytest.raises(agentctl.NoFreeSlot):
        found.spawn(argv=["true"], queue=False)


def test_a_sub_task_waits_as_the_task_on_top_says(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    task = new_task(cap=0)
    define_shells()
    run("subtask", "shell", "Work below", "--id", "below", "--no-wait")
    assert call(capsys, "spawn", "--task", "below", "--agent", "shell", "true").code == NO_SLOT
    task.set_config("{maxConcurrentAgents: 0, queue: true}")
    assert call(capsys, "spawn", "--task", "below", "--agent", "shell", "true").out == "shell-2 queued in below\n"


@pytest.mark.follows("supervision/dispatch/dispatch._ways_on: agentctl new --queue")
def test_the_refusal_says_how_to_wait_once_and_always(root: Path, tmp_path: Path) -> None:
    task = new_task(cap=1)
    gate = tmp_path / "gate"
    spawn(worker("exits", 0, "--after-file", gate), name="a")
    refused = spawn(["true"], name="b", check=False)
    assert refused.code == NO_SLOT

    assert "--queue waits for a free one" in refused.err
    run("spawn", "--queue", "--name", "once", "--", "true")
    assert row("once")["status"] == "queued"

    line = f"queue: true in the config of {task.path / 'task.yaml'} makes every start wait"
    assert line in refused.err
    task.set_config("{maxConcurrentAgents: 1, queue: true}")
    run("spawn", "--name", "always", "--", "true")
    assert row("always")["status"] == "queued"
    again = spawn(["true"], "--no-queue", check=False)
    assert again.code == NO_SLOT
    assert "queue: true" not in again.err, "it says so already"

    follow(refused, 'agentctl new --queue "TITLE"', put={"TITLE": "another"})
    assert "queue: true" in (root / "tasks" / "another" / "task.yaml").read_text(encoding="utf-8")
    gate.touch()
    run("wait-all", "--task", "t1")
    assert statuses() == {}
