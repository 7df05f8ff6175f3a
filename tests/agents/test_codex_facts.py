"""Facts about Codex on which restrictions rest, tried with the program alone: a release that changes one fails here."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import psutil
import pytest

from agentctl.drivers.codex import DRIVER, opening
from agentctl.drivers.order import Order
from tests.agents.install import AGENTS
from tests.agents.lab import Lab
from tests.agents.loose import codex as loose

pytestmark = pytest.mark.parametrize("program", ["codex"])
CLIENT = {"name": "a-test", "title": "a test", "version": "1"}
READING = {"filesystem": {":root": "read"}}


class AppServer:
    """An app-server without agentctl, whose requests are all declined."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process, self._calls = process, 0
        self.asked: list[str] = []
        #: Its notifications.
        self.told: list[dict[str, Any]] = []

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Return the result of a call."""
        self._calls += 1
        self._send({"id": self._calls, "method": method, "params": params})
        answer = self._until(lambda message: message.get("id") == self._calls and "method" not in message)
        assert "error" not in answer, answer
        result: dict[str, Any] = answer["result"]
        return result

    def play(self, thread: str, scenario: str = "calls", **changed: Any) -> None:
        """Have the model do what a scenario says: by default, make the calls of `calls.json`."""
        self.call("turn/start", threadId=thread, input=[{"type": "text", "text": f"SCENARIO:{scenario}"}], **changed)
        self._until(lambda message: message.get("method") == "turn/completed")

    def _until(self, is_it: Any) -> dict[str, Any]:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            message: dict[str, Any] = json.loads(line)
            if "method" in message and "id" in message:
                self.asked.append(message["method"])
                answer = {"action": "decline", "content": None, "decision": "decline"}
                self._send({"id": message["id"], "result": answer})
                continue
            if "method" in message:
                self.told.append(message)
            if is_it(message):
                return message
        raise AssertionError("it has ended")

    def _send(self, message: Mapping[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{json.dumps(message)}\n")
        self._process.stdin.flush()


@contextlib.contextmanager
def server(lab: Lab, environ: Mapping[str, str]) -> Iterator[AppServer]:
    """Start one with the settings of the person."""
    with subprocess.Popen(
        ["codex", "app-server"], env=environ, cwd=lab.work, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    ) as process:  # fmt: skip
        one = AppServer(process)
        one.call("initialize", clientInfo=CLIENT, capabilities={"experimentalApi": True})
        yield one
        assert process.stdin is not None
        left = psutil.Process(process.pid).children(recursive=True)
        process.stdin.close()
    for child in left:  # Codex does not wait for a sandbox that just begins, and here there is no shim that does.
        with contextlib.suppress(psutil.NoSuchProcess):
            child.kill()


def environ_of(lab: Lab) -> dict[str, str]:
    """Write the settings of a person, and return the environment."""
    return {name: value for name, value in {**os.environ, **lab.environ()}.items() if value is not None}


def tries(lab: Lab, profile: Mapping[str, Any], policy: str) -> tuple[bool, list[str]]:
    """Have a command run that a rule of the person's allows; return whether it came out, and what was asked."""
    target = lab.folder / "outside.txt"
    call = ["exec_command", {"cmd": f"touch {target}", "yield_time_ms": 30000}]
    (lab.work / "calls.json").write_text(json.dumps([call]), encoding="utf-8")
    environ = environ_of(lab)
    rules = lab.folder / "codex" / "rules"
    rules.mkdir()
    (rules / "default.rules").write_text('prefix_rule(pattern=["touch"], decision="allow")\n', encoding="utf-8")
    with server(lab, environ) as one:
        told = {"approvalPolicy": policy, "approvalsReviewer": "user"}
        opened = one.call("thread/start", **told, permissions="x", config={"permissions.x": profile})
        one.play(opened["thread"]["id"])
        return target.exists(), one.asked


