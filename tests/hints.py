"""Finds the next steps in the sources that name a command, and names each by its place: `MODULE.FUNCTION: COMMAND`.

A test that follows one says so with `@pytest.mark.follows("operations/show/further_runs._of_retry: agentctl cancel")`.
`make lint` compares both sides (`lint/test_advice.py`), and a test that is marked so has to follow what it names
(`advice.py`).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from agentctl.errors import COMMANDS
from agentctl.interfaces.commands.model.catalogue import VERBS, command_named
from agentctl.interfaces.commands.model.command_model import Family
from tests.support import REPOSITORY

PACKAGE = REPOSITORY / "agentctl"
TESTS = REPOSITORY / "tests"
#: A command of agentctl's in a text, and what follows up to the end of its part of the sentence.
_OURS = re.compile(r"\bagentctl ([a-z][a-z-]*)(?: ([a-z][a-z-]*))?([^;,()`|\n]*)")
#: A command of another program in a next step, with the first word that is not a value.
_OTHERS = re.compile(
    r"(?<![\w/.-])((?:chmod|kill|rm|mkdir|export|unset|npm|loginctl|ps)(?! it\b)(?: -?[a-zA-Z][\w-]*)?)(?![\w-])"
    r"|(?:\bgit (?:-C \{\} )?|(?:^|&& )\{\} )(init|config|commit|branch|worktree|merge|stash|checkout)\b"
)
_OPTION = re.compile(r"(?<!\S)--[a-z][a-z-]*(?![\w-])")
#: Parameters and variables that hold a next step, and what makes a value that has one.
_STEPS = re.compile(r"hint|advice|next|step|way|helps|steps|install|throw_away|merge|delete|unlock", re.IGNORECASE)
_MAKERS = frozenset({"finding", "Finding", "WayOut"})
#: What declares a command, with the texts of its `--help`.
_ROWS = frozenset({"Command", "Family", "Parameter"})
#: Options of place: they say about what a command is, not what it does.
_PLACE = frozenset({"--task", "--root", "--host", "--hosts", "--id"})
#: Commands that only show something: whether they can be typed is checked, and following one changes nothing.
SHOWS = frozenset({
    "list", "show", "logs", "tasks", "templates", "why", "events", "usage", "agents", "activity", "tree", "search",
    "interact list", "worktrees list", "worktrees", "trust --list", "worktrees diff",
})  # fmt: skip


class Hint(NamedTuple):
    """A command that is advised somewhere."""

    #: The module below the package, without its ending, and the function or the constant in it.
    place: str
    #: Its program, its name, and the options that say what it does.
    command: str

    def __str__(self) -> str:
        return f"{self.place}: {self.command}"


@cache
def hints() -> frozenset[str]:
    """Return every next step in the sources that does something."""
    return frozenset(str(hint) for source in sorted(PACKAGE.rglob("*.py")) for hint in _in_source(source))


@cache
def followed() -> dict[str, list[str]]:
    """Return what tests say that they follow: the tests, by the next step."""
    found: dict[str, list[str]] = {}
    for source in sorted(TESTS.rglob("*.py")):
        text = source.read_text(encoding="utf-8")
        if "mark.follows(" not in text:
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("mark.follows"):
                for name in node.args:
                    found.setdefault(ast.literal_eval(name), []).append(f"{source.name}:{node.lineno}")
    return found


def _in_source(source: Path) -> Iterator[Hint]:
    name = source.relative_to(PACKAGE).with_suffix("").as_posix()
    yield from _below(ast.parse(source.read_text(encoding="utf-8")), (), is_step=False, module=name)


def _below(node: ast.AST, scope: tuple[str, ...], *, is_step: bool, module: str) -> Iterator[Hint]:
    """Yield the commands in the texts below a node; documentation and the texts of `--help` have none that count."""
    place = f"{module}.{'.'.join(scope)}" if scope else module
    if (text := _text_of(node)) is not None:
        yield from (Hint(place, command) for command in commands_in(text, is_step=is_step))
        if isinstance(node, ast.Constant):
            return
    if isinstance(node, ast.Call):
        if _called(node) in _ROWS:
            return
        if (command := _made_by(node)) is not None:
            yield Hint(place, command)
        is_step = is_step or _called(node) in _MAKERS
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        scope = (*scope, node.name)
        is_step = is_step or bool(_STEPS.search(node.name))
    if isinstance(node, ast.Assign | ast.AnnAssign):
        (first, *_) = node.targets if isinstance(node, ast.Assign) else [node.target]
        named = ast.unparse(first)
        is_step = is_step or bool(_STEPS.search(named))
        scope = scope or (named,)
    for child in _children(node):
        if isinstance(node, ast.JoinedStr) and isinstance(child, ast.Constant):
            continue
        of_step = isinstance(child, ast.keyword) and bool(_STEPS.search(child.arg or ""))
        yield from _below(child, scope, is_step=is_step or of_step, module=module)


def _children(node: ast.AST) -> Iterator[ast.AST]:
    decorators = getattr(node, "decorator_list", ())
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.AnnAssign | ast.Assign) and ast.unparse(child).startswith("COMMANDS = "):
            continue  # Words for what is advised elsewhere: `Next("send", name)`.
        is_documentation = isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant)
        is_help = isinstance(child, ast.keyword) and child.arg in {"help", "examples", "epilog"}
        if not (is_documentation or is_help or child in decorators):
            yield child


def _text_of(node: ast.AST) -> str | None:
    if isinstance(node, ast.JoinedStr):
        return "".join(str(one.value) if isinstance(one, ast.Constant) else "{}" for one in node.values)
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    return None


def _called(node: ast.Call) -> str:
    return ast.unparse(node.func).rpartition(".")[2]


def _made_by(node: ast.Call) -> str | None:
    """Return the command that a call words: `command_line(task, "cancel", name)`."""
    words = [one.value if isinstance(one, ast.Constant) and isinstance(one.value, str) else "{}" for one in node.args]
    name = ast.unparse(node.func)
    if name == "Next" and words[0] in COMMANDS:
        return next(commands_in(COMMANDS[words[0]], is_step=True), None)
    if name in {"command_line", "typed"} and len(words) > 1:
        return _ours(words[1], words[2] if len(words) > 2 else "", " ".join(words[2:]))
    if name.endswith(".command") and words and words[0] in VERBS:
        return _ours(words[0], words[1] if len(words) > 1 else "", " ".join(words[1:]))
    return None


def commands_in(text: str, *, is_step: bool) -> Iterator[str]:
    """Yield the commands that a text advises: those of other programs only where it is a next step."""
    for found in _OURS.finditer(text):
        if found[1] in VERBS and (command := _ours(found[1], found[2] or "", (found[2] or "") + found[3])) is not None:
            yield command
    if is_step:
        for found in _OTHERS.finditer(text):
            yield found[1] or f"git {found[2]}"


def _ours(name: str, part: str, rest: str) -> str | None:
    before, dashes, _ = rest.partition(" -- ")
    options = _OPTION.findall(before if dashes else rest)
    words = [name, *([part] if part in _parts(name) else [])]
    words += [option for option in options if option not in _PLACE]
    line = " ".join(words)
    if name not in VERBS:
        return None  # Whoever calls says which it is.
    return None if line in SHOWS or "--help" in options else f"agentctl {line}"


def _parts(name: str) -> Sequence[str]:
    command = command_named(name) if name in VERBS else None
    return [one.name for one in command.commands] if isinstance(command, Family) else ()
