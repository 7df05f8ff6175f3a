"""At stake: a tree of tasks never starts or uses more than its root task allows, and refuses with figures."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.agent_steps import agent_world, inside, plays
from tests.life import read, set_config
from tests.shells import define_shells
from tests.steps import Task, statuses
from tests.support import Completed, run, wait_for_text, wait_until, worker

#: Makes the agent program answer and report this usage.
PLAY = """
import json, time
def spend(tokens, dollars, text="done"):
    me.turns += 1
    usage = {"input_tokens": 0, "output_tokens": tokens}
    block = {"type": "text", "text": text}
    message = {"id": f"msg_{me.turns}", "type": "message", "role": "assistant", "model": "none", "usage": usage,
               "content": [block], "stop_reason": None}
    say(type="assistant", message=message, parent_tool_use_id=None, session_id=me.session)
    models = {"none": {"inputTokens": 0, "outputTokens": tokens, "cacheReadInputTokens": 0, "costUSD": dollars}}
    me.result(text, modelUsage=models, usage=usage, total_cost_usd=dollars)
"""


@pytest.fixture
def task(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Task:
    """Make a task, with one agent program installed."""
    return agent_world(tmp_path, monkeypatch, cap=3)


@pytest.fixture
def play(tmp_path: Path) -> Callable[[str], str]:
    """Return a function that turns a script into a prompt that makes the agent program run it."""
    return lambda script: plays(tmp_path, PLAY + script)


def agent(prompt: str, name: str, *options: str | Path, check: bool = True) -> Completed:
    """Start an agent."""
    return run("spawn", "--agent", "general", "--name", name, *options, prompt, check=check)


def ends(name: str) -> dict[str, Any]:
    """Wait for a worker's end; return the decision."""
    run("wait", name, check=False)
    found: dict[str, Any] = run("show", name, "--json").json["exit"]
    return found


def read_result(task: Task, name: str) -> dict[str, Any]:
    """Wait for a worker's end; return its result."""
    ends(name)
    found: dict[str, Any] = read(task.agent(name) / "result.json")
    return found


@pytest.mark.slow
def test_no_more_workers_are_started_than_the_tree_may_have(task: Task) -> None:
    set_config(task, maxWorkers=2)
    run("spawn", "--", "true")
    refused = run("spawn", "--batch", "-", stdin='{"argv": ["true"]}\n' * 2, check=False)
    assert refused.code == 1
    assert "maxWorkers is 2: 1 were started, 2 more are asked for" in refused.err
    run("spawn", "--", "true")
    assert run("spawn", "--queue", "--", "true", check=False).code == 1
    assert len(statuses()) == 2
    assert run("usage", "--json").json["left"] == {"maxWorkers": 0}
    run("wait-all")


@pytest.mark.slow
def test_a_worker_that_spawns_from_many_processes_gets_never_one_more(task: Task) -> None:
    set_config(task, maxWorkers=9, maxDepth=2, maxConcurrentAgents=4)
    run("spawn", "--name", "loop", "--", *worker("spawns_in_a_loop", 20))
    run("wait-all", timeout=60)
    assert len(task.order("agent.queued")) == 9
    assert (task.agent("loop") / "stdout.log").read_text(encoding="ascii") == "8\n"


@pytest.mark.slow
def test_many_processes_together_reserve_no_more_money_than_there_is(task: Task) -> None:
    set_config(task, maxCostUsd=5, maxDepth=2, maxConcurrentAgents=4)
    attack = worker("spawns_in_a_loop", 20, "--agent", "general", "--max-budget-usd", "1", "hang")
    run("spawn", "--name", "loop", "--", *attack)
    wait_for_text(task.agent("loop") / "stdout.log", timeout_s=60)
    told = run("usage", "--json").json
    run("cancel", "--all")
    assert len(task.order("agent.queued")) == 1 + 5
    assert (told["reservedUsd"], told["left"]["maxCostUsd"]) == (5, 0)
    assert task.events("agent.failed") == []


@pytest.mark.slow
def test_a_batch_reserves_no_more_money_than_one_by_one_could(task: Task) -> None:
    set_config(task, maxCostUsd=2)
    budgets = {"first": 1.5, "second": 1, "third": 1}
    rows = [
        {"name": name, "agent": "general", "prompt": "argv", "maxBudgetUsd": most} for name, most in budgets.items()
    ]
    lines = [json.dumps(row) + "\n" for row in rows]
    refused = run("spawn", "--batch", "-", stdin="".join(lines), check=False)
    assert refused.code == 1
    assert "maxCostUsd is 2: 0 are used up, 2.5 are reserved" in refused.err
    run("spawn", "--batch", "-", stdin="".join(lines[:2]))
    handed = [json.loads(read_result(task, name)["finalMessage"]) for name in ("first", "second")]
    assert "--max-budget-usd=1.5" in handed[0]  # The first one gets what it asked for, the other one the rest.
    assert "--max-budget-usd=0.5" in handed[1] or "--max-budget-usd=1" in handed[1]


