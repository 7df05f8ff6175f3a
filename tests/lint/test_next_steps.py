"""Checks that what names a command or an option is a value, so that each surface words it or knows it as a terminal's.

Where an error can come to whoever asks over HTTP, a plain text of any kind that names a command is suspect: it may be
returned, and become a hint elsewhere, a finding or a note. So none is let through. What is wrong names arguments, as
values, and no command at all, wherever it is told.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from agentctl.adapters.taskdir import Root
from agentctl.interfaces.commands.model.catalogue import VERBS, command_by_words
from agentctl.interfaces.commands.model.command_model import ON_COMMAND_LINES
from agentctl.interfaces.commands.programs.served_commands import SERVED, served_commands
from agentctl.interfaces.web.delegation_paths import seed_endpoints
from agentctl.interfaces.web.endpoint import Endpoint
from agentctl.interfaces.web.next_requests import OF_COMMAND_LINES
from agentctl.interfaces.web.openapi import document_of
from agentctl.interfaces.web.own_endpoints import OwnEndpoints
from agentctl.interfaces.web.several_endpoints import SeveralEndpoints
from tests.commands import all_commands
from tests.support import REPOSITORY

PACKAGE = REPOSITORY / "agentctl"
OPTION = re.compile(r"(?<![\w'\"-])--[a-z][a-z-]*")
COMMAND = re.compile(r"\bagentctl ([a-z][a-z-]*)")
#: What only those know who have typed a line, and have it before them.
OF_LINES = re.compile(r"\b(to a pipe|(at|on) a terminal|stderr says|exits with|prints|Ctrl-C)\b", re.IGNORECASE)
#: Rooms whose errors nobody gets over HTTP, or who word them for people at a terminal.
ELSEWHERE = ("interfaces/", "operations/doctor/", "operations/install/")
#: What makes of a text a next step of a terminal; what a person types, with its parts for whoever does it otherwise.
VALUE = "AtTerminal"
VALUES = frozenset({VALUE, "TypedCommand"})
#: What returns a command line.
LINES = frozenset({"command_line", "line_with", "answer_command", "way_to_answer"})
#: Texts of a terminal that name a command of which there is a request: each is met at a terminal alone.
AT_TERMINALS_ALONE = {
    "operations/delegate/subtasks.py": "the sub-tasks of a command line",
    "operations/discard/at_rest.py": "of `rm` and `archive`",
    "operations/notify/target_report.py": "of `notify test`",
    "operations/start/batch.py": "of `spawn --each`",
    "operations/start/admission.py": "of `doctor`",
    "operations/talk/outbox.py": "a worker's, in its sandbox",
    "operations/where/chosen_task.py": "of the task that is chosen there",
    "supervision/dispatch/stop_order.py": "before one of `doctor`",
}


#: What makes an error, and what it says by its first argument.
ERROR = re.compile(
    r"(Error|Refused|Damaged|NotFound|Busy|Conflict|Declined|Failed|Left|Limited|Out|Slot|Stopped|Taken)$"
)
#: Arguments that no request has: those of commands of which there is none, and of command lines alone.
OF_NO_REQUEST = {
    "domain/answers.py": {"kind", "option"},
    "interfaces/commands/show/timeline.py": {"html", "svg"},
    "interfaces/commands/show/tree.py": {"follow", "json"},
    "interfaces/commands/start/resume.py": {"lost"},
    "interfaces/commands/start/spawn.py": {"batch", "each", "no_queue"},
    "interfaces/commands/steer/interact.py": {"option"},
    "interfaces/commands/wait/wait.py": {"any"},
    "interfaces/web/root_server.py": {"tls_cert", "tls_key", "url"},
    "operations/talk/asking.py": {"default"},
    "operations/talk/reporting.py": {"file"},
}
#: Texts with options of other programs, which are the same on every surface.
OF_OTHER_PROGRAMS = {
    "adapters/git.py": "git's",
    "operations/worktree/making.py": "git's",
    "operations/worktree/remaking.py": "git's",
    "operations/worktree/removing.py": "git's",
    "runners/slurm.py": "sbatch's",
}
#: Texts with options that are read at a terminal.
OF_TERMINALS = {
    "errors.py": "the words of a terminal",
    "interfaces/web/root_server.py": "before there is a server, or in its log",
    "operations/start/options.py": "the help of `spawn`",
}


def named_in(text: str) -> set[str]:
    """Return the commands that a text names."""
    return {name for name in COMMAND.findall(text) if name in VERBS}


def text_of(node: ast.AST) -> str | None:
    """Return a text of the sources, with `a1` for each value in it."""
    if isinstance(node, ast.JoinedStr):
        return "".join(str(one.value) if isinstance(one, ast.Constant) else "a1" for one in node.values)
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def called(node: ast.AST) -> str:
    """Return the name of what a node calls; empty of anything else."""
    return ast.unparse(node.func).rpartition(".")[2] if isinstance(node, ast.Call) else ""


def plain_texts(node: ast.AST, is_suspect: Callable[[str], object] = named_in) -> Iterator[ast.expr]:
    """Yield what is below a node and names a command, but is not a next step of a terminal."""
    if called(node) in VALUES or is_words(node):
        return
    text = text_of(node)
    if isinstance(node, ast.expr) and (called(node) in LINES or (text is not None and is_suspect(text))):
        yield node
        return
    for child in ast.iter_child_nodes(node):
        is_documentation = isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant)
        if not is_documentation:
            yield from plain_texts(child, is_suspect)


def is_words(node: ast.AST) -> bool:
    """Return whether this is the table of a surface that words each next step."""
    return (
        isinstance(node, ast.Assign | ast.AnnAssign)
        and re.match(r"(COMMANDS|REQUESTS)\b", ast.unparse(node)) is not None
    )


def names_in(node: ast.AST) -> Iterator[str]:
    """Yield the variables in an expression whose values are not made next steps of a terminal there."""
    if called(node) in VALUES:
        return
    if isinstance(node, ast.Name):
        yield node.id
    for child in ast.iter_child_nodes(node):
        yield from names_in(child)


def values_in(tree: ast.AST) -> Mapping[str, list[ast.expr]]:
    """Return what each variable is made of."""
    values: dict[str, list[ast.expr]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    values.setdefault(target.id, []).append(node.value)
    return values


def hints_in(tree: ast.AST) -> Iterator[ast.expr]:
    """Yield what is given as a hint, and what a name has that is."""
    values = values_in(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg == "hint":
            yield node.value
            for name in names_in(node.value):
                yield from values.get(name, ())


def wrongs_in(tree: ast.AST) -> Iterator[ast.expr]:
    """Yield what errors say is wrong, and what a name has that is put into it."""
    values = values_in(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ERROR.search(called(node)) and node.args:
            yield node.args[0]
            for name in names_in(node.args[0]):
                yield from (value for value in values.get(name, ()) if not isinstance(value, ast.Call))


def put_into_wrongs(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Yield the functions that put one of their parameters into what is wrong: the name, and which one it is."""
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef):
            wrong = {name for node in wrongs_in(function) for name in names_in(node)}
            for at, parameter in enumerate(function.args.args):
                if parameter.arg in wrong:
                    yield function.name, at


