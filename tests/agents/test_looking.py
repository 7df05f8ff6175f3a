"""What an agent reads and fetches, and what rules hold beside a person's own settings that allow everything."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.agents.lab import PATIENCE_S, Lab
from tests.agents.loose import claude
from tests.support import wait_until

OF_CLAUDE = pytest.mark.parametrize("program", ["claude", "claude-agent-acp"])
SECRET = "only-for-others"


def began(lab: Lab, calls: list[list[Any]], *options: str, agent: str = "explore") -> str:
    """Have an agent make these calls, with the person's loosest settings; return its name."""
    (lab.work / "calls.json").write_text(json.dumps(calls), encoding="utf-8")
    lab.variables = claude.loosen(lab)
    return lab.spawn("calls", *options, agent=agent)


def outside(lab: Lab) -> dict[str, list[list[Any]]]:
    """Return the ways to what lies outside of the agent's folder, and by a link in it, in each spelling."""
    (lab.folder / "secret").mkdir()
    file = lab.folder / "secret" / "key"
    file.write_text(SECRET, encoding="utf-8")
    (lab.work / "link").symlink_to(file.parent)
    home = f"~/{os.path.relpath(file.parent, os.environ['HOME'])}"
    spellings = [str(file.parent), home, f" {file.parent}\n", f"\ufeff{home} "]
    return {
        "read": [["Read", {"file_path": f"{place}/key"}] for place in (str(file.parent), home, f" {file.parent}")],
        "by a link": [["Read", {"file_path": str(lab.work / "link" / "key")}]],
        "search": [["Grep", {"pattern": "only", "path": place, "output_mode": "content"}] for place in spellings],
        "list": [
            ["Glob", {"pattern": f"{file.parent}/*"}],
            *(["Glob", {"pattern": "*", "path": place}] for place in spellings),
        ],
        "fetch": [["WebFetch", {"url": f"{lab.standin.url}/{SECRET}", "prompt": "What is there?"}]],
    }


@OF_CLAUDE
@pytest.mark.parametrize("way", ["read", "by a link", "search", "list", "fetch"])
def test_outside(lab: Lab, way: str) -> None:
    """A read-only agent gets nothing from outside its folder under deny, though the person allows that: {way}."""
    calls = outside(lab)[way]
    lab.completed(began(lab, calls, "--permissions", "deny"))
    results = lab.answered("calls").results
    assert len(results) == len(calls)
    for result in results:
        assert "denies" in result or "denied" in result or "efused" in result, result
        assert SECRET not in result
        assert "secret/key" not in result
    assert not [stray for stray in lab.standin.strays if SECRET in stray]


@OF_CLAUDE
def test_outside_asked(lab: Lab) -> None:
    """A read-only agent that wants to read outside its folder asks the person, who may allow it."""
    agent = began(lab, outside(lab)["read"][:1])
    question = lab.question(agent)
    assert "secret/key" in json.dumps(question["arguments"])
    lab.respond(agent, "allow")
    lab.completed(agent)
    assert SECRET in lab.answered("calls").results[0]


@OF_CLAUDE
@pytest.mark.parametrize("policy", ["ask", "deny"])
def test_inside(lab: Lab, policy: str) -> None:
    """What an agent reads in its folder is read without asking anybody, under {policy}."""
    Path("inside.txt").write_text("for everybody", encoding="utf-8")
    calls = [["Read", {"file_path": str(lab.work / "inside.txt")}], ["Grep", {"pattern": "everybody", "glob": "*.txt"}]]
    lab.completed(began(lab, calls, "--permissions", policy))
    results = "\n".join(lab.answered("calls").results)
    assert "for everybody" in results
    assert "Found 1 file" in results
    assert not lab.task.events("interaction.requested")


