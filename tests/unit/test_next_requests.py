"""At stake: whoever asks over HTTP, and whoever looks at the page, is told what they can do there."""

from __future__ import annotations

import errno
import json
import os
import re

import pytest

from agentctl.errors import COMMANDS, Argument, AtTerminal, Next, Refused, WithArguments
from agentctl.interfaces.commands.programs.served_commands import SERVED
from agentctl.interfaces.web.next_requests import REQUESTS, words_over_http
from agentctl.interfaces.web.page_files import FOLDER
from agentctl.interfaces.web.problems import problem_response

_COMMAND = re.compile(r"\bagentctl ([a-z][a-z-]*)")


def test_every_next_step_has_words_for_http_and_for_the_page() -> None:
    script = (FOLDER / "js/text/next_steps.js").read_text(encoding="utf-8")
    table = script[script.index("STEPS = {") : script.index("\n};")]
    of_page = {found[1] or found[2] for found in re.finditer(r"^  (?:'([^']+)'|(\w+)):", table, flags=re.MULTILINE)}
    assert of_page == REQUESTS.keys() == COMMANDS.keys()


def test_no_step_over_http_is_a_command_that_there_is_a_request_for() -> None:
    for step in REQUESTS:
        told = words_over_http(Next(step, "a1", "does it"))
        assert told
        assert not set(_COMMAND.findall(told)) & {one.command.split()[0] for one in SERVED}, told


def test_options_are_keys_and_what_only_a_terminal_has_is_said_to_be_its() -> None:
    given = WithArguments("choose another ", Argument("id"), ", or ", Argument("max_concurrent", "N"))
    assert words_over_http(given) == "choose another id, or maxConcurrent: N"
    of_git = "git commit --allow-empty -m begin makes one"
    assert words_over_http(of_git) == of_git
    assert words_over_http(AtTerminal("agentctl doctor --fix")) == "in a terminal: agentctl doctor --fix"
    told = "see it in a terminal: agentctl doctor"
    assert words_over_http(AtTerminal(told)) == told


def test_a_problem_has_all_of_its_steps_and_loses_none() -> None:
    error = Refused(
        "no", hint=("look at it", Next("send", "a1", "does it", task="t"), AtTerminal("or agentctl doctor"))
    )
    told = json.loads(bytes(problem_response(error).body))
    send = "POST /api/v1/tasks/t/workers/a1/send does it"
    assert told["hint"] == f"look at it; {send}; or in a terminal: agentctl doctor"
    assert told["next"] == {"step": "send", "of": "a1", "task": "t", "words": send}
    assert [one["words"] for one in told["steps"]] == told["hint"].split("; ")


@pytest.mark.parametrize(
    ("number", "status"),
    [(errno.ENOSPC, 507), (errno.EIO, 507), (errno.EMFILE, 503), (errno.ENAMETOOLONG, 409), (errno.ELOOP, 409)],
)
def test_of_an_error_of_the_system_it_is_told_whose_it_is(number: int, status: int) -> None:
    answer = problem_response(OSError(number, os.strerror(number), "file"))
    assert answer.status_code == json.loads(bytes(answer.body))["status"] == status
