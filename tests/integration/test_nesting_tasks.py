"""At stake: slots, depth, cancels, questions and ends work across all tasks of a tree of tasks."""

from __future__ import annotations

import json
import os
import shlex
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.life import leader_of, set_config
from tests.shells import AGENTCTL, below, define_shells, nested, subtask_line
from tests.steps import Task, kill, new_task, row, spawn, statuses
from tests.support import run, start, wait_until, worker

#: All of these take long; the quick tests beside them cover the usual case.
pytestmark = pytest.mark.slow


@pytest.fixture
def shells(root: Path) -> None:
    """Define an agent whose prompt is a script."""
    define_shells()


def rows(*options: str) -> dict[str, dict[str, Any]]:
    """Return task/instance -> row of `list`, for the whole tree."""
    told = run("list", "--recursive", "--json", *options).json
    return {f"{one['taskId']}/{one['agentInstance']}": one for one in told}


def running(task: Task, instance: str = "shell-1") -> None:
    """Wait until a worker runs, in a task that may not exist yet."""
    wait_until((task.agent(instance) / "worker.json").exists, what=f"{instance} of {task.path.name} to run")


def gated(gate: Path) -> str:
    """Return a shell command that completes once the file `gate` exists."""
    return shlex.join(worker("exits", 0, "--after-file", gate))


# -- slots and depth ---------------------------------------------------------------------------------------------------


def test_five_levels_of_tasks_finish_at_a_cap_of_one(shells: None) -> None:
    task = new_task(cap=1, depth=5)
    spawn(["sh", "-c", nested(5, "exit 0")], name="top")
    assert run("wait", "top", timeout=60).code == 0
    told = rows()
    assert [one["depth"] for one in told.values()] == [0, 1, 2, 3, 4, 5]
    assert {one["status"] for one in told.values()} == {"completed"}
    assert task.tickets() == []


def test_the_queue_is_that_of_the_root_task(shells: None, tmp_path: Path) -> None:
    task = new_task(cap=1)
    spawn(worker("exits", 0, "--after-file", tmp_path / "gate"), name="first")
    for number, priority in enumerate((0, 5)):
        run("subtask", "shell", f": s{number}", "--intent", f"echo {number} >> {tmp_path / 'order'}",
            "--priority", str(priority), "--no-wait")  # fmt: skip
    assert len(task.tickets()) == 2
    (tmp_path / "gate").touch()
    wait_until(lambda: {one["status"] for one in rows().values()}, accept=lambda found: found == {"completed"})
    assert (tmp_path / "order").read_text() == "1\n0\n"


def test_a_stricter_subtask_is_held_to_its_own_depth_and_a_laxer_one_to_the_roots(shells: None) -> None:
    new_task(cap=2, depth=2)
    run("subtask", "shell", ": strict")
    run("subtask", "shell", ": lax")
    tasks = Path(os.environ["AGENTCTL_ROOT"]) / "tasks"
    for name, depth in (("strict", 1), ("lax", 50)):
        set_config(Task(tasks / name), maxDepth=depth)
    inner = f"{AGENTCTL} spawn --wait -- sh -c '{AGENTCTL} spawn --wait -- true'"
    strict = run("spawn", "--task", "strict", "--agent", "shell", "--wait", inner, check=False)
    assert strict.code != 0
    said = "".join(file.read_text() for file in (tasks / "strict").glob("agents/*/stderr.log"))
    assert "Maximum subagent depth exceeded: shell-2 is at depth 1, maxDepth is 1" in said
    run("spawn", "--task", "lax", "--agent", "shell", "--wait", inner, check=False)
    said = "".join(file.read_text() for file in (tasks / "lax").glob("agents/*/stderr.log"))
    assert "is at depth 2, maxDepth is 2" in said


ESCAPES = {
    "nothing said": "env -i PATH=$PATH HOME=$HOME AGENTCTL_ROOT=$AGENTCTL_ROOT",
    "another's name": "env AGENTCTL_INSTANCE=shallow",
    "another's cookie": 'env AGENTCTL_INSTANCE=shallow AGENTCTL_AGENT_DIR=$SHALLOW AGENTCTL_COOKIE=$COOKIE',
    "a new session": "env -u AGENTCTL_INSTANCE setsid --wait",
    "another root": "env -i PATH=$PATH HOME=$HOME AGENTCTL_ROOT=$HOME/elsewhere",
    "another task": "env",
}  # fmt: skip


