"""At stake: a line for another host means there what was meant here, whatever the values are."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from agentctl.interfaces.cli.plain_lines import read_plain
from agentctl.interfaces.cli.typer_commands import typer_command
from agentctl.interfaces.commands.model.command_model import (
    CHOICE,
    COMMAND,
    FLAG,
    NUMBER,
    PROMPT,
    SECONDS,
    TEXTS,
    WHOLE,
    Parameter,
)
from agentctl.interfaces.commands.model.far_line import far_line
from agentctl.interfaces.commands.model.invocation import Invocation
from agentctl.interfaces.commands.model.surface import Unseen
from tests.commands import all_commands

COMMANDS = {
    words: command
    for words, command in all_commands().items()
    if not any(one.kind == COMMAND for one in command.parameters)  # `spawn` is ordered by `agentctl --host` alone.
}
TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=8)


def values_of(one: Parameter) -> st.SearchStrategy[Any]:
    """Return values that a parameter takes."""
    if one.kind == FLAG:
        return st.just(value=True)
    if one.kind == CHOICE:
        return st.sampled_from(one.choices)
    if one.kind == WHOLE:
        return st.integers(max(one.least or 0, 0), min(one.most or 99, 99))
    if one.kind in {NUMBER, SECONDS}:
        return st.integers(0, 10**6).map(lambda number: number / 1000)
    text = TEXT | st.sampled_from(["-", "--", "-f", "--json", "--help", "a=b", "two words"])
    return st.lists(text, min_size=1, max_size=3) if one.kind == TEXTS else text


@st.composite
def meant(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    """Draw a command with values; an argument is given only if those before it are."""
    words = draw(st.sampled_from(sorted(COMMANDS)))
    values: dict[str, Any] = {}
    has_gap = False
    for one in COMMANDS[words].all_parameters():
        if one.kind == PROMPT or one.off or (one.is_argument and has_gap and not one.is_required):
            continue
        if one.is_required or draw(st.booleans()):
            values[one.name] = draw(values_of(one))
        else:
            has_gap = has_gap or one.is_argument
    return words, values


@given(meant())
def test_a_line_for_another_host_is_read_there_as_it_was_meant(what: tuple[str, dict[str, Any]]) -> None:
    words, values = what
    command = COMMANDS[words]
    needed = {one.name for one in command.needs} - {"json"}
    place = {name: values.pop(name) for name in needed & values.keys()}
    line = far_line(words, Invocation(Unseen(), **place), **values)
    assert line[: len(words.split())] == words.split()
    rest = line[len(words.split()) :]
    plain = read_plain(rest, command)
    if plain is not None:
        assert plain == place | values
    with typer_command(command).make_context(words, list(rest)) as context:
        read = {name: [*item] if isinstance(item, tuple) else item for name, item in context.params.items()}
    assert {name: read[name] for name in place | values} == place | values


def test_no_value_is_taken_for_an_option() -> None:
    call = Invocation(Unseen(), task="t1", root="/a b", force=True)
    line = far_line("interact respond", call, words=["w", "--json"], question_id="-q", reason=None, json=False)
    assert line == [
        "interact", "respond", "--id=-q", "--task=t1", "--root=/a b", "--force", "--", "w", "--json",
    ]  # fmt: skip
