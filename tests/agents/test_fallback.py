"""A Codex whose app-server does not begin: the same program, by `codex exec`."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.agents.lab import Lab
from tests.agents.scenarios import done, recalled
from tests.agents.surroundings import KEY
from tests.agents.wire import CACHED_TOKENS, OUTPUT_TOKENS
from tests.agents.within import USUAL, said, script, tries
from tests.support import wait_until

OLD = """#!/bin/sh
case " $* " in *" app-server "*) echo "error: unrecognized subcommand 'app-server'" >&2; exit 2;; esac
exec {program} "$@"
"""
#: In the person's config: a server that would run outside the sandbox, and tells that it was started.
SERVER = """
[mcp_servers.persons]
command = "sh"
args = ["-c", "touch {mark}; cat"]
"""
#: Of the person, who once allowed this for good: it runs outside the sandbox.
RULE = 'prefix_rule(pattern=["touch"], decision="allow")\n'


pytestmark = pytest.mark.parametrize("program", ["codex"])


@pytest.fixture
def old(lab: Lab, installed: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> Lab:
    """The lab with a codex that knows no app-server."""
    folder = lab.folder / "old"
    folder.mkdir()
    script = folder / "codex"
    script.write_text(OLD.format(program=installed["codex"]), encoding="utf-8")
    script.chmod(0o700)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    return lab


def announced(lab: Lab, instance: str) -> bool:
    return any(row.get("name") == "fallback" for row in lab.activity(instance, "note"))


def test_answer_and_resume(old: Lab) -> None:
    """Without its app-server: a tool, then resume; each run's own tokens."""
    first = old.spawn("tool", "--permissions", "allow", "--model", old.facts.model, "--effort", "low")
    assert old.completed(first) == done("tool", 1)
    assert announced(old, first)
    asked = old.standin.requests[-1]
    assert (asked.model, asked.effort) == (old.facts.model, "low")
    assert old.role("general") in asked.system
    assert [row["phase"] for row in old.activity(first, "tool")] == ["start", "end"]
    second = old.resume(first, "recall")
    assert old.completed(second) == recalled("tool", "recall")
    usages = [old.result(instance)["usage"] for instance in (first, second)]
    assert [(used["cached"], used["output"]) for used in usages] == [
        (2 * CACHED_TOKENS, 2 * OUTPUT_TOKENS),
        (CACHED_TOKENS, OUTPUT_TOKENS),
    ]
    assert len({old.result(instance)["sessionId"] for instance in (first, second)}) == 1
    assert old.files_with(KEY) == []


@pytest.mark.parametrize(("agent", "policy"), [("explore", "ask"), ("general", "deny")])
def test_nothing_is_written(old: Lab, agent: str, policy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without its app-server: {agent}, permissions {policy}, writes nothing and starts no MCP server."""
    environ, mark = old.environ(), old.folder / "server-was-started"
    config = old.folder / "codex" / "config.toml"
    config.write_text(config.read_text(encoding="utf-8") + SERVER.format(mark=mark), encoding="utf-8")
    (config.parent / "rules").mkdir()
    (config.parent / "rules" / "default.rules").write_text(RULE, encoding="utf-8")
    monkeypatch.setattr(old, "environ", lambda _=1: environ)
    instance = old.spawn("write", "--permissions", policy, agent=agent)
    assert old.completed(instance) == done("write", 2)
    assert announced(old, instance)
    assert list(old.work.iterdir()) == []
    assert not mark.exists()


def test_walls(old: Lab) -> None:
    """Without its app-server: the same walls."""
    script(old, tries(old) + USUAL)
    agent = old.spawn("calls", "--permissions", "allow")
    assert old.completed(agent) == done("calls", 1)
    assert announced(old, agent)
    assert said(old.work) == ["all tried", "made", "temporary", "no way into git"]


def test_cancel_in_mid_tool(old: Lab) -> None:
    """Without its app-server: cancel in mid-tool."""
    agent = old.spawn("slowtool", "--permissions", "allow")
    wait_until(lambda: old.runs("tail", "/dev/null"), timeout_s=40, what="the tool to run")
    assert announced(old, agent)
    old.cancel(agent)


def test_refused_key(old: Lab) -> None:
    """Without its app-server: a refused key."""
    assert old.failed(old.spawn("fail=401", "--permissions", "allow")) == "auth"
