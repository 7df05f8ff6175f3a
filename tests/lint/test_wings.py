"""Checks that each folder says what it decides, that wings name their doors, and that all else is private to a wing.

Within a wing there are no cycles of imports, so its modules can be read and understood one after the other.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections import defaultdict
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import agentctl
from tests.support import REPOSITORY

PACKAGE = Path(agentctl.__file__).parent
FOLDERS = sorted(path.parent for path in PACKAGE.rglob("__init__.py") if path.parent != PACKAGE)
#: The layers whose folders are wings.
LAYERS_WITH_WINGS = ("operations", "supervision", "screen")
#: Other wings: a subject of several files in a layer that otherwise has no wings.
OTHER_WINGS = ("domain/activity", "adapters/taskyaml")
#: Imports inside a function that nevertheless close a cycle: (importer, imported), with the reason.
CLOSING = {
    ("agentctl.supervision.stop.offspring", "agentctl.supervision.stop.requesting"): (
        "few workers have children to be cancelled: a shim that has none does without it"
    ),
}


def sentence_of(folder: Path) -> str:
    return ast.get_docstring(ast.parse((folder / "__init__.py").read_bytes())) or ""


def wings() -> list[Path]:
    inside = [folder for folder in FOLDERS if folder.parent.name in LAYERS_WITH_WINGS]
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
    """Return for each module of the package the modules that import it, also inside functions."""
    known = {name_of(path) for path in PACKAGE.rglob("*.py")}
    found: dict[str, set[str]] = defaultdict(set)
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.ImportFrom) and node.module:
                for alias in node.names:
                    full = f"{node.module}.{alias.name}"
                    found[full if full in known else node.module].add(name_of(path))
    return found


def ranked(inside: str) -> TopologicalSorter[str]:
    """Return the modules of a wing, with the order among them; imports for types alone count too."""
    order: TopologicalSorter[str] = TopologicalSorter()
    for module, users in importers().items():
        for user in users:
            is_within = module.startswith(f"{inside}.") and user.startswith(f"{inside}.")
            if is_within and user != module and (user, module) not in CLOSING:
                order.add(user, module)
    return order


def imported_at_once(module: str) -> set[str]:
    """Return what a module imports when it is loaded, that is, not inside functions."""
    path = PACKAGE.parent / (module.replace(".", "/") + ".py")
    return {
        node.module for node in ast.parse(path.read_bytes()).body if isinstance(node, ast.ImportFrom) and node.module
    }


def private_modules() -> dict[str, set[str]]:
    """Return the modules that import-linter keeps private, by the package that may import them."""
    settings = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    return {
        contract["allowed_importers"][0]: set(contract["protected_modules"])
        for contract in contracts
        if contract["type"] == "protected"
    }


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
def test_what_is_not_a_door_is_private(wing: Path) -> None:
    inside = name_of(wing)
    hidden = {f"{inside}.{module}" for module in modules_in(wing) - doors_of(sentence_of(wing))}
    assert private_modules().get(inside, set()) == hidden
    assert all(any(user.startswith(f"{inside}.") for user in importers()[module]) for module in hidden)


@pytest.mark.parametrize("wing", wings(), ids=lambda folder: str(folder.relative_to(PACKAGE)))
def test_a_wing_has_no_circle_of_imports(wing: Path) -> None:
    try:
        ranked(name_of(wing)).prepare()
    except CycleError as error:
        pytest.fail(f"move what both need into a module of its own: {' -> '.join(reversed(error.args[1]))}")


@pytest.mark.parametrize("one", CLOSING, ids=" to ".join)
def test_an_import_that_closes_a_circle_is_inside_of_a_function(one: tuple[str, str]) -> None:
    user, module = one
    assert user in importers()[module], "this import is gone: remove it from CLOSING"
    assert module not in imported_at_once(user)


def test_a_door_is_told_from_other_words() -> None:
    assert doors_of("What it decides, by `name`.\n\nDoors: `one`,\n`two`.") == {"one", "two"}
    assert doors_of("What it decides, by `name`.") == set()
