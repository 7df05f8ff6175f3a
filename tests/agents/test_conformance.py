"""The scenarios of the protocol's authors, as far as they are about what our server offers, over HTTP.

The suite wants fixtures of its own in a server; a relay turns their calls into calls of ours. What is left out, and
which single checks cannot pass, stands here with the reason.
"""

from __future__ import annotations

import json
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.agent_steps import define
from tests.agents.install import Unavailable, install_conformance
from tests.agents.relay import Call, relayed
from tests.integration.test_mcp_http import free_port
from tests.steps import new_task
from tests.support import run, start

OLD, MIDDLE, NEW, EXTENSION = "2025-06-18", "2025-11-25", "2026-07-28", "extension"
_ASKS: Call = ("task", {"objective": "x", "subagent_type": "asks"})
_ASK = _ASKS[1]
_OF_ANSWERS = ("elicitation", "request_state", "tampered_state", "multi_round")
#: The suite's tool -> our call that does what it is to do.
CALLS: dict[str, Call] = {
    "test_simple_text": ("list_agents", {}),
    "test_error_handling": ("task", {"objective": "x", "subagent_type": "nobody"}),
    "test_tool_with_progress": ("task", {"objective": "0.5", "subagent_type": "sleeps"}),
    "test_elicitation": _ASKS,
    "greet": ("list_agents", {}),
    "slow_compute": ("task", {"objective": "{seconds}", "subagent_type": "sleeps"}),
    "failing_job": ("task", {"objective": "x", "subagent_type": "fails"}),
    "confirm_delete": _ASKS,
    "multi_input": ("task_parallel", {"tasks": [_ASK, _ASK]}),
    **{f"test_input_required_result_{name}": _ASKS for name in _OF_ANSWERS},
}

#: scenario -> the revisions of the protocol in which it is tried
PLAIN = {
    "server-initialize": (OLD, MIDDLE),
    "server-session-lifecycle": ("2025-03-26", MIDDLE),
    "server-stateless": (NEW,),
    "ping": (OLD, MIDDLE),
    "tools-list": (OLD, MIDDLE, NEW),
    "tools-call-simple-text": (OLD, MIDDLE, NEW),
    "tools-call-error": (OLD, MIDDLE, NEW),
    "tools-call-with-progress": (OLD, MIDDLE, NEW),
    "tools-call-elicitation": (OLD, MIDDLE),
    "server-sse-multiple-streams": (MIDDLE, NEW),
    "dns-rebinding-protection": (MIDDLE, NEW),
    "http-header-validation": (NEW,),
    "sep-2164-resource-not-found": (NEW,),
    "caching": (NEW,),
}
ANSWERS = {
    f"input-required-result-{name}": (NEW,)
    for name in (
        "basic-elicitation", "request-state", "multi-round", "missing-input-response", "result-type",
        "unsupported-methods", "tampered-state", "ignore-extra-params", "validate-input",
    )
}  # fmt: skip
TASKS = {
    f"tasks-{name}": (EXTENSION,)
    for name in (
        "lifecycle", "capability-negotiation", "wire-fields", "request-state-removal", "mrtr-input", "request-headers",
        "dispatch-and-envelope", "status-notifications",
    )
}  # fmt: skip

#: Checks that cannot pass, of scenarios that are tried all the same -> why.
CANNOT = {
    "sep-2575-server-rejects-undeclared-capability": "no tool of ours needs a capability: a question comes as data",
    "sep-2575-missing-capability-http-400": "the same",
    "sep-2663-tasks-get-status-failed": "nothing that an agent does is an error of the protocol",
    "tasks-headers-tolerate-mcp-method-on-tools-call": "it wants the very words of the suite's own tool",
    "sep-2322-elicitation-incomplete": "it wants its own name for a question",
    "sep-2322-multi-round-r2": "it wants another requestState for each round, which the protocol does not",
    "sep-2549-resources-list-caching-hints": "there are no resources",
    "sep-2549-resources-read-caching-hints": "there are no resources",
    "sep-2549-resources-templates-list-caching-hints": "there are no resources",
    "sep-2549-prompts-list-caching-hints": "there are no prompts",
}
#: Scenarios that are about what our server does not offer; it answers -32601 there -> what that is.
NOT_OFFERED = {
    r"resources-.*": "resources", r"prompts-.*": "prompts", r"completion-.*": "completion", r"logging-.*": "logging",
    r"sep-2640-.*": "skills", r"tools-call-(sampling|with-logging)": "sampling, logging",
    r"input-required-result-(basic-sampling|basic-list-roots|multiple-.*|capability-check)": "sampling, roots",
    r"input-required-result-non-tool-request": "prompts",
    r"tools-call-(image|audio|embedded-resource|mixed-content)": "answers that are no text",
    r"json-schema-2020-12": "a tool with such a schema: ours keep to what every provider takes",
    r"elicitation-.*": "forms with defaults, titles and several fields: a question has one answer",
    r"http-custom-header-.*": "arguments in headers",
    r"server-sse-polling": "streams that are gone on with: `wait` takes up what a broken call has begun",
    r"tasks-required-task-error": "a tool that needs a task",
    r"tasks-mrtr-composition": "a question before the task: a call is handed over at once, and then asks",
}  # fmt: skip


