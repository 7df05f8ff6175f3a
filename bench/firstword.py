"""Figure 15: the time from a command to the model's first request, of an agent and of its program by itself."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from agentctl.adapters.extras import install_command
from agentctl.drivers.registry import load
from bench.ground import PATIENCE_S, Ground, wait_until
from bench.measuring import BenchError, Found, Rounds, Sample, Turn, alternate, ratio
from tests.agents.install import installed
from tests.agents.standin import StandIn
from tests.agents.surroundings import environ_of

#: How many times as long as the program by itself an agent may take. The library of ACP is loaded while the program
#: starts, and takes longer than codex-acp, which has a home of its own to set up where something is restricted.
#: opencode is started twice then, at once: one start tells what the person's settings deny.
GOALS = {"claude": 1.4, "codex": 2.2, "opencode": 1.5, "qwen": 1.4, "claude-agent-acp": 1.4, "codex-acp": 2.6}
_PROMPT = "SCENARIO:text"
_BARE = {"claude": ["-p", _PROMPT], "codex": ["exec", "--skip-git-repo-check", _PROMPT]}
#: `explore` may only read; `general` writes, and has our MCP server.
_AGENTS = ("explore", "general")
_OURS = "agentctl"


class Program:
    """An agent program, a stand-in for its model, and a project with a task."""

    def __init__(self, ground: Ground, program: Path, name: str, standin: StandIn) -> None:
        self.ground, self.program, self.name, self.standin = ground, program, name, standin
        self.task = ground.task(cap=5)
        self.project = Path(self.task.root.path).parent
        subprocess.run(["git", "init", "--quiet"], cwd=self.project, check=True)  # As most projects are.
        own = ground.environ | {"PATH": f"{program.parent}{os.pathsep}{ground.environ.get('PATH', os.defpath)}"}
        told = environ_of(ground.folder(), standin.url)
        self._agents, self._asked_before = 0, 0
        self.environ = {name: value for name, value in (own | told).items() if value is not None}

    def bare(self) -> float:
        """Run the program by itself; return the milliseconds to its first request."""
        if self.name in _BARE:
            return self._first_request(lambda: self._run([str(self.program), *_BARE[self.name]]))
        return self._first_request(self._converse)

    def _converse(self) -> None:
        """Hold the shortest conversation over ACP: greet the program, open a session, send a prompt."""
        prompt = {"prompt": [{"type": "text", "text": _PROMPT}]}
        argv = [str(self.program), *load(self.name).facts.get("args", ())]
        with subprocess.Popen(
            argv, cwd=self.project, env=self.environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, process_group=0,
        ) as process:  # fmt: skip
            try:
                _ask(process, 1, "initialize", {"protocolVersion": 1})
                opened = _ask(process, 2, "session/new", {"cwd": str(self.project), "mcpServers": []})
                _ask(process, 3, "session/prompt", {"sessionId": opened["sessionId"], **prompt})
            finally:
                os.killpg(process.pid, signal.SIGKILL)

    def agent(self, agent: str) -> float:
        """Spawn an agent and wait for its end; return the milliseconds to its first request."""
        self._agents += 1
        self._asked_before = len(self.standin.requests)
        instance = f"a{self._agents}"
        chosen = ("--agent", agent, "--driver", self.name, "--name", instance)
        command = self.ground.command(self.task, "spawn", *chosen, _PROMPT)
        ms = self._first_request(lambda: self._run(command))
        self._run(self.ground.command(self.task, "wait", instance))
        self.ground.settle(self.task)
        return ms

    def has_server(self) -> bool:
        """Whether a request of the newest agent offers the tools of our MCP server: one for a title offers none."""
        return any(_OURS in tool for request in self.standin.requests[self._asked_before :] for tool in request.tools)

    def _first_request(self, run: Callable[[], None]) -> float:
        known = len(self.standin.arrivals_ns)
        began_ns = time.monotonic_ns()
        run()
        wait_until(lambda: len(self.standin.arrivals_ns) > known)
        return (self.standin.arrivals_ns[known] - began_ns) / 1e6

    def _run(self, argv: Sequence[str]) -> None:
        done = subprocess.run(
            argv, cwd=self.project, env=self.environ, stdin=subprocess.DEVNULL, capture_output=True,
            timeout=PATIENCE_S, check=False,
        )  # fmt: skip
        if done.returncode != 0:
            raise BenchError(f"{' '.join(argv)[:200]}: exit code {done.returncode}: {done.stderr[-500:]!r}")


def _ask(process: subprocess.Popen[bytes], number: int, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
    """Send a request over ACP; return its result."""
    assert process.stdin is not None
    assert process.stdout is not None
    message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
    process.stdin.write(json.dumps(message).encode() + b"\n")
    process.stdin.flush()
    for line in process.stdout:
        answer = json.loads(line)
        if answer.get("id") == number and "method" not in answer:
            return dict(answer["result"])
    raise BenchError(f"the program ended before it answered {method}")


def measure_first_word(ground: Ground, rounds: Rounds) -> Found:
    """Measure all agent programs; one that is not in the cache of `tests.agents.install` is listed as missing."""
    found, programs = Found(), installed()
    for name, goal in GOALS.items():
        if name not in programs:
            found.missing.append(f"15: {name} is not in the cache (`python -m tests.agents.install` fetches it)")
            continue
        found += _measure(ground, rounds, programs[name], name, name, goal)
        launcher = _launcher_of(programs[name], name) if name in _BARE else None
        if launcher is not None:
            found += _measure(ground, rounds, launcher, name, f"npm's {name}", goal)
    return found


def _launcher_of(binary: Path, name: str) -> Path | None:
    """Return the command that npm installs, if that is a script for Node that runs the binary and Node is installed."""
    modules = next((folder for folder in binary.parents if folder.name == "node_modules"), binary)
    launcher = modules / ".bin" / name
    is_script = launcher.exists() and launcher.read_bytes()[:2] == b"#!"
    return launcher if is_script and shutil.which("node") else None


def _measure(ground: Ground, rounds: Rounds, path: Path, name: str, shown: str, goal: float) -> Found:
    bare = Sample(name=f"{shown} by itself")
    samples = [Sample(name=f"spawn --agent {agent}") for agent in _AGENTS]
    found = Found()
    with StandIn() as standin:
        program = Program(ground, path, name, standin)
        turns = [
            Turn(lambda agent=agent: [program.agent(agent)], sample)  # type: ignore[misc]
            for agent, sample in zip(_AGENTS, samples, strict=True)
        ]
        alternate(rounds.usual, Turn(lambda: [program.bare()], bare), *turns)
        if not program.has_server():
            why = f"their library is missing ({install_command('mcp')}), or it starts no servers in a new folder"
            found.notes.append(f"15: {shown} got none of agentctl's tools: {why}")
        ground.drop(program.task)
    for agent, sample in zip(_AGENTS, samples, strict=True):
        found.rows.append(ratio(15, f"{shown} {agent}, until its model is asked", sample, bare, goal))
    return found
