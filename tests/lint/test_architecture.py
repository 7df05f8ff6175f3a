"""Checks the domain for I/O and clocks, and functions for their length. Layers and wings: pyproject.toml."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import agentctl

PACKAGE = Path(agentctl.__file__).parent
MODULES = sorted(PACKAGE.rglob("*.py"))
LONGEST_BODY = 40
#: Modules whose functions have effects, or other results tomorrow.
IMPURE = {
    "os", "io", "sys", "subprocess", "signal", "socket", "time", "random", "secrets", "uuid", "pathlib",
    "shutil", "tempfile", "threading", "asyncio", "fcntl", "select", "ctypes", "psutil", "filelock", "yaml",
    "typer", "rich",
}  # fmt: skip


#: Methods of `datetime` that read a clock; the others only calculate.
CLOCKS = {"now", "today", "utcnow"}


def named(path: Path) -> str:
    return str(path.relative_to(PACKAGE))


def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_bytes())


def for_types_alone(tree: ast.Module) -> set[ast.AST]:
    """Return what is below `if TYPE_CHECKING:`, which never runs."""
    blocks = [one for one in ast.walk(tree) if isinstance(one, ast.If) and ast.unparse(one.test) == "TYPE_CHECKING"]
    return {node for block in blocks for statement in block.body for node in ast.walk(statement)}


def imported_by(path: Path, *, types: bool = True) -> set[str]:
    """Return the full names of the modules that a file imports, also inside functions, and for its types."""
    found: set[str] = set()
    tree = tree_of(path)
    left_out = set() if types else for_types_alone(tree)
    for node in ast.walk(tree):
        if node in left_out:
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{named(path)}: a relative import"
            found |= {str(node.module)} | {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def body_length(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Return the number of lines of a function's body without its docstring."""
    body = node.body[1:] if ast.get_docstring(node, clean=False) is not None else node.body
    return 0 if not body else int(body[-1].end_lineno or 0) - body[0].lineno + 1


def calls_in(path: Path) -> set[str]:
    """Return the names of the plain functions that a file calls."""
    calls = (node.func for node in ast.walk(tree_of(path)) if isinstance(node, ast.Call))
    return {call.id for call in calls if isinstance(call, ast.Name)}


def clocks_read_by(path: Path) -> set[str]:
    """Return the names of the methods by which a file reads a clock."""
    calls = (node.func for node in ast.walk(tree_of(path)) if isinstance(node, ast.Call))
    return {call.attr for call in calls if isinstance(call, ast.Attribute)} & CLOCKS


def test_a_module_says_what_it_owns() -> None:
    assert [named(path) for path in MODULES if not ast.get_docstring(tree_of(path))] == []


def test_a_function_fits_one_screen() -> None:
    found = {
        f"{named(path)}:{node.lineno} {node.name}": body_length(node)
        for path in MODULES
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    assert len(found) > 500
    assert {name: length for name, length in found.items() if length > LONGEST_BODY} == {}


def test_the_domain_is_pure() -> None:
    domain = [path for path in MODULES if named(path).startswith("domain/")]
    assert len(domain) > 6
    for path in domain:
        assert sorted({name.partition(".")[0] for name in imported_by(path)} & IMPURE) == [], named(path)
        roots = {name.partition(".")[0] for name in imported_by(path, types=False)}
        assert sorted(roots - sys.stdlib_module_names - {"agentctl", "typing_extensions"}) == [], named(path)
        assert sorted(calls_in(path) & {"open", "print", "input", "exec", "eval"}) == [], named(path)
        assert clocks_read_by(path) == set(), named(path)


#: Where commands are read, carried out and printed.
OF_COMMANDS = ("interfaces/cli/", "interfaces/commands/")
#: What prints: the errors of the program, what commands show, notes and questions, the names for a completion.
PRINTING = {
    "interfaces/cli/app.py",
    "interfaces/cli/presentation.py",
    "interfaces/cli/json_output.py",
    "interfaces/cli/completion.py",
    "interfaces/cli/typer_commands.py",
}
#: What has a standard stream without showing anything there that a command returns: the bell, the offer to an agent's
#: program, what asks a person for a line, and whether stdout has the characters of a picture or a document.
WRITING = {
    "interfaces/commands/parts/bell.py",
    "interfaces/cli/early.py",
    "interfaces/cli/terminal_lines.py",
    "interfaces/commands/show/timeline.py",
    "interfaces/commands/parts/json_text.py",
}


def test_no_command_prints_and_one_module_knows_typer_and_only_faces_draw() -> None:
    for path in MODULES:
        name, known = named(path), {name.partition(".")[0] for name in imported_by(path)}
        assert "typer" not in known or name == "interfaces/cli/typer_commands.py"
        assert "rich" not in known or name.startswith((*OF_COMMANDS, "interfaces/screen/")), name
        assert "print" not in calls_in(path) or name in PRINTING, name
        writes = re.findall(r"sys\.std(?:out|err)\b", path.read_text(encoding="utf-8"))
        assert not name.startswith(OF_COMMANDS) or not writes or name in PRINTING | WRITING, name


def test_the_rules_can_be_broken(tmp_path: Path) -> None:
    """The tests above would also pass with rules that accept everything."""
    file = tmp_path / "domain" / "bad.py"
    file.parent.mkdir()
    file.write_text("import os.path\ndef f():\n    '''Doc.'''\n" + "    date.today()\n" * 41, encoding="utf-8")
    (function,) = [node for node in ast.walk(tree_of(file)) if isinstance(node, ast.FunctionDef)]
    assert body_length(function) == 41
    assert imported_by(file) == {"os.path"}
    assert clocks_read_by(file) == {"today"}


# -- which programs are run --------------------------------------------------------------------------------------------

#: Modules that look for a program as somebody else's PATH says: what a person has typed or defined, which is only
#: looked for here, or what a worker will call. All else is found by `adapters/searchpath.py`, never in a clone.
AS_THEY_SAY = {
    "operations/doctor/examining.py",
    "operations/start/own_program.py",
    "operations/start/requests.py",
    "operations/trust/definitions.py",
}
#: Modules that start programs, and why none of these is found in the working folder.
STARTS = {
    "adapters/detached.py": "an absolute path",
    "adapters/git.py": "its environment is `settled`",
    "adapters/processes.py": "the system's own PATH",
    "adapters/versions.py": "the path of a driver's program, found by `program_at`",
    "interfaces/commands/start/demo.py": "this interpreter",
    "worker_programs/agent_host/program/tool_offer.py": "this interpreter",
    "worker_programs/agent_host/program/own_home.py": "the path of a driver's program, found by `program_at`",
    "worker_programs/agent_host/program/program_query.py": "the path of a driver's program, found by `program_at`",
    "worker_programs/agent_host/program/program_start.py": "the path of a driver's program, or a person's own command",
    "worker_programs/agent_host/worktree_turns.py": "this interpreter",
    "encoding.py": "this interpreter",
    "interfaces/hosts/host_link.py": "/bin/sh, and ssh by `program_at`; its environment is `settled`",
    "worker_programs/plain_model/model/provider_key.py": "its environment is `settled`",
    "worker_programs/plain_model/toolbox/tool_processes.py": "an absolute path, and this interpreter",
    "operations/doctor/nodes.py": "this interpreter",
    "operations/install/boot.py": "found by `program_at`",
    "worker_programs/on_node/calls/called_commands.py": "this interpreter",
    "worker_programs/on_node/filesystem_trial.py": "this interpreter",
    "runners/slurm.py": "its environment is `settled`",
    "interfaces/screen/start/line_editor.py": "found by `program_at`",
    "shim/birth.py": "a worker's command, as it was typed",
    "supervision/notify/delivery.py": "its environment is `settled`",
}
START = re.compile(r"(?:subprocess\.(?!Popen\[)(?:run|Popen|call|check_\w+|getoutput|getstatusoutput)"
                   r"|os\.(?:exec\w+|spawn\w+|posix_spawnp?|system|popen)|asyncio\.create_subprocess_\w+)")  # fmt: skip


def calls_by_name(path: Path) -> Iterator[tuple[str, ast.Call]]:
    """Yield each call in a module, with what is called as it is written."""
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Call):
            yield ast.unparse(node.func), node