class Tried(NamedTuple):
    """What came of a scenario."""

    succeeded: int
    #: Failed check -> what is said of it.
    failed: dict[str, str]


class Suite:
    """The suite, with our server before it."""

    def __init__(self, argv: list[str], url: str, folder: Path) -> None:
        self._argv, self._url, self._folder = argv, url, folder

    def tries(self, scenario: str, revision: str) -> Tried:
        """Run a scenario in a revision."""
        folder = self._folder / f"{scenario}-{revision}"
        of_revision = [] if revision == EXTENSION else ["--spec-version", revision]
        argv = [*self._argv, "server", "--url", self._url, "--scenario", scenario, *of_revision, "-o", str(folder)]
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False)
        files = list(folder.rglob("checks.json"))
        assert files, done
        checks: list[dict[str, Any]] = [check for file in files for check in json.loads(file.read_bytes())]
        failed = {check["id"]: check.get("errorMessage", "") for check in checks if check["status"] == "FAILURE"}
        return Tried(sum(check["status"] == "SUCCESS" for check in checks), failed)


@pytest.fixture(scope="session")
def conformance() -> list[str]:
    """Its command line, found before a test has a home of its own; the tests are skipped where it cannot be had."""
    try:
        return install_conformance()
    except Unavailable as error:
        pytest.skip(f"no conformance suite: {error}")


@pytest.fixture
def suite(conformance: list[str], root: Path, tmp_path: Path) -> Iterator[Suite]:
    """Serve a task in which agents ask, sleep or fail, behind the relay."""
    new_task(cap=60, grace=1)
    define(root, "asks", "agentctl interact ask 'Which name?'")
    define(root, "sleeps", 'sleep "$1"')
    define(root, "fails", "exit 3")
    port = free_port()
    server = start("mcp", "--http", str(port), "--tools", "all", "--progress-seconds", "0.05")
    assert server.stderr is not None
    file = Path(server.stderr.readline().rsplit(" ", 1)[1].strip())
    with relayed(free_port(), port, file.read_text(encoding="ascii").strip(), CALLS) as url:
        yield Suite(conformance, url, tmp_path / "checks")
    server.send_signal(signal.SIGTERM)
    server.wait(20)
    run("cancel", "--all", "--recursive", check=False)


@pytest.mark.parametrize("scenarios", [PLAIN, ANSWERS, TASKS], ids=["plain", "answers", "tasks"])
def test_our_server_keeps_to_the_protocol(suite: Suite, scenarios: dict[str, tuple[str, ...]]) -> None:
    bad: dict[str, Any] = {}
    for scenario, revisions in scenarios.items():
        for revision in revisions:
            tried = suite.tries(scenario, revision)
            failed = {check: why for check, why in tried.failed.items() if check not in CANNOT}
            if failed:
                bad[f"{scenario} in {revision}"] = failed
    assert not bad


def test_what_is_tried_and_what_is_left_out_is_all_that_there_is(conformance: list[str]) -> None:
    told = subprocess.run([*conformance, "list", "--server"], capture_output=True, text=True, timeout=60, check=True)
    known = set(re.findall(r"^\s*- (\S+)", told.stdout, re.MULTILINE))
    tried = {*PLAIN, *ANSWERS, *TASKS}
    left_out = {name for name in known if any(re.fullmatch(pattern, name) for pattern in NOT_OFFERED)}
    assert known == tried | left_out
    assert not tried & left_out
