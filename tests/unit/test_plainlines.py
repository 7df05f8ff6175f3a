"""At stake: a line that is read without the parser means what the parser would read; odd lines go to the parser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentctl.interfaces.cli.plain_lines import read_plain
from agentctl.interfaces.cli.presentation import carry_out
from agentctl.interfaces.cli.typer_commands import typer_command
from agentctl.interfaces.commands.model.command_model import (
    CHOICE,
    COMMAND,
    FLAG,
    NUMBER,
    PROMPT,
    SECONDS,
    TEXT,
    TEXTS,
    WHOLE,
    Command,
    Parameter,
)
from agentctl.interfaces.commands.model.invocation import Invocation
from tests.commands import all_commands
from tests.steps import new_task
from tests.support import run

COMMANDS = all_commands()
SPAWN = COMMANDS["spawn"]

TEXTS_OF_LINES = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=12)
WORDS = (
    st.sampled_from(["-", "--", "-t", "-f", "ls", "Look at it", "- a list", "a=b", "", "--help", "7", "-7", "0.5",
                     "1e3", "nan", "1_0", "٣", "all", "claude"])
    | TEXTS_OF_LINES
)  # fmt: skip


@st.composite
def any_lines(draw: st.DrawFn) -> tuple[str, list[str]]:
    """Draw a command with some of its options, in any number and order, and words between and after them."""
    words = draw(st.sampled_from(sorted(COMMANDS)))
    names = sorted(_options_of(COMMANDS[words]))
    line: list[str] = []
    for name in draw(st.lists(st.sampled_from(names), max_size=5)) if names else ():
        value = draw(WORDS | st.none())
        line += [name] if value is None else draw(st.sampled_from([[f"{name}={value}"], [name, value]]))
        line += draw(st.lists(WORDS, max_size=1))
    return words, line + draw(st.lists(WORDS, max_size=3))


@st.composite
def plain_lines(draw: st.DrawFn) -> tuple[str, list[str]]:
    """Draw a plain line, as `plain_lines.py` defines it."""
    words = draw(st.sampled_from(sorted(COMMANDS)))
    command = COMMANDS[words]
    options = {one.name: one for one in _options_of(command).values()}
    pieces: list[list[str]] = []
    for name in draw(st.lists(st.sampled_from(sorted(options)), unique=True)) if options else ():
        option = options[name]
        flag = draw(st.sampled_from([f"--{option.words}", *[f"-{option.short}"] * bool(option.short)]))
        if option.kind == FLAG:
            pieces.append([draw(st.sampled_from([flag, *[f"--{option.off}"] * bool(option.off)]))])
            continue
        for _ in range(draw(st.integers(1, 2)) if option.kind == TEXTS else 1):
            value = draw(_values_of(option))
            ways = [[flag, value], *[[f"{flag}={value}"]] * flag.startswith("--")]
            pieces.append(draw(st.sampled_from(ways)))
    if any(one.kind == COMMAND for one in command.parameters):
        ends = [["Look at it"], ["--", "ls", "--all"], []]
        return words, [word for piece in pieces for word in piece] + draw(st.sampled_from(ends))
    arguments = list(_arguments_for(draw, command))
    place = draw(st.integers(0, len(pieces)))
    before, after = pieces[:place], pieces[place:]
    return words, [word for piece in [*before, arguments, *after] for word in piece]


def _arguments_for(draw: st.DrawFn, command: Command) -> Iterator[str]:
    for one in command.parameters:
        if one.is_argument:
            least = 1 if one.is_required else 0
            count = draw(st.integers(least, 3)) if one.kind == TEXTS else draw(st.integers(least, 1))
            if not count:
                return
            yield from (draw(_values_of(one)) for _ in range(count))


def _values_of(parameter: Parameter) -> st.SearchStrategy[str]:
    if parameter.kind == CHOICE:
        return st.sampled_from(parameter.choices)
    if parameter.kind == WHOLE:
        return st.integers(max(parameter.least or 0, 0), min(parameter.most or 99, 99)).map(str)
    if parameter.kind in {NUMBER, SECONDS}:
        return st.decimals(0, 1000, places=2).map(str)
    return TEXTS_OF_LINES.filter(lambda text: text != "" and text[0] != "-")


def _options_of(command: Command) -> dict[str, Parameter]:
    return {
        f"--{words}": one
        for one in command.all_parameters()
        if not one.is_argument and one.kind not in (COMMAND, PROMPT)
        for words in (one.words, one.off)
        if words
    }


class Carried:
    """Commands that are read, but not carried out: what each would have been given."""

    def __init__(self, words: str) -> None:
        rows = tuple(one._replace(completes="") for one in COMMANDS[words].parameters)  # No worker of a name is there.
        self.command = COMMANDS[words]._replace(carry_out=self._take, parameters=rows)
        self._given: dict[str, Any] = {}

    def _take(self, call: Invocation, **values: Any) -> None:
        """Take what the command is given."""
        rows = self.command.parameters
        own = {one.name: bool(one.default) if one.kind == FLAG else one.default for one in rows} | values
        self._given = {**own, "call": {**vars(call), "_surface": None}}

    def by_the_parser(self, line: list[str]) -> dict[str, Any]:
        """Return what the parser gives it."""
        typer = typer_command(self.command)
        with typer.make_context(self.command.name, list(line)) as context:
            typer.invoke(context)
        return self._given

    def without(self, line: list[str]) -> dict[str, Any] | None:
        """Return what the reader of plain lines gives it."""
        plain = read_plain(line, self.command)
        if plain is None:
            return None
        carry_out(self.command, plain)
        return self._given


@given(any_lines())
def test_what_is_read_is_what_the_parser_reads(line: tuple[str, list[str]]) -> None:
    carried = Carried(line[0])
    plain = carried.without(line[1])
    if plain is not None:
        assert plain == carried.by_the_parser(line[1])


@given(plain_lines())
def test_what_is_plain_is_read_and_as_the_parser_reads_it(line: tuple[str, list[str]]) -> None:
    carried = Carried(line[0])
    assert carried.without(line[1]) == carried.by_the_parser(line[1])


@pytest.mark.parametrize("line", [
    "list --json", "spawn --name a --queue -- make --json", "spawn --agent plan Plan", "spawn --name=a --wait -- x",
    "spawn --retries 2 --env A=b -- x", "wait-any --timeout-seconds 0.5 --for completed,failed", "cancel a b --no-wait",
    "wait -t x a", "logs -f a --tail 5", "interact respond a --id q1 yes", "worktrees diff a --since turn",
])  # fmt: skip
def test_what_most_say_is_plain(line: str) -> None:
    words = line.split()
    two = " ".join(words[:2])
    name, rest = (two, words[2:]) if two in COMMANDS else (words[0], words[1:])
    assert read_plain(rest, COMMANDS[name]) is not None


@pytest.mark.parametrize("words", [
    ["--help"], ["-t"], ["-tx"], ["-t=x"], ["--name"], ["--name", "-x"], ["--name", "a", "--name", "b"], ["--name="],
    ["--json=1"], ["--retries", "two", "--", "x"], ["--nam", "a"], ["ls"], ["ls", "-l"], ["-"], ["--"],
    ["Look at it", "--json"], ["--prompt", "x y"], ["--resume"], ["--return", "x"], ["--max_turns", "1"], ["--re use"],
    ["--timeout-seconds", "inf", "--", "x"], ["--timeout-seconds", "-1", "--", "x"],
])  # fmt: skip
def test_what_is_odd_is_the_parsers(words: list[str]) -> None:
    assert read_plain(words, SPAWN) is None


def test_an_error_of_a_plain_line_is_told_as_any_other(root: Path) -> None:
    new_task()
    refused = run("spawn", "--agent", "plan", "--", "true", check=False)
    assert (refused.code, "--agent is for an agent, and there is no prompt" in refused.err) == (2, True)
    missing = run("list", "--task", "nobody", check=False)
    assert (missing.code, "no task 'nobody'" in missing.err) == (3, True)


def test_kinds_that_the_reader_does_not_know_would_go_to_the_parser() -> None:
    strange = Command("x", print, (), "", (Parameter("y", "strange"), Parameter("z", TEXT, is_argument=True)))
    assert read_plain(["--y", "1"], strange) is None
    assert read_plain(["1"], strange) == {"z": "1"}
