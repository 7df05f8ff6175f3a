"""At stake: odd prompts, odd programs, a failing disk: each gets a clear message, and no work of an agent is lost."""

from __future__ import annotations

import errno
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests import faults as layer
from tests.agent_steps import agent, agent_world, blocked, ends, plays, rebuilds_the_same
from tests.faults import Faults
from tests.integration.test_disk import Disk, disk  # noqa: F401 - a fixture
from tests.life import read
from tests.steps import Task, row, spawn_batch, statuses
from tests.support import alike, run, wait_until


@pytest.fixture
def task(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Task:
    return agent_world(tmp_path, monkeypatch)


def define(task: Task, name: str, script: str, more: str = "") -> None:
    """Define an agent of the command driver."""
    folder = task.path.parents[1] / "agents"
    folder.mkdir(exist_ok=True)
    head = f"name: {name}\ndescription: d\ndriver: command\nargv: [/bin/sh, -c, {json.dumps(script)}, sh]\n{more}"
    (folder / f"{name}.md").write_text(f"---\n{head}---\n", encoding="utf-8")
    run("trust", folder / f"{name}.md")


@pytest.mark.slow
def test_a_prompt_of_any_shape_arrives_as_it_was(task: Task) -> None:
    for refused in ("", "  \n "):
        done = run("spawn", "--agent", "general", refused, check=False)
        assert (done.code, "empty" in done.err) == (2, True), done
    run("spawn", "--agent", "general", "--name", "dashes", "-", stdin="--say -x")
    assert ends("dashes")["status"] == "completed"
    long = "line\n" * 200_000 + "say it was long"
    run("spawn", "--agent", "general", "--name", "long", "-", stdin=long)
    assert ends("long")["result"]["finalMessage"] == "it was long"


@pytest.mark.slow
def test_agents_and_commands_wait_for_each_other_in_one_batch(task: Task, tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"name": "c", "argv": ["true"]},
        {"name": "a", "agent": "general", "prompt": "show COLOUR", "after": ["c"], "env": {"COLOUR": "mauve"}},
        {"name": "b", "agent": "general", "prompt": "say b", "after": ["a"], "key": "k", "priority": 3},
    ]
    spawn_batch(rows)
    assert ends("b")["status"] == "completed"
    assert read(task.agent("a") / "result.json")["finalMessage"] == "mauve"
    assert "mauve" not in (task.agent("a") / "spec.json").read_text(encoding="utf-8")
    again = run("spawn", "--agent", "general", "--key", "k", "--after", "a", "--json", "say b").json
    assert (again["agentInstance"], again["reused"]) == ("b", True)


@pytest.mark.slow
def test_a_template_has_agents_in_its_roster(task: Task) -> None:
    folder = task.path.parents[1] / "templates" / "pair"
    folder.mkdir(parents=True)
    (folder / "task.yaml").write_text(
        "title: Two agents\nparameters: {topic: {description: what}}\nroster:\n"
        "  - {name: first, agent: general, prompt: 'say {topic}'}\n"
        "  - {name: second, agent: general, prompt: 'say after', after: [first]}\n",
        encoding="utf-8",
    )
    run("trust", str(folder))
    run("new", "--template", "pair", "--set", "topic=otters", "--start", "--id", "t2")
    run("wait-all", "--task", "t2")
    results = [read(task.path.parent / "t2" / "agents" / name / "result.json") for name in ("first", "second")]
    assert [result["finalMessage"] for result in results] == ["otters", "after"]


@pytest.mark.slow
def test_an_agent_starts_no_children_beyond_its_depth(task: Task) -> None:
    agent("say x", "--keep")
    blocked()
    inside = {"AGENTCTL_TASK": "t1", "AGENTCTL_INSTANCE": "a", "AGENTCTL_AGENT_DIR": str(task.agent("a"))}
    run("spawn", "--agent", "general", "--name", "child", "--keep", "say y", env=inside)
    blocked("child")
    below = {**inside, "AGENTCTL_INSTANCE": "child", "AGENTCTL_AGENT_DIR": str(task.agent("child"))}
    refused = run("spawn", "--agent", "general", "say z", env=below, check=False)
    assert "depth" in refused.err
    run("cancel", "--all")


@pytest.mark.parametrize(
    "program", ["echo 0.0.1", None, *alike("echo no version", "exit 1", "printf '\\377\\376'")], ids=str
)
def test_doctor_takes_any_program(task: Task, tmp_path: Path, program: str | None) -> None:
    claude = tmp_path / "bin" / "claude"
    claude.unlink()
    if program is None:
        claude.mkdir()
    else:
        claude.write_text(f"#!/bin/sh\n{program}\n", encoding="utf-8")
        claude.chmod(0o700)
    done = run("doctor", check=False)
    assert "Traceback" not in done.err
    assert "claude" in done.out
    if program is None:
        refused = agent("say x", check=False)
        assert (refused.code, "npm install" in refused.err) == (1, True)


