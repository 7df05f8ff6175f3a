"""Checks that the code keeps to the glossary: a name that it reserves has the type that it says, and no other."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import pytest

import agentctl
from tests.support import REPOSITORY

PACKAGE = Path(agentctl.__file__).parent
MODULES = sorted(PACKAGE.rglob("*.py"))
#: A reserved name, and the types that a parameter or a field of that name may have, beside `None`.
RESERVED = {
    "agent": {"Agent", "str"},
    "worker": {"WorkerDir", "WorkerView", "WorkerId", "FleetWorker", "Caller", "str", "dict[str, Any]"},
    "root": {"Root", "opt.Root", "Path", "str"},
    "tree": {"TreeDir", "ProcessTree", "RecordedWorktree", "WorkerTree", "str"},
    "task": {"TaskDir", "FleetTask", "Task", "opt.Task", "str"},
    "policy": {"Rules", "Mapping[str, Any]"},
}
#: A type, and the reserved names of other types, which its values must not have.
NAMED = {
    "WorkerDir": {"agent", "root", "task"},
    "Root": {"agent", "worker", "task", "tree"},
    "TaskDir": {"agent", "worker", "root", "tree"},
    "TreeDir": {"agent", "worker", "root", "task"},
}


@cache
def nodes() -> list[tuple[str, ast.arg | ast.AnnAssign | ast.ClassDef | ast.Name]]:
    """Return what has a name in all modules, each with its place."""
    found = []
    for path in MODULES:
        module = path.relative_to(PACKAGE)
        found += [
            (f"{module}:{node.lineno}", node)
            for node in ast.walk(ast.parse(path.read_bytes()))
            if isinstance(node, ast.arg | ast.AnnAssign | ast.ClassDef | ast.Name)
        ]
    return found


def declared(names: Iterable[str]) -> list[tuple[str, str, str]]:
    """Return place, name and type of each parameter and field of these names that has a type."""
    found = []
    for place, node in nodes():
        if isinstance(node, ast.arg):
            name, annotation = node.arg, node.annotation
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            name, annotation = node.target.id, node.annotation
        else:
            continue
        if annotation is not None and name.lstrip("_") in names:
            found.append((place, name, type_of(annotation)))
    return found


def type_of(annotation: ast.expr) -> str:
    """Return a type as it is written, without `None`, `ReadOnly`, `NotRequired` and the annotations for typer."""
    while isinstance(annotation, ast.Subscript) and ast.unparse(annotation.value) in ("ReadOnly", "NotRequired"):
        annotation = annotation.slice
    if isinstance(annotation, ast.Subscript) and ast.unparse(annotation.value) == "Annotated":
        assert isinstance(annotation.slice, ast.Tuple)
        annotation = annotation.slice.elts[0]
    return " | ".join(part for part in ast.unparse(annotation).split(" | ") if part != "None")


def test_a_reserved_name_has_its_type() -> None:
    found = {
        f"{place} {name}: {kind}" for place, name, kind in declared(RESERVED)
        if name in RESERVED and not set(kind.split(" | ")) <= RESERVED[name]
    }  # fmt: skip
    assert found == set()


def test_what_has_a_type_is_not_called_by_another_word() -> None:
    found = {
        f"{place} {name}: {kind}" for place, name, kind in declared(set().union(*NAMED.values()))
        if name.lstrip("_") in NAMED.get(kind, ())
    }  # fmt: skip
    assert found == set()


def test_the_rules_see_enough_to_be_broken() -> None:
    counted = Counter(name for _, name, _ in declared(RESERVED))
    assert all(counted[name] >= 1 for name in RESERVED)
    assert type_of(ast.parse("x: Annotated[Root | None, 1]").body[0].annotation) == "Root"  # type: ignore[attr-defined]


@pytest.mark.parametrize("word", [*RESERVED, "root task", "process tree", "worktree", "worker directory"])
def test_the_glossary_explains_what_is_reserved(word: str) -> None:
    text = (REPOSITORY / "docs/glossary.md").read_text(encoding="utf-8")
    terms = {term.strip() for row in re.findall(r"^\| ([^|]+) \|", text, re.MULTILINE) for term in row.split(",")}
    in_code = set(re.findall(r"`(\w+)`", text))
    assert word in terms | in_code


def test_each_class_has_a_name_of_its_own() -> None:
    names = Counter(node.name for _, node in nodes() if isinstance(node, ast.ClassDef))
    assert {name: count for name, count in names.items() if count > 1} == {}


def test_nothing_is_called_told() -> None:
    """The name `told` does not say what a value is: a result, a message, a report."""
    found = {place for place, node in nodes() if "told" in {getattr(node, "id", ""), getattr(node, "arg", "")}}
    assert found == set()