@pytest.mark.parametrize("escape", ESCAPES)
def test_no_lie_makes_a_worker_shallower(root: Path, tmp_path: Path, escape: str) -> None:
    task = new_task(cap=5)
    spawn(worker("exits", 0, "--after-file", tmp_path / "gate"), name="shallow")
    cookie = json.loads((task.agent("shallow") / "worker.json").read_bytes())["cookie"]
    run("new", "Another", "--id", "t2")
    made = "t2" if escape == "another task" else "t1"
    line = f"{ESCAPES[escape]} {AGENTCTL} spawn --name deep {'--task t2' if made == 't2' else ''} -- true"
    script = f"{AGENTCTL} spawn --wait --name middle -- sh -c {shlex.quote(line)}"
    environ = {"SHALLOW": str(task.agent("shallow")), "COOKIE": cookie}
    spawn(["sh", "-c", script], "--task", "t1", *(f"--env={key}={value}" for key, value in environ.items()), name="top")
    run("wait", "top", "--task", "t1", check=False)
    said = (task.agent("middle") / "stderr.log").read_text()
    assert "Maximum subagent depth exceeded: middle is at depth 1, maxDepth is 1" in said
    assert not list(tmp_path.rglob("agents/deep"))
    (tmp_path / "gate").touch()
    task.ended("shallow")


def test_a_loop_of_spawns_from_twenty_processes_gets_no_deeper(root: Path, tmp_path: Path) -> None:
    """Each attacker removes the variables that say who it is, and spawns itself again and again."""
    task = new_task(cap=4, depth=2)
    attack = tmp_path / "attack.sh"
    lie = f"env -i PATH=$PATH HOME=$HOME XDG_RUNTIME_DIR=$XDG_RUNTIME_DIR AGENTCTL_ROOT={root}"
    attack.write_text(
        f"for n in $(seq $1); do ({lie} {AGENTCTL} spawn --queue -- sh {attack} 1 || true) & done; wait\n"
    )
    spawn(["sh", str(attack), "20"], name="top")
    wait_until(lambda: set(statuses().values()), 55, accept=lambda found: found <= {"completed", "failed"})
    said = [line for file in task.path.glob("agents/*/stderr.log") for line in file.read_text().splitlines()]
    errors = [line for line in said if not line.startswith("hint:")]
    assert [line for line in errors if "Maximum subagent depth" not in line] == []
    depths = Counter(one["depth"] for one in run("list", "--json").json)
    assert (depths, len(errors)) == ({0: 1, 1: 20, 2: 20}, 20)


def test_a_worker_is_no_child_of_whom_the_shim_guards_that_launched_its_own(root: Path, tmp_path: Path) -> None:
    """A shim whose worker has ended takes the next ticket itself, and launches a shim for each further free slot."""
    task = new_task(cap=2)
    set_config(task, maxConcurrentAgents=2, maxDepth=2, childrenAtEnd="leave")
    waits = {name: f"while ! [ -e {tmp_path / name} ]; do sleep 0.02; done" for name in ("first", "second")}
    top = f"{AGENTCTL} spawn --queue --name deep -- sh -c {shlex.quote(waits['second'])}; {waits['first']}"
    spawn(["sleep", "600"], name="killed")
    spawn(["sh", "-c", top], name="top")
    task.has("agent.queued", "deep")
    asks = f"{AGENTCTL} spawn --queue --name child -- true"
    spawn(["sh", "-c", f"{asks}; {waits['second']}"], "--queue", name="other")
    # One process, so that nothing of it lives when top ends: no other process would notice its free slot.
    kill(task.shim_of("killed"), leader_of(task, "killed").pid)
    (tmp_path / "first").touch()
    task.has("agent.queued", "child")
    (tmp_path / "second").touch()
    task.ended("top", "deep", "other", "child")
    told = {one["agentInstance"]: (one["parent"], one["depth"]) for one in run("list", "--json").json}
    assert (told["deep"], told["child"]) == (("top", 1), ("other", 1))


# -- questions and looking ---------------------------------------------------------------------------------------------


def test_a_question_three_levels_down_is_found_and_answered_from_the_root(shells: None) -> None:
    new_task(cap=1, depth=3)
    ask = shlex.join(worker("asks", "--kind", "confirm", "Deeper?"))
    spawn(["sh", "-c", nested(3, ask)], name="top")
    found = wait_until(lambda: run("interact", "list", "--recursive", "--json").json, what="the question")
    assert [(one["taskId"], one["agentInstance"], one["question"]) for one in found] == [
        ("level1", "shell-1", "Deeper?"),
    ]  # fmt: skip
    assert run("interact", "list", "--recursive", "--task", "level1", "--json").json == found
    assert run("interact", "list", "--task", "t1", "--json").json == []
    run("interact", "respond", "level1", "--id", "q1", "yes")
    assert run("wait", "top").code == 0