def named_in_line(text: str) -> bool:
    """Return whether a text names a command, or has an option in a sentence; alone it is for another program."""
    return bool(named_in(text) or (" " in text and OPTION.search(text)))


def comes_to_http(name: str) -> bool:
    """Return whether the errors of a module may come to whoever asks over HTTP."""
    return not name.startswith(ELSEWHERE) or name.startswith("interfaces/web/")


def sources() -> Iterator[tuple[str, ast.AST]]:
    """Yield the modules: the path below the package, and what it has."""
    for source in sorted(PACKAGE.rglob("*.py")):
        yield source.relative_to(PACKAGE).as_posix(), ast.parse(source.read_text(encoding="utf-8"))


def test_no_hint_is_a_plain_text_that_names_a_command() -> None:
    found = [f"{name}:{one.lineno}" for name, tree in sources() for hint in hints_in(tree) for one in plain_texts(hint)]
    assert not found, f"a command in a hint is a Next, or {VALUE}: {found}"


def test_no_hint_is_a_plain_text_that_names_an_option() -> None:
    found = {
        name: f"{name}:{one.lineno}"
        for name, tree in sources()
        if name not in OF_OTHER_PROGRAMS
        for hint in hints_in(tree)
        for one in plain_texts(hint, OPTION.search)
    }
    assert not found, f"an option in a hint is one of WithArguments: {found}"