def test_the_release(lab: Lab) -> None:
    """The release that was tried is the one that the driver names."""
    assert DRIVER.tested == next(package.version for package in AGENTS if package.program == "codex")


def test_a_rule_lets_out(lab: Lab) -> None:
    """A rule that allows lets a command out of the sandbox, unasked: so no such rule may be read."""
    assert tries(lab, READING, "untrusted") == (True, [])


def test_a_denied_read_keeps_in(lab: Lab) -> None:
    """With a denied read, no rule lets a command out (openai/codex#38318)."""
    profile = {"filesystem": opening.filesystem_for_reading(Order("codex", "codex", "explore", "x", read_only=True))}
    assert tries(lab, profile, "never") == (False, [])


def test_what_a_reader_can_do(lab: Lab) -> None:
    """An agent that may only read: its commands read what the person can read, unasked; no writing, no network."""
    secret = lab.folder / "secret.txt"
    secret.write_text("what the person can read\n", encoding="utf-8")
    connect = f"import urllib.request as u; u.urlopen({lab.standin.url!r})"
    tries = [
        f"cat {secret}",
        *(f"(echo > {folder}/made) 2>/dev/null || echo no writing" for folder in (lab.work, lab.folder)),
        f"python3 -c {shlex.quote(connect)} 2>&1 | tail -n 1",
    ]
    call = ["exec_command", {"cmd": "; ".join(tries), "yield_time_ms": 30000}]
    (lab.work / "calls.json").write_text(json.dumps([call]), encoding="utf-8")
    assert lab.completed(lab.spawn("calls", agent="explore"))
    told = next(one.results[-1] for one in lab.standin.requests if one.results)
    said = told[told.index("what the person") :].splitlines()
    assert said[:3] == ["what the person can read", "no writing", "no writing"]
    assert said[3].startswith("urllib.error.URLError"), said
    assert not lab.task.events("interaction.requested")


def test_a_narrower_profile_for_readers(lab: Lab) -> None:
    """With a profile that reads only the system and the workspace, Codex does not find itself: no command runs."""
    (lab.work / "calls.json").write_text(json.dumps([["exec_command", {"cmd": "ls"}]]), encoding="utf-8")
    narrow = {"filesystem": {":minimal": "read", ":workspace_roots": {".": "read"}}}
    with server(lab, environ_of(lab)) as one:
        opened = one.call("thread/start", approvalPolicy="never", permissions="x", config={"permissions.x": narrow})
        one.play(opened["thread"]["id"])
    told = next(one.results[-1] for one in lab.standin.requests if one.results)
    assert "bwrap: execvp" in told
    assert "calls.json" not in told


def test_what_a_thread_answers(lab: Lab) -> None:
    """A thread tells the approval policy, the reviewer, the profile and the sandbox that it was given by its order."""
    environ = environ_of(lab)
    loose.loosen(lab)
    with server(lab, environ) as one:
        for policy in (opening.NEVER, opening.ON_REQUEST, opening.UNTRUSTED):
            config = {"permissions.x": READING}
            opened = one.call(
                "thread/start", approvalPolicy=policy, approvalsReviewer="user", permissions="x", config=config
            )
            told = opened["approvalPolicy"], opened["approvalsReviewer"], opened["activePermissionProfile"]["id"]
            assert told == (policy, "user", "x")
            assert opened["sandbox"] == {"type": "readOnly", "networkAccess": False}
        for settings in ({}, {"network_access": True}):
            given = Order("codex", "codex", "general", "x", walls={"workspace": str(lab.work)})
            asked = opening.thread_params(given, {"sandbox_workspace_write": settings})
            opened = one.call("thread/start", **asked)
            assert opening.difference(given, opened, has_network=bool(settings)) is None
            assert opened["sandbox"]["networkAccess"] == bool(settings)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"sandboxPolicy": {"type": "dangerFullAccess"}}, "permission profile is null"),
        ({"permissions": ":workspace"}, "permission profile is :workspace"),
        ({"approvalPolicy": "on-request"}, "approvalPolicy is on-request"),
        ({"effort": "low"}, None),
    ],
)
def test_what_a_thread_tells_of_a_change(lab: Lab, change: dict[str, Any], named: str | None) -> None:
    """A thread whose settings are changed ({change}) tells all of them, by the names by which they are compared."""
    given = Order("codex", "codex", "explore", "x", read_only=True)
    with server(lab, environ_of(lab)) as one:
        thread = one.call("thread/start", **opening.thread_params(given, {}))["thread"]["id"]
        one.play(thread, "text", **change)
    (told,) = [message["params"] for message in one.told if message["method"] == "thread/settings/updated"]
    assert "type" in told["threadSettings"]["sandboxPolicy"]
    difference = opening.difference(given, told["threadSettings"])
    assert (named is None) == (difference is None)
    assert difference is None or str(named) in difference.what