def test_a_spawn_that_is_killed_on_its_way_takes_nothing_away(task: Task) -> None:
    set_config(task, maxWorkers=1)
    run("spawn", "--", "true", env={"AGENTCTL_FAILPOINT": "spawn.after-ticket"}, check=False)
    assert task.events("agent.queued") == []
    assert run("spawn", "--name", "only", "--", "true").code == 0
    run("wait", "only")


@pytest.mark.slow
def test_whoever_breaks_the_limit_of_tokens_ends_as_budget_and_the_next_are_refused(
    task: Task, play: Callable[[str], str]
) -> None:
    set_config(task, maxTokens=100)
    agent(play("spend(60, 0)"), "a")
    assert ends("a")["status"] == "completed"
    agent(play("spend(60, 0); time.sleep(60)"), "b")
    end = ends("b")
    assert (end["status"], end["reason"]) == ("failed", "budget")
    assert "maxTokens is 100: 120 are used up" in end["message"]
    refused = agent("say no", "c", check=False)
    assert refused.code == 1
    assert "maxTokens is 100: 120 are used up" in refused.err
    run("spawn", "--name", "command", "--", "true")  # A command uses no model.
    run("wait", "command")


@pytest.mark.slow
def test_a_queued_agent_that_finds_nothing_left_is_not_run(
    task: Task, play: Callable[[str], str], tmp_path: Path
) -> None:
    set_config(task, maxTokens=100, maxConcurrentAgents=1)
    gate = tmp_path / "gate"
    agent(play(f"import os\nwhile not os.path.exists({str(gate)!r}): time.sleep(0.02)\nspend(100, 0)"), "a")
    agent(play(f"open({str(tmp_path / 'b')!r}, 'w'); spend(1, 0)"), "b", "--queue")
    gate.touch()
    assert ends("b")["reason"] == "budget"
    assert not (tmp_path / "b").exists()


@pytest.mark.slow
def test_money_is_reserved_handed_on_and_charged(task: Task, play: Callable[[str], str]) -> None:
    set_config(task, maxCostUsd=2)
    agent("hang", "a", "--max-budget-usd", "1.5")
    wait_until((task.agent("a") / "session.json").exists, what="a to work")
    assert run("usage", "--json").json["left"]["maxCostUsd"] == 0.5
    agent("argv", "b")
    argv = json.loads(read_result(task, "b")["finalMessage"])
    assert "--max-budget-usd=0.5" in argv
    run("cancel", "a")
    agent(play("spend(1, 2.5)"), "d")
    assert ends("d")["reason"] == "budget"
    told = run("usage", "--json").json
    assert told["total"]["costUsd"] == 2.5
    assert told["reservedUsd"] == 0
    assert "maxCostUsd is 2: 2.5 are used up" in agent("say no", "e", check=False).err


def test_a_unit_that_the_program_does_not_report_refuses_the_start(task: Task) -> None:
    set_config(task, maxTokens=100)
    folder = Path(os.environ["HOME"]) / ".agentctl" / "agents"
    folder.mkdir(parents=True)
    (folder / "echoes.md").write_text(
        "---\nname: echoes\ndescription: says it\ndriver: command\nargv: [echo]\n---\n", encoding="utf-8"
    )
    refused = run("spawn", "--agent", "echoes", "hello", check=False)
    assert refused.code == 1
    assert "does not report the tokens" in refused.err
    assert statuses() == {}


@pytest.mark.slow
def test_the_time_in_which_anybody_worked_is_limited(task: Task) -> None:
    set_config(task, maxWallSeconds=1)
    run("spawn", "--name", "a", "--", *worker("sleeps", 60))
    end = ends("a")
    assert (end["status"], end["reason"]) == ("failed", "budget")
    assert "maxWallSeconds is 1" in run("spawn", "--", "true", check=False).err


@pytest.mark.slow
def test_what_attempts_used_up_adds_up(task: Task, tmp_path: Path) -> None:
    set_config(task, cooldownSeconds=0)
    agent(f"once 500 {tmp_path / 'tried'}", "a", "--retries", "1", "--retry-delay-seconds", "0.05")
    assert ends("a")["attempt"] == 2
    row = run("usage", "--json").json["workers"][0]
    assert (row["output"], row["workers"]) == (10, 1)