@OF_CLAUDE
@pytest.mark.parametrize("agent", ["explore", "general"])
def test_rules_and_other_ways(lab: Lab, agent: str) -> None:
    """What a rule denies comes out by no search or spelling, and no other tool runs a denied command: {agent}."""
    for name, text in (("secrets", SECRET), ("open", "only for everybody")):
        Path(name).mkdir()
        Path(name, "key").write_text(text, encoding="utf-8")
    search = {"pattern": "only", "output_mode": "content"}
    command = {"description": "d", "timeout_ms": 1000, "persistent": False, "command": f"touch {lab.folder}/made"}
    ways: dict[str, list[list[Any]]] = {
        "explore": [
            ["Grep", search], ["Grep", {**search, "path": "secrets"}], ["Glob", {"pattern": "**"}],
            ["Glob", {"pattern": "*", "path": " secrets"}], ["Grep", {**search, "path": "open"}],
        ],
        "general": [
            ["Read", {"file_path": f"{lab.work}/secrets/key "}], ["Monitor", command],
            ["Read", {"file_path": f"{lab.work}/open/key"}],
        ],
    }  # fmt: skip
    rules = [{"pattern": "secrets/*", "answer": "deny"}, {"tool": "Bash", "pattern": "touch *", "answer": "deny"}]
    policy = json.dumps([*rules, {"tool": "*", "answer": "allow"}])
    lab.completed(began(lab, ways[agent], "--permissions", policy, agent=agent))
    results = lab.answered("calls").results
    assert len(results) == len(ways[agent])
    # Calls run side by side, and their results come as they end.
    (free,) = (result for result in results if "only for everybody" in result)
    for result in results:
        assert result is free or "denies" in result or "denied" in result or "efused" in result, result
    assert not any(SECRET in result for result in results)
    assert not (lab.folder / "made").exists()


@pytest.mark.parametrize("program", ["claude"])
@pytest.mark.parametrize("answer", ["deny", "ask"])
def test_own_under_rules(lab: Lab, answer: str) -> None:
    """A rule with {answer} holds beside --permissions own; what no rule names is done as the person's settings say."""
    rules = [{"tool": "Bash", "pattern": "*forbidden*", "answer": answer}, {"tool": "*", "answer": "own"}]
    calls = [
        ["Bash", {"command": f"touch {lab.folder}/{name}", "description": "A command"}]
        for name in ("allowed", "forbidden")
    ]
    agent = began(lab, calls, "--permissions", json.dumps(rules), agent="general")
    wait_until((lab.folder / "allowed").exists, timeout_s=PATIENCE_S, what="what the person's settings allow")
    if answer == "ask":
        lab.question(agent)
        lab.respond(agent, "deny")
    lab.completed(agent)
    assert not (lab.folder / "forbidden").exists()


@pytest.mark.parametrize("program", ["claude"])
def test_own_ask_rule(lab: Lab) -> None:
    """What the person's own settings ask about is not asked twice: the answer to the call is that to the rule."""
    claude.loosen(lab)
    file = lab.folder / "claude" / "settings.json"
    settings = json.loads(file.read_bytes())
    settings["permissions"]["ask"] = ["Bash"]
    file.write_text(json.dumps(settings), encoding="utf-8")
    agent = lab.spawn("ask")
    lab.question(agent)
    lab.respond(agent, "allow")
    lab.completed(agent)
    assert Path("asked.txt").exists()
    assert len(lab.task.events("interaction.requested")) == 1


@pytest.mark.parametrize("program", ["claude"])
def test_advised_rule(lab: Lab) -> None:
    """The rule by which a harmless command is not asked about does that, and is about no other one."""
    rule = json.dumps([{"tool": "Bash", "pattern": "ls *", "answer": "allow"}])
    calls = [["Bash", {"command": command, "description": "A command"}] for command in ("ls -a", "ls; touch made.txt")]
    agent = began(lab, calls, "--permissions", rule, agent="general")
    assert lab.question(agent)["arguments"]["command"] == "ls; touch made.txt"
    lab.respond(agent, "deny")
    lab.completed(agent)
    assert not Path("made.txt").exists()


@pytest.mark.parametrize("program", ["claude"])
def test_for_good(lab: Lab) -> None:
    """A command that was allowed for good is not asked about again; another one is."""
    calls = [["Bash", {"command": f"touch {name}", "description": "d"}] for name in ("a.txt", "a.txt", "b.txt")]
    (lab.work / "steps.json").write_text(json.dumps([[[f"tool:{tool}", about]] for tool, about in calls]))
    lab.variables = claude.loosen(lab)
    agent = lab.spawn("steps")
    lab.question(agent)
    lab.respond(agent, "allow_always")
    questions = wait_until(
        lambda: [row for row in lab.open_questions(agent) if "b.txt" in json.dumps(row)],
        timeout_s=PATIENCE_S, what="a question about the other command",
    )  # fmt: skip
    assert len(questions) == 1
    lab.respond(agent, "deny")
    lab.completed(agent)
    assert Path("a.txt").exists()
    assert not Path("b.txt").exists()
    assert len(lab.task.events("interaction.requested")) == 2
