"""What an agent program brings back: its answer, its tools, its sub-agents, told once and told truly."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.agents.lab import Lab, option
from tests.agents.scenarios import COLOURS, QUESTION, done
from tests.agents.surroundings import KEY
from tests.agents.wire import CACHED_TOKENS, OUTPUT_TOKENS
from tests.snapshots import files_with
from tests.support import run


def test_text(lab: Lab) -> None:
    """A text."""
    agent = lab.spawn("text")
    assert lab.completed(agent) == "The answer of the stand-in model."
    result = lab.result(agent)
    if lab.facts.counts:
        assert (result["usage"]["cached"], result["usage"]["output"]) == (CACHED_TOKENS, OUTPUT_TOKENS)
    assert result.get("turnsUsed", 0) == 0
    assert result["sessionId"]
    assert files_with(lab.task.path, KEY) == []


@pytest.mark.parametrize("command", ["/help", "/compact"])
def test_slash(lab: Lab, command: str) -> None:
    """A prompt that begins as the program's own {command} reaches the model as it is."""
    prompted(lab, f"{command} me SCENARIO:text")
    asked = [turn.text for turn in lab.answered("text").turns if turn.kind == "user"]
    assert any(f"{command} me SCENARIO:text" in text for text in asked)


def test_odd_bytes(lab: Lab) -> None:
    """A prompt on stdin with a byte that is not text arrives."""
    prompted(lab, "-", stdin="SCENARIO:text caf\udce9")
    assert "caf\ufffd" in str(lab.answered("text").turns)


def prompted(lab: Lab, prompt: str, stdin: str | None = None) -> None:
    """Start an agent as a person does; its model says what it says to any text."""
    start = ["spawn", "--agent", "general", "--driver", lab.program, "--name", "a1"]
    run(*start, prompt, env=lab.environ(), stdin=stdin)
    assert lab.completed("a1") == "The answer of the stand-in model."


@pytest.mark.parametrize("program", ["codex", "codex-acp"])
def test_where_agentctl_is(lab: Lab, program: str) -> None:
    """A shell that sets PATH anew: the model is told where agentctl is, and reports by that path."""
    path = Path(sys.executable).with_name("agentctl")
    steps = [[["shell", f"PATH=/usr/bin:/bin {path} report progress 40 by-its-path"]]]
    Path("steps.json").write_text(json.dumps(steps), encoding="utf-8")
    lab.completed(lab.spawn("steps=steps.json", "--permissions", "allow"))
    told = lab.answered("steps")
    assert f"`agentctl` is {path}: " in told.system + str(told.turns), program
    assert [row["percent"] for row in lab.activity("a1", "progress")] == [40]


def test_model_effort_role(lab: Lab) -> None:
    """Model, effort and role reach the model."""
    agent = lab.spawn("text", "--model", lab.facts.model, "--effort", "low")
    lab.completed(agent)
    asked = lab.answered("text")
    assert (asked.model, asked.effort) == (lab.facts.model_sent, "low" if lab.facts.has_efforts else None)
    assert lab.has_role(asked, "general")


def test_tool(lab: Lab) -> None:
    """A tool call."""
    agent = lab.spawn("tool", "--permissions", "allow")
    assert lab.completed(agent) == done("tool", 1)
    rows = lab.activity(agent, "tool")
    assert [row["phase"] for row in rows if row["phase"] != "progress"] == ["start", "end"]
    assert {row["id"] for row in rows} == {rows[0]["id"]}
    assert rows[-1]["status"] == "completed"
    result = lab.result(agent)
    assert result["turnsUsed"] == 1
    if lab.facts.counts:
        assert result["usage"]["output"] == 2 * OUTPUT_TOKENS


def test_question(lab: Lab) -> None:
    """A question to the user, answered from another process."""
    agent = lab.spawn("question")
    question = lab.question(agent)
    assert QUESTION in question["question"]
    options = {
        colour: option["id"] for colour in COLOURS for option in question["options"] if colour in option["label"]
    }
    assert set(options) == set(COLOURS)
    lab.respond(agent, options["blue"])
    assert lab.completed(agent) == "The answer was: blue."


@pytest.mark.parametrize("agent", ["general", "explore"])
def test_question_at_the_limit(lab: Lab, agent: str) -> None:
    """A question of an agent ({agent}) that may start no other."""
    lab.configure(maxDepth=0)
    worker = lab.spawn("question" if lab.facts.asks else "askus", agent=agent)
    lab.respond(worker, next(one["id"] for one in lab.question(worker)["options"] if "blue" in one["label"]))
    assert lab.completed(worker) == "The answer was: blue."
    ours = [tool for tool in lab.standin.requests[-1].tools if "agentctl" in tool]
    assert bool(ours) is not lab.facts.asks, "our server is there for those alone that cannot ask by themselves"


def test_sub_agent(lab: Lab) -> None:
    """A sub-agent, in the tree with its tool calls."""
    agent = lab.spawn("subagent=tool", "--permissions", "allow")
    assert lab.completed(agent).startswith("Done: subagent")
    rows = lab.activity(agent)
    child = next(row["id"] for row in rows if row["type"] == "agent")
    assert lab.ends_of_sub_agents(agent) == {child: "completed"}
    assert {row["parent"] for row in rows if row["type"] == "tool" and "hello" in str(row)} == {child}
    assert "hello" in run("tree", "--expand", "all").out


def test_background_sub_agent(lab: Lab) -> None:
    """A sub-agent in the background: the end is when it has ended."""
    agent = lab.spawn("background", "--permissions", "allow")
    final = lab.completed(agent)
    paused = [request for request in lab.standin.requests if request.scenario[0] == "pause"]
    assert [len(request.results) for request in paused] == [0, 1]
    assert list(lab.ends_of_sub_agents(agent).values()) == ["completed"]
    assert "background" in final


def test_rebuilt_activity(lab: Lab) -> None:
    """The activity, made again from the raw output, is the same."""
    agent = lab.spawn("subagent=ask" if lab.facts.sub_agents_ask else "ask")
    lab.respond(agent, option(lab.question(agent), "allow"))
    lab.completed(agent)
    before = lab.activity(agent)
    run("activity", agent, "--rebuild")
    assert lab.activity(agent) == before
    assert {"message", "tool"} <= {row["type"] for row in before}
