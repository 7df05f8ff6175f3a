"""The command line of the MCP inspector, a client that is none of ours, sees what a model would, and delegates."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.agents.install import Unavailable, install_inspector
from tests.agents.lab import PATIENCE_S
from tests.steps import new_task
from tests.support import PROGRAM, environment, run

#: The inspector's exit code for a result that is an error.
TOOL_ERROR = 5
Inspect = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def inspector() -> list[str]:
    """Its command line, found before a test has a home of its own; the tests are skipped where it cannot be had."""
    try:
        return install_inspector()
    except Unavailable as error:
        pytest.skip(f"no MCP inspector: {error}")


@pytest.fixture
def inspect(inspector: list[str], root: Path) -> Inspect:
    """Make a task with an agent that is a line of shell; return what runs the inspector on a server for it.

    A server gets next to nothing of the inspector's environment: the root is named.
    """
    new_task(cap=2, grace=1)
    file = root / "agents" / "echo.md"
    file.parent.mkdir()
    head = json.dumps({"name": "echo", "description": "Says it again.", "argv": ["/bin/sh", "-c", 'echo "said: $0"']})
    file.write_text(f"---\n{head}\n---\n", encoding="utf-8")
    run("trust", file)

    def inspected(*options: str) -> subprocess.CompletedProcess[str]:
        server = [*PROGRAM, "mcp", "--root", str(root), "--tools", "all"]
        argv = [*inspector, *server, "--connect-timeout", "45000", *options]
        return subprocess.run(
            argv, env=environment({}), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE_S * 2,
            check=False,
        )  # fmt: skip

    return inspected


def call(inspect: Inspect, tool: str, *options: str, **arguments: Any) -> Any:
    """Call a tool that is to succeed; return its answer."""
    wanted = ["--method", "tools/call", "--tool-name", tool, "--tool-args-json", json.dumps(arguments)]
    done = inspect(*wanted, *options)
    assert done.returncode == 0, done
    result = json.loads(done.stdout)
    assert result["isError"] is False
    return json.loads(result["content"][0]["text"])


def test_every_schema_is_one_that_all_providers_take(inspect: Inspect) -> None:
    done = inspect("--method", "tools/list", "--strict")
    assert done.returncode == 0, done
    tools = {tool["name"]: tool for tool in json.loads(done.stdout)["tools"]}
    assert {"spawn_agent", "wait", "task", "task_parallel", "create_subtask_echo"} <= set(tools)
    assert "echo: Says it again." in tools["spawn_agent"]["description"]
    assert done.stderr.strip() == "", "the inspector warns of schemas that some providers refuse"


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_it_delegates_waits_and_reads(inspect: Inspect, era: str) -> None:
    in_era = ("--protocol-era", era)
    ended = call(inspect, "task", *in_era, objective="hello", subagent_type="echo")
    assert (ended["status"], ended["result"]) == ("completed", "said: hello")
    started = call(inspect, "spawn_agent", *in_era, agent_type="echo", instruction="again", id="second")
    assert started["id"] == "second"
    # Another server: it finds on disk what the first one has started.
    waited = call(inspect, "wait", *in_era, ids=["second"])
    assert waited["results"]["second"]["output"] == "said: again"
    assert [row["status"] for row in call(inspect, "list_agents", *in_era)] == ["completed", "completed"]


def test_an_error_is_a_result_that_says_what_to_do(inspect: Inspect) -> None:
    done = inspect("--method", "tools/call", "--tool-name", "spawn_agent", "--tool-args-json", '{"instruction": 3}')
    assert done.returncode == TOOL_ERROR, done
    told = json.loads(done.stdout)["structuredContent"]
    assert told["error"] == "spawn_agent.instruction must be a string, not 3"
