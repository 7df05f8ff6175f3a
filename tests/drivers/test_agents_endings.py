"""At stake: however an agent program ends, and whatever it prints before, its end is reported truthfully."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.agent_steps import activity, agent, agent_world, blocked, ends, plays, rebuilds_the_same
from tests.life import known, living, passes, read, set_config
from tests.steps import Task, statuses
from tests.support import alike, run, wait_for_json, wait_until


@pytest.fixture
def task(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Task:
    return agent_world(tmp_path, monkeypatch)


#: What the program does; the status and reason that are reported.
ENDINGS = {
    "exits well, without a result": ("raise SystemExit(0)", "failed", "truncated"),
    "a result, then a crash": ("me.answer('x'); raise SystemExit(9)", "completed", None),
    "a result, then a signal": ("me.answer('x'); os.kill(os.getpid(), 9)", "completed", None),
    "its output closed early": ("me.assistant({'type': 'text', 'text': 'I'}); os.close(1)", "failed", "truncated"),
    "half a line": ('os.write(1, b\'{"type": "resu\'); os._exit(0)', "failed", "truncated"),
    "no newline at the end": (
        "end = {'type': 'result', 'is_error': False}; os.write(1, json.dumps(end).encode()); os._exit(0)",
        *("completed", None),
    ),
    "bytes that are no text": (
        "os.write(1, b'\\xff\\xfe\\x00{}\\n\\xc3\\n'); me.answer('\\udc80 \\ud83d x\\x1b[2J')",
        *("completed", None),
    ),
    "a signal before any word": ("os.kill(os.getpid(), 11)", "failed", "signal"),
}
#: The endings that differ most; `make soak` tries the others too.
TRIED = ("a result, then a crash", "half a line")


@pytest.mark.parametrize("how", [*TRIED, *alike(*(how for how in ENDINGS if how not in TRIED))])
def test_an_end_is_told_as_it_was(task: Task, tmp_path: Path, how: str) -> None:
    script, status, reason = ENDINGS[how]
    agent(plays(tmp_path, f"import json, os; {script}"))
    end = ends()
    told = (end["status"], end.get("reason"), end["result"]["success"])
    assert told == (status, reason, status == "completed"), end
    assert "bug in agentctl" not in run("result", "a", check=False).err
    rebuilds_the_same(task)


@pytest.mark.slow
def test_output_that_a_grandchild_holds_open_holds_up_nobody(task: Task, tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    agent(plays(tmp_path, f"""
import json, pathlib, subprocess
child = subprocess.Popen(["sleep", "600"], start_new_session=True)
pathlib.Path({str(pids)!r}).write_text(json.dumps(child.pid))
me.answer("done")
"""))  # fmt: skip
    grandchild = known(wait_for_json(pids))
    end = ends()
    assert (end["status"], end["result"]["finalMessage"]) == ("completed", "done")
    assert living([grandchild]) == []


@pytest.mark.slow
def test_a_flood_is_stopped_at_its_limit(task: Task, tmp_path: Path) -> None:
    set_config(task, maxOutputBytes=1 << 20, graceSeconds=0.2)
    agent(plays(tmp_path, "while True: me.assistant({'type': 'text', 'text': 'x' * 50000})"))
    end = ends()
    assert (end["status"], end["reason"]) == ("failed", "output_limit")


@pytest.mark.slow
def test_a_program_that_closes_its_input_can_be_answered_without_harm(task: Task, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    agent(plays(tmp_path, f"""
import os, time
me.ask("Bash", {{"command": "x"}}, "permission")
os.close(0)
while not os.path.exists({str(gate)!r}): time.sleep(0.02)
me.answer("went on")
os._exit(0)
"""))  # fmt: skip
    blocked()
    run("interact", "respond", "a", "--id", "q1", "allow")
    gate.touch()
    end = ends()
    assert (end["status"], end["result"]["finalMessage"]) == ("completed", "went on")
    rebuilds_the_same(task)


@pytest.mark.slow
def test_a_stopped_program_can_be_cancelled(task: Task, tmp_path: Path) -> None:
    agent(plays(tmp_path, "import os, signal; os.kill(os.getpid(), signal.SIGSTOP)"), "--grace-seconds", "0.2")
    wait_until((task.agent("a") / "session.json").exists, what="the session")
    run("cancel", "a")
    assert statuses() == {"a": "cancelled"}


@pytest.mark.slow
def test_the_clock_stands_still_while_it_asks(task: Task) -> None:
    agent("permit x", "--timeout-seconds", "4")
    blocked()
    passes(4.5)
    assert statuses() == {"a": "blocked"}
    run("interact", "respond", "a", "--id", "q1", "allow")
    assert ends()["status"] == "completed"


@pytest.mark.slow
def test_a_cancel_ends_the_pause_between_attempts(task: Task, tmp_path: Path) -> None:
    agent(f"once 500 {tmp_path / 'tried'}", "--retries", "2", "--retry-delay-seconds", "3600")
    task.has("agent.retrying", "a")
    run("cancel", "a")
    assert ends()["status"] == "cancelled"


@pytest.mark.slow
def test_the_activity_of_several_attempts_is_made_again(task: Task, tmp_path: Path) -> None:
    agent(f"once 500 {tmp_path / 'tried'}", "--retries", "2", "--retry-delay-seconds", "0.05")
    assert ends()["attempt"] == 2
    rebuilds_the_same(task)


@pytest.mark.slow
def test_the_activity_tells_what_a_policy_has_answered_also_when_it_is_made_again(task: Task, tmp_path: Path) -> None:
    script = "me.ask('Bash', {'command': 'a'}, lambda answer: me.ask('Bash', {'command': 'b'}, 'permission'))"
    agent(plays(tmp_path, script), "--permissions", "allow")
    ends()
    assert [row["text"] for row in activity(task) if row.get("name") == "permission"] == ["allow: Bash"] * 2
    rebuilds_the_same(task)


def test_who_kills_the_driver_after_the_answer_changes_nothing_about_it(task: Task, tmp_path: Path) -> None:
    """The program has answered, and lingers; its driver is killed meanwhile."""
    agent(plays(tmp_path, "import time; me.answer('done'); time.sleep(600)"))
    wait_until((task.agent("a") / "outcome.json").exists, what="the answer")
    os.kill(read(task.agent("a") / "worker.json")["pid"], signal.SIGKILL)
    end = ends()
    assert (end["status"], end["result"]["finalMessage"]) == ("completed", "done")


STREAMING = """
import os, select, signal
usage = {"input_tokens": 100, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 40, "output_tokens": 1}
content = [{"type": "text", "text": "so far"}]
message = {"id": "m1", "role": "assistant", "model": "none", "usage": usage, "content": content}
say(type="assistant", uuid="u1", message=message)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.slow
def test_the_figures_are_one_truth_in_every_ending(task: Task, tmp_path: Path) -> None:
    set_config(task, cooldownSeconds=0)
    for name, prompt in (("ended", "say all"), ("killed", plays(tmp_path, STREAMING)), ("crashed", "crash")):
        agent(prompt, name=name)
        ends(name)
    agent(f"once 429 {tmp_path / 'tried'}", "--retries", "2", "--retry-delay-seconds", "0.05", name="retried")
    ends("retried")
    told = {one["agentInstance"]: one for one in run("usage", "--json").json["workers"]}
    trees = {one["agentInstance"]: one["tokens"] for one in run("tree", "--json").json["workers"]}
    for one in run("list", "--json").json:
        name = one["agentInstance"]
        result = run("show", name, "--json").json["result"]
        assert {**result["usage"], "costUsd": result["costUsd"]} == one["usage"], name
        assert one["usage"] == {key: told[name][key] for key in ("input", "output", "cached", "costUsd")}
        assert trees[name] == result["usage"]
    assert told["killed"]["input"] == 100