def test_no_program_of_ours_is_looked_for_in_the_working_folder() -> None:
    looking = {named(path) for path in MODULES for called, _ in calls_by_name(path) if called.split(".")[-1] == "which"}
    assert looking == {*AS_THEY_SAY, "adapters/searchpath.py"}, "use agentctl.adapters.searchpath.program_at"


def test_of_each_program_that_is_started_it_is_known_how_it_is_found() -> None:
    starting = {named(path) for path in MODULES for called, _ in calls_by_name(path) if START.fullmatch(called)}
    assert starting == set(STARTS), "say in STARTS how the program is found"
    bare = [
        f"{named(path)}:{call.lineno} {word.value}"
        for path in MODULES
        for called, call in calls_by_name(path)
        if START.fullmatch(called)
        for word in first_words(call)
        if isinstance(word.value, str) and not word.value.startswith("/")
    ]
    assert bare == [], "a program of ours is named by its path"


def first_words(call: ast.Call) -> Iterator[ast.Constant]:
    """Yield the first word of a command line that is written out."""
    for given in call.args[:1]:
        first = given.elts[0] if isinstance(given, ast.List | ast.Tuple) and given.elts else given
        if isinstance(first, ast.Constant):
            yield first


def test_no_output_of_a_program_is_decoded_as_the_locale_says() -> None:
    """What another program prints may hold any bytes, and a name in it is UTF-8; ruff (PLW1514) sees only files."""
    decoded = [
        f"{named(path)}:{call.lineno} {word.arg}"
        for path in MODULES
        for _, call in calls_by_name(path)
        for word in call.keywords
        if word.arg in {"text", "universal_newlines"} and getattr(word.value, "value", None) is True
    ]
    assert decoded == [], "name the encoding, or decode with os.fsdecode"


def test_every_program_of_ours_reads_names_as_utf8() -> None:
    """One that others may start begins anew where it does not; one that only we start gets the option from us."""
    programs = {named(path) for path in MODULES if "if __name__ ==" in path.read_text(encoding="utf-8")}
    ensured = {named(path) for path in MODULES if "ensure_utf8" in calls_in(path)}
    assert "interfaces/cli/app.py" in ensured, "which `__main__.py` and `interfaces/cli/here.py` call"
    assert programs - ensured == {
        "__main__.py",
        "interfaces/cli/here.py",
        "shim/__main__.py",
        "worker_programs/plain_model/search_process.py",
    }
    given = {named(path) for path in MODULES if "*OPTIONS" in path.read_text(encoding="utf-8")}
    assert given == {
        "adapters/detached.py",
        "worker_programs/agent_host/worktree_turns.py",
        "worker_programs/plain_model/toolbox/tool_processes.py",
    }
