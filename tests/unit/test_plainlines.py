"""At stake: a line that is read without the parser means what the parser would read; odd lines go to the parser."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentctl.cli import list as listing
from agentctl.cli import spawn as spawning
from agentctl.cli.invocation import KINDS as PLACE_KINDS
from agentctl.cli.invocation import Invocation
from agentctl.cli.lazy import VERBS, program
from agentctl.cli.listed import print_workers
from agentctl.cli.plainlines import _VERBS, read_plain
from agentctl.cli.starting import KINDS as SPAWN_KINDS
from agentctl.cli.starting import start_and_report
from agentctl.operations.start.options import FLAG, OPTIONS
from agentctl.operations.start.requests import SpawnRequest
from tests.steps import new_task
from tests.support import run

KINDS = {"spawn": PLACE_KINDS | SPAWN_KINDS, "list": PLACE_KINDS | print_workers.__annotations__}
NUMBERS = {name: value for name, value in SpawnRequest._field_defaults.items() if isinstance(value, (int, float))}
PLACE = vars(Invocation())
DEFAULTS: dict[str, dict[str, Any]] = {
    "spawn": {
        **PLACE,
        **{option.name: False if option.kind == FLAG else NUMBERS.get(option.name) for option in OPTIONS},
        **(start_and_report.__kwdefaults__ or {}),
    },
    "list": PLACE | (print_workers.__kwdefaults__ or {}),
}
COMMANDS = {verb: program().get_command(None, verb) for verb in KINDS}

TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=12)
WORDS = st.sampled_from(["-", "--", "-t", "ls", "Look at it", "- a list of things", "a=b", "", "--help"]) | TEXTS


@st.composite
def any_lines(draw: st.DrawFn) -> tuple[str, list[str]]:
    """Draw a command with some of its options, in any number and order, and the words after them."""
    verb = draw(st.sampled_from(sorted(KINDS)))
    names = [
        name.replace("_", "-") for name in sorted({*KINDS[verb], *DEFAULTS[verb]} - PLACE.keys() | PLACE_KINDS.keys())
    ]
    options: list[str] = []
    for name in draw(st.lists(st.sampled_from(names), max_size=5)):
        value = draw(WORDS | st.none())
        ways = [[f"--{name}={value}"], [f"--{name}", value or ""]]
        options += [f"--{name}"] if value is None else draw(st.sampled_from(ways))
    return verb, options + draw(st.lists(WORDS, max_size=3))


@st.composite
def plain_lines(draw: st.DrawFn) -> tuple[str, list[str]]:
    """Draw a plain line, as `plainlines.py` defines it."""
    verb = draw(st.sampled_from(sorted(KINDS)))
    kinds = {name: kind for name, kind in KINDS[verb].items() if kind in {"bool", "str | None"}}
    names = draw(st.lists(st.sampled_from(sorted(kinds.keys() - {"prompt", "return"})), unique=True))
    words: list[str] = []
    for name in names:
        option, value = f"--{name.replace('_', '-')}", draw(TEXTS.filter(lambda text: text and text[0] != "-"))
        ways = [[option]] if kinds[name] == "bool" else [[option, value], [f"{option}={value}"]]
        words += draw(st.sampled_from(ways))
    ends = [["Look at it"], ["--", "ls", "--all"], []] if verb == "spawn" else [[]]
    return verb, words + draw(st.sampled_from(ends))


def read_by_the_parser(verb: str, words: list[str]) -> dict[str, Any]:
    """Return what the parser passes to the function that does the work."""
    module, name = {"spawn": (spawning, "start_and_report"), "list": (listing, "show_list")}[verb]
    with patch.object(module, name) as work, COMMANDS[verb].make_context(verb, list(words)) as context:
        COMMANDS[verb].invoke(context)
    (call,) = work.call_args.args or [work.call_args.kwargs["call"]]
    given: dict[str, Any] = dict(work.call_args.kwargs)
    given.pop("call", None)
    given.update(vars(call))
    return given


def read_without(verb: str, words: list[str]) -> dict[str, Any] | None:
    """Return what the reader of plain lines passes to that function."""
    given = read_plain(words, KINDS[verb])
    return None if given is None else DEFAULTS[verb] | vars(Invocation.taken_from(given)) | given


@given(any_lines())
def test_what_is_read_is_what_the_parser_reads(line: tuple[str, list[str]]) -> None:
    verb, words = line
    plain = read_without(verb, words)
    if plain is not None:
        assert plain == read_by_the_parser(verb, words)


@given(plain_lines())
def test_what_is_plain_is_read_and_as_the_parser_reads_it(line: tuple[str, list[str]]) -> None:
    verb, words = line
    assert read_without(verb, words) == read_by_the_parser(verb, words)


@pytest.mark.parametrize("words", [
    ["--json"], ["--name", "a", "--queue", "--", "make", "--json"], ["--agent", "plan", "Plan"], ["Look at it"],
    ["--name=a", "--wait", "--", "x"], ["--driver", "codex", "--agent", "general", "--json", "x y"],
])  # fmt: skip
def test_what_most_say_is_plain(words: list[str]) -> None:
    assert read_plain(words, KINDS["spawn"]) is not None


@pytest.mark.parametrize("words", [
    ["--help"], ["-t", "x"], ["--name"], ["--name", "-x"], ["--name", "a", "--name", "b"], ["--name="], ["--json=1"],
    ["--retries", "2", "--", "x"], ["--env", "A=b", "--", "x"], ["--nam", "a"], ["ls"], ["ls", "-l"], ["-"], ["--"],
    ["Look at it", "--json"], ["--prompt", "x y"], ["--resume"], ["--return", "x"], ["--max_turns", "1"], ["--re use"],
])  # fmt: skip
def test_what_is_odd_is_the_parsers(words: list[str]) -> None:
    assert read_plain(words, KINDS["spawn"]) is None


def test_each_command_that_is_read_so_is_a_command() -> None:
    for verb, (module, name) in _VERBS.items():
        assert verb in VERBS
        assert getattr(import_module(f"agentctl.cli.{module}"), name).__annotations__.items() <= KINDS[verb].items()


def test_an_error_of_a_plain_line_is_told_as_any_other(root: Path) -> None:
    new_task()
    refused = run("spawn", "--agent", "plan", "--", "true", check=False)
    assert (refused.code, "--agent is for an agent, and there is no prompt" in refused.err) == (2, True)
    missing = run("list", "--task", "nobody", check=False)
    assert (missing.code, "no task 'nobody'" in missing.err) == (3, True)
