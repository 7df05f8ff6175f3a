"""At stake: whoever asks over HTTP, and whoever looks at the page, is told what they can do there."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import agentctl
from agentctl.errors import COMMANDS, Next
from agentctl.interfaces.commands.model.catalogue import VERBS
from agentctl.interfaces.commands.programs.served_commands import SERVED
from agentctl.interfaces.web.next_requests import OF_TERMINALS, REQUESTS, request_in_words, without_commands
from agentctl.interfaces.web.page_files import FOLDER

PACKAGE = Path(agentctl.__file__).parent
_COMMAND = re.compile(r"\bagentctl ([a-z][a-z-]*)")


def test_every_next_step_has_words_for_http_and_for_the_page() -> None:
    script = (FOLDER / "js/text/next_steps.js").read_text(encoding="utf-8")
    table = script[script.index("STEPS = {") : script.index("\n};")]
    of_page = {found[1] or found[2] for found in re.finditer(r"^  (?:'([^']+)'|(\w+)):", table, flags=re.MULTILINE)}
    assert of_page == REQUESTS.keys() == COMMANDS.keys()


def test_no_step_over_http_is_a_command_that_there_is_a_request_for() -> None:
    for step in REQUESTS:
        told = request_in_words(Next(step, "a1", "does it")) or ""
        assert set(_COMMAND.findall(told)) <= OF_TERMINALS, told
    assert not {one.command.split()[0] for one in SERVED} & OF_TERMINALS
    assert VERBS.keys() >= OF_TERMINALS


def texts() -> Iterator[str]:
    """Yield every text of ours that could be a next step, with a word for each value in it."""
    for source in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
            if isinstance(node, ast.JoinedStr):
                yield "".join(str(one.value) if isinstance(one, ast.Constant) else "a1" for one in node.values)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value


def test_no_hint_tells_of_a_command_over_http_that_is_not_of_terminals_alone() -> None:
    found = [text for text in texts() if _COMMAND.search(text)]
    assert len(found) > 100
    for text in found:
        assert set(_COMMAND.findall(without_commands(text) or "")) <= OF_TERMINALS, text


def test_options_are_keys() -> None:
    assert without_commands("choose another --id; or --max-concurrent N") == "choose another id; or maxConcurrent N"
    assert without_commands("known: '--x'") == "known: '--x'"
    assert without_commands(None) is without_commands("agentctl list") is None