def test_who_passes_an_error_on_passes_its_steps_on() -> None:
    """Its `hint` is worded for a terminal already."""
    found = [
        f"{name}:{node.lineno}"
        for name, tree in sources()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and re.search(r"(Error|Refused|Damaged|NotFound)$", called(node))
        for keyword in node.keywords
        if keyword.arg == "hint"
        for part in ast.walk(keyword.value)
        if isinstance(part, ast.Attribute) and part.attr == "hint"
    ]
    assert not found


def test_a_text_that_names_a_command_or_an_option_is_a_value_wherever_it_may_come_to_http() -> None:
    found = [
        f"{name}:{one.lineno}: {text[:40]}"
        for name, tree in sources()
        if comes_to_http(name) and name not in OF_OTHER_PROGRAMS and name not in OF_TERMINALS
        for one in plain_texts(tree, named_in_line)
        if (text := text_of(one)) is not None
    ]
    assert not found, f"a text that names a command is a Next, one with an option WithArguments, or {VALUE}: {found}"


def parts_of_text(node: ast.AST) -> Iterator[ast.AST]:
    """Yield what a text is made of, or chosen from; a list is no text, and of a call nobody knows what it returns."""
    if not isinstance(node, ast.List | ast.Tuple | ast.Call):
        yield node
        for child in ast.iter_child_nodes(node):
            yield from parts_of_text(child)


def served_modules() -> set[str]:
    """Return the modules of commands that are carried out over HTTP too."""
    commands = (command_by_words(one.command) for one in SERVED)
    return {f"{one.carry_out.__module__.removeprefix('agentctl.').replace('.', '/')}.py" for one in commands}


def test_what_is_wrong_names_no_command_and_no_option() -> None:
    """Everywhere: what one interface alone says today is called by another one tomorrow."""
    found = [
        f"{name}:{part.lineno}: {text[:40]}"
        for name, tree in sources()
        if name not in OF_OTHER_PROGRAMS
        for wrong in wrongs_in(tree)
        for part in ast.walk(wrong)
        if isinstance(part, ast.expr) and (text := text_of(part)) is not None
        if OPTION.search(text) or named_in(text)
    ]
    assert not found, f"an option in what is wrong is one of WithArguments: {found}"


def test_what_is_wrong_gets_no_option_from_elsewhere() -> None:
    takers = [(*taker, name) for name, tree in sources() for taker in put_into_wrongs(tree)]
    places: dict[str, set[int]] = {}
    for function, at, _name in takers:
        places.setdefault(function, set()).add(at)
    found = [
        f"{name}:{node.lineno}: {ast.unparse(node)[:60]}"
        for name, tree in sources()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        for at in places.get(called(node), ())
        if at < len(node.args)
        for part in parts_of_text(node.args[at])
        if OPTION.search(text_of(part) or "")
    ]
    assert not found, f"an option that is put into what is wrong is an Argument: {found}"


def all_endpoints() -> list[Endpoint]:
    """Return what is served below the prefix of the interface."""
    root = Root(Path("/nowhere"))
    return [
        *served_commands(root, force=False),
        *OwnEndpoints(root, force=False, url="", is_read_only=False).all(),
        *SeveralEndpoints(root, force=False).all(),
    ]


def described(document: object, at: str = "") -> Iterator[tuple[str, str]]:
    """Yield each text by which a description of the interface explains something, with where it stands."""
    items = dict(enumerate(document)) if isinstance(document, list) else document
    for key, value in items.items() if isinstance(items, dict) else ():
        if key in ("description", "summary") and isinstance(value, str):
            yield f"{at}/{key}", value
        else:
            yield from described(value, f"{at}/{key}")


def test_a_request_is_described_in_words_of_requests() -> None:
    options = {f"--{one.words}" for command in all_commands().values() for one in command.all_parameters()}
    texts = [*described(document_of(all_endpoints(), seed_endpoints(Root(Path("/nowhere")), force=False)))]
    assert len(texts) > 500, texts
    found = {
        at: text for at, text in texts if named_in(text) or {*OPTION.findall(text)} & options or OF_LINES.search(text)
    }
    assert not found, f"what is so only where a line is typed stands below {ON_COMMAND_LINES.strip()!r}: {found}"


