"""Measures the code as a house: its rooms, names, flags and circles of imports. `python -m tests.house` prints it."""

from __future__ import annotations

import ast
import re
import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import agentctl

PACKAGE = Path(agentctl.__file__).parent
FLAG = re.compile(r"_?(is|has|was|had|may|can|does)_\w+")
Function = ast.FunctionDef | ast.AsyncFunctionDef


@cache
def trees() -> Mapping[str, ast.Module]:
    """Return the modules of the package by their paths below it."""
    return {str(path.relative_to(PACKAGE)): ast.parse(path.read_bytes()) for path in sorted(PACKAGE.rglob("*.py"))}


def functions() -> Iterator[tuple[str, Function]]:
    """Yield each function and method, with its module."""
    for module, tree in trees().items():
        for node in ast.walk(tree):
            if isinstance(node, Function):
                yield module, node


def body_length(node: Function) -> int:
    """Return the number of lines of a function's body without its docstring."""
    body = node.body[1:] if ast.get_docstring(node, clean=False) is not None else node.body
    return 0 if not body else int(body[-1].end_lineno or 0) - body[0].lineno + 1


def _several(places: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """Return the names that stand in more than one place, each with its places."""
    found: dict[str, list[str]] = defaultdict(list)
    for name, place in places:
        found[name].append(place)
    return {name: where for name, where in sorted(found.items()) if len(where) > 1}


def shared_function_names() -> dict[str, list[str]]:
    """Return the names of public functions that several modules have, each with these modules."""
    return _several(
        (node.name, module)
        for module, tree in trees().items()
        for node in tree.body
        if isinstance(node, Function) and not node.name.startswith("_")
    )


def shared_module_names() -> dict[str, list[str]]:
    """Return the names that several modules have, each with the paths of these modules."""
    return _several((Path(module).stem, module) for module in trees() if not Path(module).stem.startswith("__"))


def words_of_rooms() -> Iterator[tuple[str, str]]:
    """Yield the words that have a meaning of their own in a folder, each with this folder."""
    for module, tree in trees().items():
        _, _, words = (ast.get_docstring(tree) or "").partition("\nWords:\n")
        for line in re.findall(r"^- (`[^:]*):", words, re.MULTILINE):
            for word in re.findall(r"`([\w ]+)`", line):
                yield word, str(Path(module).parent)


@cache
def places_by_name() -> Mapping[str, list[str]]:
    """Return where each name of a class is a class, and each name of a module, written as one of a class, a module."""
    found: dict[str, list[str]] = defaultdict(list)
    for module, tree in trees().items():
        found[_as_class(Path(module).stem.split("_"))].append(module)
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                found[node.name].append(f"{module}:{node.name}")
    return found


def _as_class(words: Iterable[str]) -> str:
    return "".join(part.capitalize() for part in words)


def named_elsewhere(word: str, folder: str) -> list[str]:
    """Return the classes and modules outside of a folder whose name is a word of it."""
    return [place for place in places_by_name()[_as_class(word.split())] if not place.startswith(f"{folder}/")]


def modules_by_folder() -> dict[str, int]:
    """Return how many modules each package has, without those of the packages in it."""
    folders = [str(Path(module).parent) for module in trees() if not Path(module).stem.startswith("__")]
    return {folder: folders.count(folder) for folder in sorted(set(folders))}


def flags_of(cls: ast.ClassDef) -> set[str]:
    """Return the attributes by which an object of a class says yes or no, and which its methods set.

    >>> (one,) = ast.parse("class A:\\n def f(self):\\n  self.is_on, self.x = True, 1\\n  self.done = False").body
    >>> sorted(flags_of(one))
    ['done', 'is_on']
    """
    found = set()
    for node in ast.walk(cls):
        if isinstance(node, ast.Assign):
            pairs = [pair for target in node.targets for pair in _pairs(target, node.value)]
        elif isinstance(node, ast.AnnAssign):
            pairs = [(node.target, node.value)]
        else:
            continue
        for target, value in pairs:
            if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == "self":
                is_told = isinstance(value, ast.Constant) and isinstance(value.value, bool)
                if is_told or FLAG.fullmatch(target.attr):
                    found.add(target.attr)
    return found


def _pairs(target: ast.expr, value: ast.expr) -> list[tuple[ast.expr, ast.expr | None]]:
    if not isinstance(target, ast.Tuple):
        return [(target, value)]
    values: list[ast.expr | None] = [*value.elts] if isinstance(value, ast.Tuple) else [None] * len(target.elts)
    return list(zip(target.elts, values, strict=False))


def flags_by_class() -> dict[str, set[str]]:
    """Return the flags of each class that has any, by module and name."""
    return {
        f"{module}:{node.name}": found
        for module, tree in trees().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef) and (found := flags_of(node))
    }


