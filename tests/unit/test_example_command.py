"""At stake: a command is one function and one row, in one file, and works at once wherever commands are offered."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from agentctl.adapters.taskdir import Root
from agentctl.interfaces.cli.app import main
from agentctl.interfaces.commands.model.catalogue import DAY, VERBS, Listed
from agentctl.interfaces.commands.model.command_model import CHOICE, FLAG, TEXT, WHOLE, Command, Parameter, Shown
from agentctl.interfaces.commands.model.invocation import Invocation
from agentctl.interfaces.commands.model.parameters import IN_TASK
from agentctl.interfaces.commands.programs.served_commands import Served, served_commands
from agentctl.interfaces.web.endpoint import CheckedRequest
from agentctl.interfaces.web.openapi import document_of
from tests.inside import call
from tests.steps import new_task


def greet(
    call: Invocation, *, name: str, times: int = 1, how: str = "hello", loudly: bool = False
) -> Shown[dict[str, str]]:
    """Greet somebody in a task.

    The greeting is all that it does.
    """
    text = f"{how}, {name}" * times
    return Shown({"taskId": call.task().id, "said": text.upper() if loudly else text}, [text])


COMMANDS = (
    Command(
        "greet",
        greet,
        IN_TASK,
        "agentctl greet you",
        (
            Parameter("name", TEXT, "Who.", "NAME", is_argument=True, is_required=True),
            Parameter("times", WHOLE, "How often.", "N", default=1, least=1, most=3),
            Parameter("how", CHOICE, "In which words.", default="hello", choices=("hello", "good day")),
            Parameter("loudly", FLAG, "In capitals."),
        ),
    ),
)


@pytest.fixture(autouse=True)
def listed(monkeypatch: pytest.MonkeyPatch, root: Path) -> None:
    """Have the command in the list; its module is this one."""
    monkeypatch.setitem(sys.modules, "agentctl.interfaces.commands.steer.greeting", sys.modules[__name__])
    monkeypatch.setitem(VERBS, "greet", Listed("steer.greeting", "Greet somebody in a task.", DAY))
    new_task()


@pytest.mark.parametrize("line", [
    ["greet", "you", "--times", "2", "--loudly", "--json"],  # Plain.
    ["greet", "--json", "--times=02", "--loudly", "--", "you"],
])  # fmt: skip
def test_it_is_carried_out_by_a_line(capsys: pytest.CaptureFixture[str], line: list[str]) -> None:
    assert main(line) == 0
    assert json.loads(capsys.readouterr().out) == {"taskId": "t1", "said": "HELLO, YOUHELLO, YOU"}


def test_its_help_and_its_errors_are_there(capsys: pytest.CaptureFixture[str]) -> None:
    page = call(capsys, "greet", "--help")
    assert page.code == 0
    assert all(word in page.out for word in ("Greet somebody", "--times", "hello|good day", "agentctl greet you"))
    assert "greet " in call(capsys, "--help").out
    wrong = call(capsys, "greet", "you", "--times", "4")
    assert (wrong.code, "--times" in wrong.err) == (2, True)


def endpoint_of(root: Path) -> Any:
    offered = [Served("POST", "/tasks/{task}/greet", "greet")]
    (endpoint,) = served_commands(Root(str(root)), force=False, offered=offered)
    return endpoint


def test_it_is_offered_over_http(root: Path) -> None:
    endpoint = endpoint_of(root)
    values = endpoint.values_of({"task": "t1"}, [], {"name": "you", "how": "good day"})
    answer = endpoint.carry_out(CheckedRequest(values, {}, lambda _: None, -1))
    assert (answer.value, answer.exit_code) == ({"taskId": "t1", "said": "good day, you"}, 0)


def test_the_interface_describes_it(root: Path) -> None:
    operation = document_of([endpoint_of(root)], [])["paths"]["/api/v1/tasks/{task}/greet"]["post"]
    assert operation["summary"] == "Greet somebody in a task."
    body = operation["requestBody"]["content"]["application/json"]["schema"]
    assert body["properties"]["times"] == {"type": "integer", "minimum": 1, "maximum": 3, "description": "How often."}
    assert body["required"] == ["name"]
    answer = operation["responses"]["200"]["content"]["application/json"]["schema"]
    assert answer == {"type": "object", "additionalProperties": {"type": "string"}}
