"""At stake: whatever a file of a worker holds, each answer is of the type that its command declares.

Each value in each file is replaced by each odd one, alone: what else is in the file is as it is written by agentctl.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agentctl.errors import AgentctlError
from agentctl.interfaces.commands.model.catalogue import command_by_words
from agentctl.interfaces.commands.model.command_model import Shown, take_each
from agentctl.interfaces.commands.model.invocation import Invocation
from agentctl.interfaces.commands.model.surface import Unseen
from tests.answers import check_answer
from tests.steps import new_task, spawn
from tests.support import run, worker

#: Values of a type that is not expected there.
ODD: tuple[Any, ...] = (None, True, -1, 1.5, "x", "\x1b[31m", [], [[]], ["x"], {}, {"x": {}}, [{"path": 1}])
FIGURES = {"input": 8574, "output": 17, "cached": 0}
FILES: dict[str, Any] = {
    "progress.json": {"at": "2026-11-21T23:06:20.024Z", "percent": 40.0, "text": "reading"},
    "usage.json": {"attempts": {"1": {"tokens": FIGURES, "cost": 0.5, "models": {"m": FIGURES}}}, **FIGURES},
    "result.json": {
        "success": True, "turnsUsed": 2, "usage": FIGURES, "costUsd": 0.5, "model": "m", "sessionId": "s",
        "touchedFiles": ["x.py"], "summary": "All is well", "finalMessage": "done", "isDeclared": True,
        "artifacts": [{"path": "report.md", "size": 5, "sha256": "a1"}],
    },
    "worktree.json": {
        "path": "/nowhere/w", "branch": "agentctl/w", "repository": "/nowhere", "commonDir": "/nowhere/.git",
        "base": "a1", "removed": None, "changes": {
            "patch": "/nowhere/changes.patch", "size": 5, "sha256": "a1", "fileCount": 1, "files": {"x.py": "modified"},
            "commits": 1, "untracked": [], "error": "cut",
            "submodules": [{"path": "sub", "commits": 1, "files": 1, "why": "x",
                            "kept": [{"path": "sub.bundle", "size": 5, "sha256": "a1"}]}],
        },
    },
    "interactions/q1.json": {
        "id": "q1", "kind": "select", "question": "Which?", "options": [{"id": "a", "label": "A"}], "default": "a",
        "askedAt": "2026-11-21T23:06:20.024Z", "deadlineSeconds": 9.5, "tool": "Bash", "arguments": {"command": "ls"},
        "means": {"a": "allow"}, "multiple": True, "other": True, "idle": False, "askedBy": "i",
        "askedByType": "explore", "described": "It lists.", "permissions": "own", "isCut": True,
    },
}  # fmt: skip
COMMANDS: dict[str, dict[str, Any]] = {
    "list": {}, "tasks": {}, "tree": {"expand": ["all"]}, "usage": {}, "timeline": {}, "interact list": {},
    "show": {"instances": ["w"]}, "why": {"instances": ["w"]}, "result": {"instances": ["w"]}, "worktrees list": {},
    "search": {"terms": ["well"]},
}  # fmt: skip

#: Of so many odd documents each is tried in every run.
_MOST = 200


def variants(value: Any) -> Iterator[Any]:
    """Yield a document again and again, each time with another value of it replaced."""
    yield from (odd for odd in ODD if odd is not value)
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from ({**value, key: one} for one in variants(inner))
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            yield from ([*value[:place], one, *value[place + 1 :]] for one in variants(inner))


def answers(root: Path, words: str, values: dict[str, Any]) -> None:
    """Carry a command out; what it shows has to be of the type that it declares."""
    command = command_by_words(words)

    def take(item: object) -> None:
        if isinstance(item, Shown):
            document = list(item.value) if isinstance(item.value, Iterator) else item.value
            check_answer(["agentctl", *words.split(), "--json"], json.loads(json.dumps(document)))

    place: dict[str, Any] = {"root": str(root), "json": True}
    place |= {"task": "t1"} if any(one.name == "task" for one in command.needs) else {}
    try:
        take_each(command.carry_out(Invocation(Unseen(), **place), **values), take)
    except AgentctlError:
        pass  # It says what is wrong with the file.


@pytest.fixture(params=["at work", pytest.param("ended", marks=pytest.mark.slow)])
def folder(root: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    """Return the folder of a worker."""
    task = new_task()
    spawn(worker("sleeps", 600) if request.param == "at work" else ["true"], name="w")
    if request.param == "ended":
        task.ended("w")
    yield task.agent("w")
    run("cancel", "--all", check=False)


def _named(name: str) -> Any:
    """A document of many values takes long."""
    many = sum(1 for _ in variants(FILES[name]))
    return pytest.param(name, marks=[pytest.mark.slow] if many > _MOST else [])


@pytest.mark.parametrize("name", [_named(name) for name in FILES])
def test_each_answer_is_of_its_type_whatever_a_file_holds(root: Path, folder: Path, name: str) -> None:
    file = folder / name
    file.parent.mkdir(exist_ok=True)
    for value in variants(FILES[name]):
        file.write_text(json.dumps(value), encoding="utf-8")
        for words, values in COMMANDS.items():
            try:
                answers(root, words, values)
            except AssertionError as error:
                raise AssertionError(f"{name} was {json.dumps(value)[:600]}: {error}") from error
