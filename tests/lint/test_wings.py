"""Checks that each folder says what it decides, that wings name their doors, and that all else is private to a wing."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest

import agentctl
from agentctl.interfaces.commands.model.catalogue import VERBS, command_named

PACKAGE = Path(agentctl.__file__).parent
FOLDERS = sorted(path.parent for path in PACKAGE.rglob("__init__.py") if path.parent != PACKAGE)
#: The rooms whose folders are wings.
ROOMS_WITH_WINGS = (
    "domain", "interfaces/commands", "interfaces/editor", "interfaces/screen", "operations", "supervision",
    "worker_programs/agent_host", "worker_programs/on_node", "worker_programs/plain_model",
)  # fmt: skip
#: Another wing: a subject of several files in a room that otherwise has none.
OTHER_WINGS = ("adapters/taskyaml",)
#: It has wings of its own, and nothing of it is loaded: the types of documents.
NO_WING = PACKAGE / "domain/documents"


def sentence_of(folder: Path) -> str:
    return ast.get_docstring(ast.parse((folder / "__init__.py").read_bytes())) or ""


def wings() -> list[Path]:
    rooms = {PACKAGE / name for name in ROOMS_WITH_WINGS}
    inside = [folder for folder in FOLDERS if folder.parent in rooms and folder != NO_WING]
    return inside + [PACKAGE / name for name in OTHER_WINGS]


def name_of(path: Path) -> str:
    """Return the dotted name of a module or a package."""
    return ".".join(("agentctl", *path.relative_to(PACKAGE).with_suffix("").parts))


def modules_in(folder: Path) -> set[str]:
    return {path.stem for path in folder.glob("*.py")} - {"__init__"}


def doors_of(text: str) -> set[str]:
    _, _, doors = text.partition("Doors:")
    return set(re.findall(r"`(\w+)`", doors))


@cache
def importers() -> dict[str, set[str]]:
    """Return for each module of the package the modules that import it, also inside functions, or load it by name."""
    known = {name_of(path) for path in PACKAGE.rglob("*.py")}
    found: dict[str, set[str]] = defaultdict(set)
    for listed in VERBS.values():
        found[f"agentctl.interfaces.commands.{listed.module}"].add(command_named.__module__)
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.ImportFrom) and node.module:
                for alias in node.names:
                    full = f"{node.module}.{alias.name}"
                    found[full if full in known else node.module].add(name_of(path))
    return found


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: str(folder.relative_to(PACKAGE)))
def test_a_folder_says_what_it_decides(folder: Path) -> None:
    first, _, rest = sentence_of(folder).partition("\n")
    assert first.endswith("."), first
    assert len(first.split()) >= 5, first
    assert not rest or rest.startswith("\n")


@pytest.mark.parametrize("wing", wings(), ids=lambda folder: str(folder.relative_to(PACKAGE)))
def test_a_wing_names_the_doors_that_others_use(wing: Path) -> None:
    inside, users = name_of(wing), importers()
    used = {
        module for module in modules_in(wing)
        if any(not user.startswith(f"{inside}.") for user in users[f"{inside}.{module}"])
    }  # fmt: skip
    assert doors_of(sentence_of(wing)) == used


@pytest.mark.parametrize("wing", wings(), ids=lambda folder: str(folder.relative_to(PACKAGE)))
def test_what_is_not_a_door_is_used_inside(wing: Path) -> None:
    inside = name_of(wing)
    hidden = {f"{inside}.{module}" for module in modules_in(wing) - doors_of(sentence_of(wing))}
    assert all(any(user.startswith(f"{inside}.") for user in importers()[module]) for module in hidden)


def test_a_door_is_told_from_other_words() -> None:
    assert doors_of("What it decides, by `name`.\n\nDoors: `one`,\n`two`.") == {"one", "two"}
    assert doors_of("What it decides, by `name`.") == set()
