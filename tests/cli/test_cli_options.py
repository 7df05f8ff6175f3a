"""At stake: an option has the same name with every version of typer, whatever that makes of a metavar."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import agentctl.cli
from agentctl.cli.lazy import program

MODULES = sorted(Path(agentctl.cli.__file__).parent.rglob("*.py"))
#: As a person types it.
NAME = re.compile(r"-[a-z]|--[a-z]+(-[a-z]+)*")


def declarations() -> list[tuple[str, ast.Call]]:
    """Return each call that declares an option, with its place."""
    return [
        (f"{path.name}:{node.lineno}", node)
        for path in MODULES
        for node in ast.walk(ast.parse(path.read_bytes()))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in {"typer.Option", "Option"}
    ]


def flags(path: str, command: Any) -> set[tuple[str, str]]:
    """Return the names of all options of a command and of those below it, each with its command."""
    options = [option for option in command.params if option.param_type_name == "option"]
    own = {(path, name) for option in options for name in (*option.opts, *option.secondary_opts)}
    inner = command.list_commands(None) if hasattr(command, "list_commands") else ()
    return own.union(*(flags(f"{path} {name}", command.get_command(None, name)) for name in inner))


def test_each_option_is_declared_with_its_names() -> None:
    """`startoptions` makes them from a table; all others are written out."""
    found = declarations()
    assert len(found) > 100
    unnamed = {place for place, call in found if not call.args}
    assert unnamed == set()
    names = {(place, name) for place, call in found for name in call.args if not place.startswith("startoptions.py:")}
    texts = {(place, name.value if isinstance(name, ast.Constant) else "") for place, name in names}
    assert {place for place, text in texts if not all(map(NAME.fullmatch, str(text).split("/")))} == set()


def test_each_option_of_each_command_is_lower_case() -> None:
    found = flags("agentctl", program())
    assert {("agentctl", "--host"), ("agentctl serve", "--url"), ("agentctl interact ask", "--kind")} <= found
    assert {(path, name) for path, name in found if NAME.fullmatch(name) is None} == set()