def test_what_decides_has_its_place(lab: Lab) -> None:
    """The settings that agentctl sets have their names in the config, and servers ask by them."""
    environ = environ_of(lab)
    loose.loosen(lab)
    with server(lab, environ) as one:
        config = one.call("config/read", cwd=str(lab.work))["config"]
    assert config["mcp_servers"]["w"]["default_tools_approval_mode"] == "approve"
    assert config["mcp_servers"]["w"]["tools"]["write"]["approval_mode"] == "approve"
    listed = subprocess.run(
        ["codex", "features", "list"], env=environ, capture_output=True, text=True, check=True, timeout=60
    )
    assert {"apps", "plugins", "hooks"} <= {line.split()[0] for line in listed.stdout.splitlines() if line.strip()}


def test_sessions_are_the_persons(lab: Lab) -> None:
    """The person's own Codex finds the session of an agent that has ended, and what it had of its own is gone."""
    agent = lab.spawn("text")
    assert lab.completed(agent)
    assert not (lab.task.agent(agent) / "home").exists()
    with server(lab, environ_of(lab)) as one:
        found = one.call("thread/resume", threadId=lab.result(agent)["sessionId"], excludeTurns=True)
    assert Path(found["thread"]["path"]).is_relative_to(lab.folder / "codex" / "sessions")
    assert Path(found["thread"]["path"]).exists()


def test_what_it_starts_is_told_of_the_persons_home(lab: Lab) -> None:
    """A command of the agent finds the person's own settings of Codex, not those that it was given."""
    call = ["exec_command", {"cmd": 'printf %s "$CODEX_HOME" > told.txt', "yield_time_ms": 30000}]
    (lab.work / "calls.json").write_text(json.dumps([call]), encoding="utf-8")
    assert lab.completed(lab.spawn("calls"))
    assert (lab.work / "told.txt").read_text(encoding="utf-8") == str(lab.folder / "codex")


@pytest.mark.parametrize(
    ("agent", "policy", "searches"),
    [
        ("general", "ask", True),
        ("general", "deny", False),
        ("explore", "", False),
        ("plan", "ask", False),
        ("explore", "allow", True),
        ("explore", '[{"tool": "web_search", "answer": "allow"}]', True),
    ],
)
def test_who_searches_the_web(
    lab: Lab, agent: str, policy: str, searches: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """{agent} under {policy!r}: its model is offered a search of the web: {searches}, whatever the config says."""
    environ, config = lab.environ(), lab.folder / "codex" / "config.toml"
    text = config.read_text(encoding="utf-8").replace("[features]", "[features]\nweb_search_request = true")
    config.write_text(f'web_search = "live"\n{text}\n[tools]\nweb_search = true\n', encoding="utf-8")
    monkeypatch.setattr(lab, "environ", lambda _=1: environ)
    assert lab.completed(lab.spawn("text", *(["--permissions", policy] if policy else []), agent=agent))
    assert ("web_search" in lab.answered("text").tools) == searches
