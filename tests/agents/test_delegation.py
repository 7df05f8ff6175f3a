"""An agent starts a child with our tools, which it got over MCP: another process, under the same supervision."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path

import psutil

from tests.agents.facts import VENDORS
from tests.agents.lab import PATIENCE_S, Lab
from tests.agents.scenarios import COLOURS
from tests.agents.surroundings import KEY
from tests.processes import words_of
from tests.snapshots import files_with
from tests.support import environment, run, wait_until


def test_child(lab: Lab) -> None:
    """A child by our own tools."""
    agent = lab.spawn("delegate=text")
    assert "The answer of the stand-in model." in lab.completed(agent)
    (child,) = [row for row in run("list", "--json").json if row["parent"] == agent]
    assert (child["status"], child["depth"], child["driver"]) == ("completed", 1, lab.program)
    assert files_with(lab.task.path, KEY) == []


def test_offered_at_once(lab: Lab) -> None:
    """Our tools are in the first request of the model, with their descriptions."""
    lab.completed(lab.spawn("text"))
    assert offers_ours(lab, "text")


def test_cheap_server(lab: Lab) -> None:
    """An agent that has called none of our tools yet has a small server, or none."""
    agent = lab.spawn("mute")
    lab.arrived("mute")
    servers = [process for process in lab.processes() if any(word.endswith("/early.py") for word in words_of(process))]
    assert bool(servers) is lab.facts.has_our_server
    offering = servers or [psutil.Process(lab.program_of(agent))]
    loaded = [file.path for process in offering for file in process.memory_maps()]
    assert not [path for path in loaded if "pydantic" in path]
    lab.cancel(agent)


def offers_ours(lab: Lab, scenario: str) -> bool:
    """Whether the first request of a conversation holds our tools, and not their names alone."""
    first = next(one for one in lab.standin.requests if one.tools and one.scenario[0] == scenario)
    ours = [name for name in first.tools if "agentctl" in name or not lab.facts.has_our_server]
    return any(name.endswith(("task", "spawn_agent")) for name in ours)


def test_child_that_asks(lab: Lab) -> None:
    """A child's question, answered by a person."""
    agent = lab.spawn("delegate=ask")
    (child,) = wait_until(lambda: children_of(lab, agent), timeout_s=PATIENCE_S, what="a child")
    asked = lab.question(child)
    assert asked["tool"] in {"Bash", "shell"}, asked
    lab.respond(child, asked["options"][0]["id"])
    assert "Done: ask after 1 tool results." in lab.completed(agent)


def test_question_by_our_tool(lab: Lab) -> None:
    """A question by our own tool, answered from another process."""
    agent = lab.spawn("askus")
    assert [one["id"] for one in lab.question(agent)["options"]] == list(COLOURS)
    lab.respond(agent, "blue")
    assert lab.completed(agent) == "The answer was: blue."


def test_own_shape(lab: Lab) -> None:
    """Our tools called as the program's own are, and a follow-up to an agent that has ended."""
    steps = lab.facts.own_shape
    Path("steps.json").write_text(json.dumps(steps), encoding="utf-8")
    model = lab.facts.model_with_tools or lab.facts.model
    agent = lab.spawn("steps", "--model", model)
    assert lab.completed(agent) == f"Done: steps after {len(steps)} tool results."
    first, second = children_of(lab, agent)
    assert (first, second) == ("find-cookie-1", "find-cookie-1-1")
    assert {row["status"] for row in run("list", "--json").json} == {"completed"}
    for child in (first, second):
        assert run("show", child, "--json").json["spec"]["order"]["model"] == model


#: A run by hand: it may use what `install` has allowed it, and whatever else it wants is refused.
BY_HAND = {"claude": ["claude", "-p"], "codex": ["codex", "exec", "--skip-git-repo-check"]}


@VENDORS
def test_by_hand(lab: Lab) -> None:
    """What `install` writes is all that a program by hand needs to delegate."""
    environ = lab.environ()
    run("install", lab.program, "--yes", env=environ)
    told = by_hand([*BY_HAND[lab.program], "SCENARIO:handmade=text"], environ)
    assert "The answer of the stand-in model." in told
    assert offers_ours(lab, "handmade")
    (child,) = run("list", "--json").json
    assert (child["status"], child["parent"], child["driver"]) == ("completed", None, lab.program)


def by_hand(argv: list[str], environ: Mapping[str, str | None]) -> str:
    """Run a program as a person would; return what it prints."""
    done = subprocess.run(
        argv, env=environment(environ), stdin=subprocess.DEVNULL, capture_output=True, text=True,
        timeout=2 * PATIENCE_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done
    return done.stdout


def children_of(lab: Lab, agent: str) -> list[str]:
    """Return the workers that an agent has started, as the log tells."""
    queued = lab.task.events("agent.queued")
    return [str(event["agentInstance"]) for event in queued if event["payload"].get("parent") == agent]
