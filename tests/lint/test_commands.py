"""Checks that the rows of a command are those of the function that carries it out, whatever reads them.

A row that says another default than the function would make a command mean one thing on a command line, and another
over HTTP, where what was not given is left out.
"""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest

from agentctl.interfaces.cli import completion
from agentctl.interfaces.cli.typer_commands import program, typer_command
from agentctl.interfaces.commands.model.catalogue import VERBS, command_named
from agentctl.interfaces.commands.model.command_model import (
    CHOICE,
    COMMAND,
    FLAG,
    HOST,
    NUMBER,
    OUTPUT,
    PLACE,
    PROMPT,
    SECONDS,
    TEXT,
    TEXTS,
    WHOLE,
    Command,
    Family,
    Parameter,
)
from agentctl.interfaces.commands.model.invocation import Invocation
from agentctl.interfaces.commands.programs.served_commands import SERVED
from agentctl.interfaces.web.document_schemas import NAMES
from agentctl.operations.start.options import OPTIONS
from agentctl.tools import answer_schemas
from tests import tool_schemas
from tests.commands import all_commands

COMMANDS = all_commands()
TYPES: dict[str, Any] = {
    TEXT: str, PROMPT: str, CHOICE: str, WHOLE: int, NUMBER: float, SECONDS: float, FLAG: bool, TEXTS: list[str],
    COMMAND: list[str],
}  # fmt: skip
#: What a text stands for that nobody can offer: the words of a metavar, without brackets and dots.
FREE = {
    "ADDRESS", "ANSWER", "ARG", "FILE", "FOLDER", "HOST:PORT", "ID=LABEL", "K=V", "LINE", "MODEL", "N", "PARTITION",
    "PATH", "PERCENT", "PROMPT", "QUESTION", "REF", "SIZE", "TEXT", "TIME", "TITLE", "URL", "WORDS",
}  # fmt: skip
#: Options that give a new name.
NEW = {"new id", "subtask id", "spawn name", "resume name", "retry name", "interact ask id"}
#: As a person types it.
NAME = re.compile(r"[a-z]+(-[a-z]+)*")


def rows_by_name(command: Command) -> dict[str, Parameter]:
    found = {one.name: one for one in command.parameters}
    assert len(found) == len(command.parameters), "two parameters have one name"
    return found


@pytest.mark.parametrize("words", COMMANDS)
def test_the_rows_are_the_keywords_of_the_function(words: str) -> None:
    command = COMMANDS[words]
    signature, hints = inspect.signature(command.carry_out), get_type_hints(command.carry_out, localns=NAMES)
    call, *keywords = signature.parameters.values()
    assert hints[call.name] is Invocation
    named = {one.name: one for one in keywords if one.kind is inspect.Parameter.KEYWORD_ONLY}
    takes_options = any(one.kind is inspect.Parameter.VAR_KEYWORD for one in keywords)
    rows = rows_by_name(command)
    assert takes_options or rows.keys() == named.keys()
    assert rows.keys() - named.keys() <= {option.name for option in OPTIONS}
    for name, keyword in named.items():
        row = rows[name]
        assert (keyword.default is inspect.Parameter.empty) == row.is_required, name
        if not row.is_required:
            default = bool(row.default) if row.kind == FLAG and not row.off else row.default
            assert (keyword.default, type(keyword.default)) == (default, type(default)), name
        assert TYPES[row.kind] in {hints[name], *get_args(hints[name])} - {type(None)}, name


@pytest.mark.parametrize("words", COMMANDS)
def test_every_name_and_every_help_is_there(words: str) -> None:
    command = COMMANDS[words]
    rows = command.all_parameters()
    assert re.fullmatch(r"[A-Z].*\.", command.help.splitlines()[0])
    for row in rows:
        assert NAME.fullmatch(row.words) is not None, row
        assert row.is_hidden or row.kind == PROMPT or row.help, row
        assert (row.kind == CHOICE) == bool(row.choices), row
    assert len({row.words for row in rows}) == len(rows)
    many = [index for index, row in enumerate(rows) if row.is_argument and row.kind == TEXTS]
    assert all(not row.is_argument for index in many for row in rows[index + 1 :]), "an argument follows a list of them"