def test_list_and_wait_any_see_the_whole_tree(shells: None, tmp_path: Path) -> None:
    new_task(cap=3, depth=2)
    spawn(["sh", "-c", nested(2, gated(tmp_path / "gate"))], name="top")
    tasks = Path(os.environ["AGENTCTL_ROOT"]) / "tasks"
    running(Task(tasks / "level1"))
    assert list(rows()) == ["t1/top", "level2/shell-1", "level1/shell-1"]
    assert [line.split("\t")[0] for line in run("list", "--recursive").out.splitlines()] == list(rows())
    assert list(rows("--task", "level2")) == ["level2/shell-1", "level1/shell-1"]
    waiting = start("wait-any", "--recursive", "--json")
    (tmp_path / "gate").touch()
    out, _ = waiting.communicate(timeout=30)
    given = [json.loads(out), *(run("wait-any", "--recursive", "--json").json for _ in range(2))]
    assert sorted((one["taskId"], one["agentInstance"], one["status"]) for one in given) == [
        ("level1", "shell-1", "completed"), ("level2", "shell-1", "completed"), ("t1", "top", "completed"),
    ]  # fmt: skip
    assert run("wait-any", "--recursive", check=False).code == 6


def test_a_wait_takes_in_a_subtask_that_is_made_meanwhile(shells: None, tmp_path: Path) -> None:
    task = new_task(cap=2)
    spawn(["sh", "-c", f"{gated(tmp_path / 'gate')}; {subtask_line('late', 'true')} >/dev/null; sleep 60"], name="top")
    waiting = start("wait-any", "--recursive", "--json")
    (tmp_path / "gate").touch()
    out, _ = waiting.communicate(timeout=30)
    assert (json.loads(out)["taskId"], json.loads(out)["status"]) == ("late", "completed")
    run("cancel", "top")
    task.ended("top")


# -- cancelling --------------------------------------------------------------------------------------------------------


def test_a_cancel_ends_the_deepest_first(shells: None, tmp_path: Path) -> None:
    task = new_task(cap=1, depth=3)
    spawn(["sh", "-c", nested(3, "sleep 60")], name="top")
    levels = [below(task, f"level{number}") for number in (1, 2, 3)]
    running(levels[0])
    told = run("cancel", "top", "--json").json
    assert told["status"] == "cancelled"
    assert len(told["withIt"]) == 3
    ends = [(level.exit("shell-1") or {})["endedAt"] for level in levels] + [(task.exit("top") or {})["endedAt"]]
    assert ends == sorted(ends)
    # A caller may end by itself after its child was cancelled; it counts as cancelled too.
    assert {one["status"] for one in rows().values()} == {"cancelled"}
    assert spawn(["true"], name="next").json["status"] == "running"
    task.ended("next")


def test_what_waits_below_a_cancelled_worker_never_starts(shells: None, tmp_path: Path) -> None:
    task = new_task(cap=1, depth=2)
    ran = tmp_path / "ran"
    script = (
        f"{AGENTCTL} subtask shell ': queued' --intent 'touch {ran}' --no-wait; touch {tmp_path / 'ready'}; sleep 60"
    )
    spawn(["sh", "-c", script], name="top")
    wait_until((tmp_path / "ready").exists)
    assert task.tickets() == ["shell-1"]
    run("cancel", "top")
    assert {name: one["status"] for name, one in rows().items()} == {
        "t1/top": "cancelled", "queued/shell-1": "cancelled",
    }  # fmt: skip
    assert not ran.exists()


def test_a_whole_tree_of_tasks_is_cancelled_at_once(shells: None, tmp_path: Path) -> None:
    new_task(cap=2)
    run("subtask", "shell", ": one", "--intent", "sleep 60", "--no-wait")
    run("subtask", "shell", ": two", "--intent", "sleep 60", "--no-wait")
    run("subtask", "shell", ": three", "--intent", "sleep 60", "--no-wait")
    assert run("cancel", "--all", "--json").json == []
    told = run("cancel", "--all", "--recursive", "--json").json
    assert sorted((one["taskId"], one["status"]) for one in told) == [
        ("one", "cancelled"), ("three", "cancelled"), ("two", "cancelled"),
    ]  # fmt: skip


def test_a_cancel_of_a_worker_whose_shim_is_gone_goes_down_too(shells: None) -> None:
    task = new_task(cap=2, depth=2)
    spawn(["sh", "-c", nested(2, "sleep 60")], name="top")
    running(below(task, "level1"))
    os.kill(task.shim_of("top"), 9)
    wait_until(lambda: row("top")["health"], accept=lambda health: health == "unsupervised")
    run("cancel", "top")
    assert {one["status"] for one in rows().values()} == {"cancelled"}


# -- a parent that ends before its children ----------------------------------------------------------------------------