@pytest.mark.slow
def test_a_prompt_that_fits_on_no_command_line_says_so(task: Task) -> None:
    define(task, "echoes", "echo done")
    run("spawn", "--agent", "echoes", "--name", "e", "-", stdin="x" * 300_000, check=False)
    decision = task.exit("e") or ends("e")
    assert decision["reason"] == "not_started"
    assert "promptOnStdin" in decision["message"]


@pytest.mark.slow
def test_a_command_that_gets_no_input_may_work_as_long_as_it_likes(task: Task) -> None:
    define(task, "slow", "sleep 12; echo done")
    run("spawn", "--agent", "slow", "--name", "s", "x")
    end = ends("s")
    assert (end["status"], end["result"]["finalMessage"]) == ("completed", "done")


@pytest.mark.slow
def test_an_agent_whose_folder_is_removed_ends_and_holds_no_slot(task: Task, tmp_path: Path) -> None:
    task.set_cap(1)
    agent("permit x")
    blocked()
    # Its driver may be writing there: moved away first, the folder disappears at once.
    task.agent("a").rename(tmp_path / "removed")
    shutil.rmtree(tmp_path / "removed", ignore_errors=True)
    run("cancel", "a", check=False)
    wait_until(lambda: run("spawn", "--", "true", check=False).code, what="the slot", accept=lambda code: code == 0)
    run("wait-all", "--timeout-seconds", "20", check=False)


@pytest.mark.slow
def test_a_full_disk_holds_an_agent_up_and_costs_it_nothing(
    disk: Disk,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    task = agent_world(tmp_path, monkeypatch)
    ready, gate, tried = tmp_path / "ready", tmp_path / "gate", tmp_path / "tried"
    agent(plays(tmp_path, f"""
import os, time
open({str(ready)!r}, "w").close()
while not os.path.exists({str(gate)!r}): time.sleep(0.02)
me.ask("Bash", {{"command": "x" * 9000}}, "permission")
open({str(tried)!r}, "w").close()
"""))  # fmt: skip
    wait_until(ready.exists, what="the program")
    disk.fill()
    gate.touch()
    wait_until(tried.exists, what="the question")
    assert statuses() == {"a": "running"}
    disk.make_room()
    question = blocked()
    assert question["id"] == "q1"
    disk.fill()
    disk.make_room()
    run("interact", "respond", "a", "--id", "q1", "allow")
    assert ends()["result"]["finalMessage"] == "allowed"
    rebuilds_the_same(task)


@pytest.mark.slow
@pytest.mark.parametrize("folder", ["inbox", *alike("interactions", "outbox")])
def test_an_agent_that_starts_on_a_full_disk_waits_for_room(task: Task, faulty: Faults, folder: str) -> None:
    fault = faulty.fail(task.agent("a") / folder, layer.MKDIR, errno.ENOSPC)
    agent("say hello")
    wait_until(lambda: faulty.hits(fault) > 1, what="its driver to be refused")
    faulty.mend()
    assert ends()["result"]["finalMessage"] == "hello"


@pytest.mark.slow
def test_an_agent_whose_files_cannot_be_read_at_its_start_waits_until_they_can(task: Task, faulty: Faults) -> None:
    run("pause")
    agent("say hello", "--queue")
    fault = faulty.fail(task.agent("a") / "session.json", layer.OPEN, errno.EIO)
    run("unpause")
    wait_until(lambda: faulty.hits(fault) > 1, what="its driver to be refused")
    faulty.mend()
    assert ends()["result"]["finalMessage"] == "hello"


@pytest.mark.slow
def test_a_report_that_the_disk_does_not_give_is_read_once_it_does(task: Task, faulty: Faults, tmp_path: Path) -> None:
    gate, outbox = tmp_path / "gate", task.agent("a") / "outbox"
    agent(plays(tmp_path, f"""
import os, time
while not os.path.exists({str(gate)!r}): time.sleep(0.02)
me.answer("done")
"""))  # fmt: skip
    wait_until(outbox.is_dir, what="its outbox")
    for name, verb in (("one", "progress"), ("two", "nothing")):
        (tmp_path / name).write_text(json.dumps({"verb": verb, "percent": 40, "text": "reading"}), encoding="utf-8")
    fault = faulty.fail(outbox, layer.READ, errno.EIO)
    for name in ("one", "two"):
        (tmp_path / name).rename(outbox / f"{name}.json")
    wait_until(lambda: faulty.hits(fault) > 3, what="the disk to refuse both")
    faulty.mend()
    wait_until(lambda: not list(outbox.iterdir()), what="both to be taken up")
    assert row("a")["progress"]["percent"] == 40
    gate.touch()
    assert ends()["status"] == "completed"