@pytest.mark.parametrize("words", COMMANDS)
def test_typer_has_the_options_of_the_rows(words: str) -> None:
    """An option has the same name with every version of typer, whatever that makes of a metavar."""
    rows = [one for one in COMMANDS[words].all_parameters() if not one.is_argument and one.kind != COMMAND]
    made = [one for one in typer_command(COMMANDS[words]).params if one.param_type_name == "option"]
    wanted = {f"--{one.words}" for one in rows} | {f"-{one.short}" for one in rows if one.short}
    wanted |= {f"--{one.off}" for one in rows if one.off}
    assert {flag for option in made for flag in (*option.opts, *option.secondary_opts)} - {"--help", "-h"} == wanted


@pytest.mark.parametrize("words", COMMANDS)
def test_a_text_is_completed_or_free(words: str) -> None:
    """If not: give it a kind in `command_model.py`, whose names `interfaces/cli/completion.py` knows."""
    for row in COMMANDS[words].all_parameters():
        if row.kind in {TEXT, TEXTS} and not row.completes and f"{words} {row.words}" not in NEW:
            assert row.metavar, row
            assert set(re.sub(r"[\[\]]|\.\.\.", "", row.metavar).split()) <= FREE, row


def test_what_is_free_or_new_is_there() -> None:
    rows = {f"{words} {row.words}": row for words in COMMANDS for row in COMMANDS[words].all_parameters()}
    assert rows.keys() >= NEW
    assert not [name for name in NEW if rows[name].completes]
    used = {word for row in rows.values() if not row.completes for word in re.findall(r"[A-Z=:]+", row.metavar or "")}
    assert used >= FREE


def test_each_kind_of_names_is_known_and_used() -> None:
    used = {row.completes for words in COMMANDS for row in COMMANDS[words].all_parameters() if row.completes}
    assert used | {HOST} == completion._KINDS.keys()


def test_a_command_is_in_the_list_under_its_name_and_its_first_sentence() -> None:
    for name, listed in VERBS.items():
        found = command_named(name)
        assert found.help.splitlines()[0] == listed.help, name
        if isinstance(found, Family):
            assert found.without is None or found.without in found.commands
            assert command_named(name) is found
    assert set(program().list_commands(None)) == set(VERBS)


def test_the_schemas_of_what_tools_answer_are_those_of_the_types() -> None:
    """If not: `python -m tests.tool_schemas > agentctl/tools/answer_schemas.json`."""
    assert Path(answer_schemas.FILE).read_text(encoding="utf-8") == tool_schemas.text()


def test_what_is_offered_over_http_is_a_command_with_such_parameters() -> None:
    for one in SERVED:
        rows = rows_by_name(COMMANDS[one.command])
        keys = {row.key for row in rows.values()} | rows.keys() | {row.name for row in COMMANDS[one.command].needs}
        assert one.without <= keys, (one, "leaves out what is not there")
        assert set(one.named.values()) <= rows.keys(), one
        assert one.always.keys() <= rows.keys(), one


@pytest.mark.parametrize("words", COMMANDS)
def test_the_heading_of_a_row_stands_on_the_help_page(words: str) -> None:
    command = typer_command(COMMANDS[words])
    with command.make_context(words, [], resilient_parsing=True) as context:
        headings = set(re.findall(r"^([A-Z][A-Za-z ]+):$", command.get_help(context), flags=re.MULTILINE))
    groups = {row.group for row in COMMANDS[words].all_parameters() if row.group and not row.is_hidden}
    assert groups <= headings or groups <= {PLACE, OUTPUT}