def leaves_one(gate: Path) -> list[str]:
    """Return the argv of a worker that starts a sub-task and does not wait for it."""
    return ["sh", "-c", f"{AGENTCTL} subtask shell ': child' --intent {shlex.quote(gated(gate))} --no-wait >/dev/null"]


def test_by_default_its_end_is_told_after_theirs_and_names_them(shells: None, tmp_path: Path) -> None:
    task = new_task(cap=1)
    spawn(leaves_one(tmp_path / "gate"), name="top")
    task.has("agent.awaiting_children", "top")
    running(below(task, "child"))
    assert statuses() == {"top": "running"}
    assert run("list").out.split("\t")[2] == "awaits children"
    (tmp_path / "gate").touch()
    assert run("wait", "top", "--json").json["uncollected"] == 1
    child, top = below(task, "child").exit("shell-1") or {}, task.exit("top") or {}
    assert (top["status"], top["uncollected"]) == ("completed", ["child/shell-1"])
    assert child["endedAt"] <= top["endedAt"]
    assert run("list").out.split("\t")[1:3] == ["completed", "1 uncollected"]


def test_a_parent_that_only_waits_for_its_children_holds_no_slot_from_anybody(shells: None, tmp_path: Path) -> None:
    task = new_task(cap=2)
    spawn(leaves_one(tmp_path / "gate"), name="top")
    task.has("agent.awaiting_children", "top")
    running(below(task, "child"))
    assert spawn(["true"], name="stranger").json["status"] == "running"
    task.ended("stranger")
    (tmp_path / "gate").touch()
    task.ended("top")
    assert spawn(["true"], name="next").json["status"] == "running"
    task.ended("next")


def test_where_the_task_says_so_they_are_cancelled(shells: None, tmp_path: Path) -> None:
    task = new_task(cap=1)
    set_config(task, maxConcurrentAgents=2, graceSeconds=0.2, childrenAtEnd="cancel")
    spawn(leaves_one(tmp_path / "never"), name="top")
    task.ended("top")
    assert {name: one["status"] for name, one in rows().items()} == {
        "t1/top": "completed", "child/shell-1": "cancelled",
    }  # fmt: skip
    assert (task.exit("top") or {})["uncollected"] == ["child/shell-1"]


def test_where_the_task_says_so_they_are_left(shells: None, tmp_path: Path) -> None:
    task = new_task(cap=2)
    set_config(task, maxConcurrentAgents=2, graceSeconds=0.2, childrenAtEnd="leave")
    spawn(leaves_one(tmp_path / "gate"), name="top")
    task.ended("top")
    assert rows()["t1/top"]["uncollected"] == 1
    assert rows()["child/shell-1"]["status"] == "running"
    (tmp_path / "gate").touch()
    below(task, "child").ended("shell-1")


def test_a_word_that_is_no_policy_is_refused_by_line_and_key(root: Path) -> None:
    task = new_task()
    set_config(task, childrenAtEnd="maybe")
    refused = spawn(["true"], check=False)
    assert refused.code == 2
    assert "childrenAtEnd must be one of wait, cancel, leave, not 'maybe'" in refused.err


def test_a_pause_of_one_that_awaits_its_children_pauses_them(shells: None, tmp_path: Path) -> None:
    task = new_task(cap=2)
    spawn(leaves_one(tmp_path / "gate"), name="top")
    task.has("agent.awaiting_children", "top")
    running(below(task, "child"))
    run("pause", "top")
    assert [one["paused"] for one in rows().values()] == [True, True]
    run("unpause", "top")
    (tmp_path / "gate").touch()
    task.ended("top")


def test_a_cancel_of_one_that_awaits_its_children_ends_them_and_not_its_own_end(shells: None, tmp_path: Path) -> None:
    task = new_task(cap=2)
    spawn(leaves_one(tmp_path / "never"), name="top")
    task.has("agent.awaiting_children", "top")
    running(below(task, "child"))
    run("cancel", "top")
    assert {name: one["status"] for name, one in rows().items()} == {
        "t1/top": "completed", "child/shell-1": "cancelled",
    }  # fmt: skip


def test_a_waits_answer_to_a_cancel_is_structured(root: Path, tmp_path: Path) -> None:
    task = new_task(cap=2)
    answer = tmp_path / "answer"
    script = f"{AGENTCTL} spawn --name child -- sleep 60 >/dev/null; {AGENTCTL} wait-any --json > {answer}; sleep 60"
    spawn(["bash", "-c", f"trap '' INT; {script}"], name="top")
    task.has("agent.started", "child")
    loan = task.path / "slots" / "t1.top.loan"
    wait_until(loan.exists, what="the wait")
    run("cancel", "top")
    told = json.loads(answer.read_text())
    assert told in ({"agentInstance": "top", "stopped": "cancelled"}, {**told, "agentInstance": "child"})