def test_each_argument_that_is_named_is_one_of_requests_or_of_command_lines() -> None:
    known = {one.name for endpoint in all_endpoints() for one in endpoint.parameters} | OF_COMMAND_LINES
    found: dict[str, set[str]] = {}
    for name, tree in sources():
        for node in ast.walk(tree) if comes_to_http(name) or name in served_modules() else ():
            if called(node) == "Argument" and isinstance(node, ast.Call):
                found.setdefault(name, set()).update({*filter(None, map(text_of, node.args[:1]))} - known)
    assert {name: named for name, named in found.items() if named} == OF_NO_REQUEST


def test_what_only_a_terminal_has_is_no_command_that_there_is_a_request_for() -> None:
    served = {one.command.split()[0] for one in SERVED}
    found = {
        name
        for name, tree in sources()
        if comes_to_http(name)
        for node in ast.walk(tree)
        if called(node) == VALUE
        for part in ast.walk(node)
        if (text := text_of(part)) is not None and named_in(text) & served
    }
    assert found <= AT_TERMINALS_ALONE.keys(), found - AT_TERMINALS_ALONE.keys()


def test_the_page_names_a_command_only_where_just_a_terminal_helps() -> None:
    page, table = PACKAGE / "interfaces/web/page", "js/text/at_terminal.js"
    found = {
        script.relative_to(page).as_posix(): named
        for script in sorted(page.rglob("*.js"))
        if "vendor" not in script.parts and (named := named_in(_without_comments(script.read_text(encoding="utf-8"))))
    }
    assert found == {table: {"serve", "trust"}}
    assert not found[table] & {one.command.split()[0] for one in SERVED}


def _without_comments(script: str) -> str:
    return re.sub(r"/\*.*?\*/|^\s*//[^\n]*", "", script, flags=re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize(
    "line",
    [
        'raise Refused("no", hint="agentctl list shows them")',
        'WAY = f"see agentctl show {name}"\nraise Refused("no", hint=("first", WAY))',
        'raise Refused("no", hint=f"{command_line(task, verb)} ends it")',
    ],
)
def test_a_command_in_a_plain_hint_is_seen(line: str) -> None:
    assert [one for hint in hints_in(ast.parse(line)) for one in plain_texts(hint)]


@pytest.mark.parametrize(
    ("hint", "is_seen"),
    [
        ('("first", f"or leave --{x} out, --queue")', True),
        ('WithArguments("leave ", Argument("queue"), " out")', False),
    ],
)
def test_an_option_in_a_plain_hint_is_seen(hint: str, is_seen: bool) -> None:
    parsed = ast.parse(f'Refused("no", hint={hint})')
    seen = [text for one in hints_in(parsed) for text in plain_texts(one, OPTION.search)]
    assert bool(seen) == is_seen


@pytest.mark.parametrize(
    ("line", "is_seen"),
    [
        ('raise UsageError("--set is for templates")', True),
        ('what = f"--{name}"\nraise UsageError(f"{what} is for templates")', True),
        ('raise UsageError(WithArguments("--set is for ", Argument("template")))', True),
        ('raise UsageError(WithArguments(Argument("set"), " is for templates"))', False),
    ],
)
def test_an_option_in_what_is_wrong_is_seen(line: str, is_seen: bool) -> None:
    texts = [text_of(part) or "" for wrong in wrongs_in(ast.parse(line)) for part in ast.walk(wrong)]
    assert any(map(OPTION.search, texts)) == is_seen


def test_who_puts_a_parameter_into_what_is_wrong_is_seen() -> None:
    function = 'def check(text, what):\n    raise UsageError(f"{what} {text!r} is not a name")'
    assert set(put_into_wrongs(ast.parse(function))) == {("check", 0), ("check", 1)}


def test_a_value_is_not() -> None:
    line = 'raise Refused("no", hint=(AtTerminal("agentctl doctor"), Next("list"), "agentctl is here"))'
    assert not [one for hint in hints_in(ast.parse(line)) for one in plain_texts(hint)]