def test_nothing_is_started_outside_of_a_limited_tree_from_within(task: Task, tmp_path: Path) -> None:
    set_config(task, maxWorkers=5, maxDepth=3)
    line = (
        "agentctl new Other --id other >/dev/null; agentctl spawn --task other -- true; agentctl spawn --root x -- true"
    )
    run("spawn", "--name", "a", "--shell", f"PATH={Path(sys.executable).parent}:$PATH; {line}")
    run("wait", "a", "--task", "t1", check=False)  # The task that `new` made is the current one.
    said = (task.agent("a") / "stderr.log").read_text(encoding="utf-8")
    assert "is held to the limits of t1" in said
    assert run("list", "--task", "other", "--json").json == []


def test_a_worker_lifts_no_limit_of_its_tree_by_a_word_in_task_yaml(task: Task) -> None:
    set_config(task, maxWorkers=2, maxDepth=2, maxConcurrentAgents=4)
    start = f"{sys.executable} -m agentctl spawn -- true"
    # The lock keeps others from writing the roster meanwhile.
    lift = f"flock {task.path / 'task.lock'} sed -i s/maxWorkers:.2/maxWorkers:\\ 9/ {task.path / 'task.yaml'}"
    run("spawn", "--name", "a", "--shell", f"{start}; {lift}; {start}; {start}")
    run("wait", "a", check=False)
    said = (task.agent("a") / "stderr.log").read_text(encoding="utf-8")
    assert "maxWorkers: 9" in (task.path / "task.yaml").read_text(encoding="utf-8")
    assert said.count("maxWorkers is 2") == 2
    assert "task.yaml" not in said
    run("spawn", "--name", "b", "--", "true")  # The new limit counts for a person.


def lifted(task: Task, key: str, value: int) -> str:
    """Return a line of shell by which a worker writes another limit into the task's file, as it could by any editor."""
    file = task.path / "task.yaml"
    return f"flock {task.path / 'task.lock'} sed -i -E 's/{key}: [0-9]+/{key}: {value}/' {file}"


@pytest.mark.slow
def test_nor_the_cap_of_those_at_work(task: Task, tmp_path: Path) -> None:
    set_config(task, maxConcurrentAgents=2, maxDepth=2)
    gate, made = tmp_path / "gate", tmp_path / "made"
    program = f"{sys.executable} -m agentctl"
    waits = f'sh -c "until [ -e {gate} ]; do sleep 0.05; done"'
    lines = [
        lifted(task, "maxConcurrentAgents", 9),
        *(f"{program} spawn --queue --name c{number} -- {waits}" for number in range(3)),
        f"{program} spawn --name d -- true",
        f"touch {made}; until [ -e {gate} ]; do sleep 0.05; done",
    ]
    run("spawn", "--name", "a", "--shell", "; ".join(lines))
    wait_until(made.exists, what="all of it to be tried")
    said = run("logs", "a").out
    assert "maxConcurrentAgents: 9" in (task.path / "task.yaml").read_text(encoding="utf-8")
    assert statuses() == {"a": "running", "c0": "running", "c1": "queued", "c2": "queued"}, said
    assert "2 of 2 slots are in use" in said
    why = run("why", "c1", "--json").json
    assert "All 2 slots" in str(why["statements"])
    assert "task.yaml" not in str(why["waysOut"]), "that way out does not lead out"
    run("spawn", "--name", "p", "--", "sh", "-c", f"until [ -e {gate} ]; do sleep 0.05; done")
    assert statuses()["p"] == "running", "for a person the new cap counts"
    assert statuses()["c1"] == "queued"
    gate.touch()
    assert run("wait-all", "--json", timeout=40).code == 0
    assert set(statuses().values()) == {"completed"}


def test_nor_a_limit_of_what_it_starts(task: Task) -> None:
    set_config(task, maxOutputBytes=1000, maxDepth=2, maxConcurrentAgents=4)
    start = f"{sys.executable} -m agentctl spawn --wait --name c -- sh -c 'yes | head -c 5000; sleep 30'"
    run("spawn", "--name", "a", "--shell", f"{lifted(task, 'maxOutputBytes', 900000)}; {start}")
    run("wait-any", "a", check=False, timeout=40)
    assert (task.exit("c") or {})["reason"] == "output_limit"