def name_of(module: str) -> str:
    """Return the dotted name of a module or a package.

    >>> name_of("interfaces/cli/app.py"), name_of("interfaces/cli/__init__.py")
    ('agentctl.interfaces.cli.app', 'agentctl.interfaces.cli')
    """
    return ".".join(("agentctl", *Path(module).with_suffix("").parts)).removesuffix(".__init__")


@cache
def imports() -> Mapping[str, frozenset[str]]:
    """Return what each module imports of the package, also inside functions and for its types alone."""
    known = {name_of(module) for module in trees()}
    found: dict[str, frozenset[str]] = {}
    for module, tree in trees().items():
        names: set[str] = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                names |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                full = {f"{node.module}.{alias.name}" for alias in node.names}
                names |= (full & known) or {node.module}
        found[name_of(module)] = frozenset((names & known) - {name_of(module)})
    return found


def circle_in(arrows: Mapping[str, Iterable[str]]) -> list[str]:
    """Return a circle among things that need one another, by its names; empty where there is none.

    >>> circle_in({"a": ["b"], "b": ["c"]}), len(circle_in({"a": ["b"], "b": ["a"]}))
    ([], 3)
    """
    try:
        TopologicalSorter(arrows).prepare()
    except CycleError as error:
        return [str(name) for name in reversed(error.args[1])]
    return []


def left_over() -> Iterator[str]:
    """Yield the functions, classes and constants of modules that nothing in the package names."""
    named: Counter[str] = Counter()
    for tree in trees().values():
        for node in ast.walk(tree):
            match node:
                case ast.Name(id=name) | ast.Attribute(attr=name) | ast.alias(name=name):
                    named[name] += 1
                case ast.Constant(value=str(text)) if text.isidentifier():
                    named[text] += 1
    for module, tree in trees().items():
        for node in tree.body:
            for name in _made_by(node):
                if not name.startswith("__") and named[name] <= isinstance(node, ast.Assign | ast.AnnAssign):
                    yield f"{module}:{name}"


def _made_by(node: ast.stmt) -> list[str]:
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return [name]
        case ast.Assign(targets=targets):
            return [target.id for target in targets if isinstance(target, ast.Name)]
        case ast.AnnAssign(target=ast.Name(id=name)):
            return [name]
    return []


def arrows_by_folder() -> Mapping[str, Mapping[str, set[str]]]:
    """Return for each folder which of the modules and folders in it import which others of them."""
    found: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for module, imported in imports().items():
        one = module.split(".")
        for two in (other.split(".") for other in imported):
            depth = next((at for at, (here, there) in enumerate(zip(one, two, strict=False)) if here != there), None)
            if depth is not None:
                found["/".join(one[1:depth])][one[depth]].add(two[depth])
    return found


def _count(pattern: str) -> int:
    return sum(len(re.findall(pattern, _text(module))) for module in trees())


def _text(module: str) -> str:
    return (PACKAGE / module).read_text(encoding="utf-8")


def _imports_in_functions() -> int:
    return sum(
        isinstance(inner, ast.Import | ast.ImportFrom) for _, node in functions() for inner in ast.walk(node)
    )  # fmt: skip


def measures() -> Iterator[tuple[str, object]]:
    """Yield what is measured, each with its name."""
    lengths = sorted(body_length(node) for _, node in functions())
    flags = sorted(map(len, flags_by_class().values()))
    at: Callable[[float], int] = lambda share: lengths[int(share * (len(lengths) - 1))]  # noqa: E731
    yield "files", len(trees())
    yield "lines", sum((PACKAGE / module).read_bytes().count(b"\n") for module in trees())
    yield "functions", len(lengths)
    yield "lines of a body: median, p90, longest", (statistics.median(lengths), at(0.9), lengths[-1])
    yield "names of public functions with two meanings", len(shared_function_names())
    yield "names of modules used twice or more", len(shared_module_names())
    yield "classes with more than 3 flags, and the most", (sum(one > 3 for one in flags), flags[-1])
    yield "dict[str, Any]", _count(r"dict\[str, Any\]")
    yield "noqa, type: ignore, fmt: skip", tuple(map(_count, ("# noqa", "# type: ignore", "# fmt: skip")))
    yield "imports inside functions", _imports_in_functions()
    loads_typer = re.compile(r"(?m)^\s*(?:import typer|from typer)\b")
    yield "modules that import typer", sum(loads_typer.search(_text(module)) is not None for module in trees())


if __name__ == "__main__":
    for name, value in measures():
        print(f"{name:45}  {value}")