@pytest.mark.slow
def test_sub_tasks_share_the_limits_of_their_root(task: Task, play: Callable[[str], str]) -> None:
    set_config(task, maxWorkers=3, maxTokens=100)
    run("subtask", "general", "First", "--intent", play("spend(60, 0)"))
    failed = run("subtask", "general", "Second", "--intent", play("spend(60, 0); time.sleep(60)"), check=False)
    assert "budget" in failed.out + failed.err
    refused = run("subtask", "general", "Third", check=False)
    assert refused.code == 1
    assert "maxTokens is 100: 120 are used up" in refused.out + refused.err
    told = run("usage", "--json").json
    assert (told["total"]["workers"], told["left"]) == (2, {"maxTokens": 0, "maxWorkers": 1})
    assert [row["output"] for row in told["tasks"]] == [0, 60, 60]
    assert run("usage", "--no-recursive", "--json").json["workers"] == []


@pytest.mark.slow
def test_usage_tells_workers_agents_tasks_and_the_tree(task: Task, play: Callable[[str], str]) -> None:
    agent(play("spend(7, 0.5)"), "a")
    agent("say hello", "b")
    run("spawn", "--name", "c", "--", "true")
    run("wait-all")
    told = run("usage", "--json").json
    first = told["workers"][0]
    assert (first["agentInstance"], first["output"], first["costUsd"]) == ("a", 7, 0.5)
    assert {row["agent"]: row["workers"] for row in told["agents"]} == {"general": 2, "command": 1}
    assert told["tasks"][0]["output"] == told["total"]["output"] == 12
    assert (told["limits"], told["left"]) == ({}, {})
    assert told["total"]["wallSeconds"] > 0
    lines = [line.split("\t") for line in run("usage").out.splitlines()]
    assert [line[0] for line in lines] == ["worker"] * 3 + ["agent"] * 2 + ["task", "tree"]
    assert lines[0][:6] == ["worker", "t1/a", "1", "0", "7", "0"]


@pytest.mark.slow
def test_an_agent_that_fails_again_and_again_is_not_started_for_a_while(task: Task) -> None:
    set_config(task, breakerFailures=2, breakerCooldownSeconds=60)
    for name in ("a", "b"):
        agent("crash", name)
        ends(name)
    refused = agent("say no", "c", check=False)
    assert refused.code == 1
    assert "failed 2 times in a row" in refused.err
    assert "truncated" in refused.err
    run("spawn", "--agent", "explore", "--name", "other", "say yes")
    findings = [one for one in run("doctor", "--json", check=False).json if "times in a row" in one["what"]]
    assert [one["severity"] for one in findings] == ["warning"]
    own = run("doctor", "--close-breaker", "general", env=inside(task, "other"), check=False)
    assert (own.code, "only a person lifts this limit" in own.err) == (1, True), own
    run("doctor", "--close-breaker", "general")
    agent("say yes", "d")
    assert ends("d")["status"] == "completed"
    assert run("doctor", "--close-breaker", "general", check=False).code == 3
    run("wait", "other")


@pytest.mark.slow
def test_a_breaker_closes_by_itself(task: Task) -> None:
    set_config(task, breakerFailures=1, breakerCooldownSeconds=0.3)
    agent("crash", "a")
    ends("a")
    wait_until(lambda: agent("say yes", "b", check=False), accept=lambda done: done.code == 0, what="the breaker")
    assert ends("b")["status"] == "completed"


_WATCHED = (
    "import sys; sys.addaudithook(lambda what, about: what == 'open' and print('OPENED', about[0], file=sys.stderr));"
    "from agentctl.interfaces.cli.app import main; sys.exit(main(sys.argv[1:]))"
)


def logs_read_by(*args: str) -> set[str]:
    """Return the tasks whose logs a command opens."""
    done = subprocess.run([sys.executable, "-c", _WATCHED, *args], capture_output=True, text=True, check=True)
    opened = [Path(line.partition(" ")[2]) for line in done.stderr.splitlines() if line.startswith("OPENED ")]
    return {path.parent.name for path in opened if path.name == "events.jsonl"}


@pytest.mark.slow
def test_a_start_reads_the_logs_of_the_tree_only_after_a_failure(task: Task) -> None:
    define_shells()
    for title in ("one", "two", "three"):
        run("subtask", "shell", title, "--intent", "echo done")
    work = ("subtask", "shell", "more", "--intent", "echo done")
    assert logs_read_by(*work) == {task.path.name, "more"}
    run("subtask", "shell", "bad", "--intent", "exit 3", check=False)
    assert logs_read_by(*work) >= {"one", "two", "three", "bad"}
