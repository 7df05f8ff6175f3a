"""Survey: the longest Python functions, how deeply they are nested, and one folder more closely.

A person may choose that folder; without an answer it is the one with the most heavy functions.
"""

from __future__ import annotations

import argparse
import ast
import re
from dataclasses import dataclass
from statistics import median_low
from typing import Any

from survey import TOP, SourceFile, Worker, WorkerError, argument_parser, code, parse, plural, run, shown, table, walk

LONG_LINES, DEEP_LEVELS = 50, 4
MOST_OPTIONS, NONE = 6, "none"
_BLOCKS = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.With, ast.AsyncWith, ast.Try, ast.TryStar, ast.Match)


@dataclass(kw_only=True, slots=True)
class Function:
    name: str
    file: SourceFile
    line: int
    lines: int
    nesting: int = 0
    "Levels of control flow; an inner function begins anew."

    @property
    def is_heavy(self) -> bool:
        return self.lines >= LONG_LINES or self.nesting >= DEEP_LEVELS


Areas = dict[str, list[Function]]


def work(worker: Worker, arguments: argparse.Namespace) -> None:
    tree = walk(arguments.path)
    functions: list[Function] = []
    unparsed: list[str] = []
    for file in worker.each([file for file in tree.files if file.is_python], "measuring"):
        parsed = parse(tree.text(file) or "")
        if parsed is None:
            unparsed.append(file.relative)
        else:
            functions += functions_in(file, parsed)
    functions.sort(key=lambda one: (-one.lines, one.file.relative, one.line))
    areas = by_area(functions)
    findings = findings_of(functions, areas, unparsed)
    worker.save(findings, complete=False)  # This much stays if the worker ends while it asks.
    folder, how = choose_folder(worker, functions, areas, arguments)
    findings["markdown"] += ["", f"Folder to look into more closely: {how}."]
    if folder is not None:
        findings["summary"] += f"; a closer look at {folder}"
        findings["markdown"] += closer_look(folder, functions)
    worker.finish(findings)


def functions_in(file: SourceFile, tree: ast.Module) -> list[Function]:
    """Return all functions, methods and inner functions of a file."""
    found: list[Function] = []
    none = Function(name="", file=file, line=0, lines=0)
    pending: list[tuple[ast.AST, str, Function, int]] = [(tree, "", none, 0)]
    while pending:  # Not by recursion: generated code may be nested deeper than the interpreter's stack.
        node, prefix, function, depth = pending.pop()
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                name, lines = f"{prefix}{child.name}", (child.end_lineno or child.lineno) - child.lineno + 1
                found.append(Function(name=name, file=file, line=child.lineno, lines=lines))
                pending.append((child, f"{name}.", found[-1], 0))
            elif isinstance(child, ast.ClassDef):
                pending.append((child, f"{prefix}{child.name}.", none, 0))
            elif not isinstance(child, ast.expr):
                # An `elif` is an `if` in the tree, but no level deeper for a reader.
                is_elif = isinstance(node, ast.If) and isinstance(child, ast.If) and child.col_offset == node.col_offset
                deeper = depth + (isinstance(child, _BLOCKS) and not is_elif)
                function.nesting = max(function.nesting, deeper)
                pending.append((child, prefix, function, deeper))
    return found


def by_area(functions: list[Function]) -> Areas:
    """Return the functions of each folder; the folder with the most heavy ones first, then with the longest."""
    areas: Areas = {}
    for one in functions:
        areas.setdefault(one.file.area, []).append(one)
    return dict(sorted(areas.items(), key=lambda item: -heavy_in(item[1])))


def heavy_in(functions: list[Function]) -> int:
    return sum(one.is_heavy for one in functions)


def findings_of(longest: list[Function], areas: Areas, unparsed: list[str]) -> dict[str, Any]:
    heading = f"Heavy: {LONG_LINES} lines or more, or {DEEP_LEVELS} levels of nesting or more. The longest:"
    rows = [(code(one.name, 60), one.lines, one.nesting, code(where(one))) for one in longest[:TOP]]
    lines = [heading, "", *table(("function", "lines", "nesting", "where"), rows)]
    if unparsed:
        lines += ["", f"{plural(len(unparsed), 'file')} could not be parsed, first {code(unparsed[0])}."]
    summary = "no Python functions found"
    if longest:
        median = plural(median_low(one.lines for one in longest), "line")
        summary = f"{plural(len(longest), 'function')}, median {median}, {heavy_in(longest):,} heavy; the longest is "
        summary += f"{longest[0].name} ({plural(longest[0].lines, 'line')}, {where(longest[0])})"
    profiles = {name: {"heavy": heavy_in(inside), "longest": inside[0].lines} for name, inside in areas.items()}
    return {"summary": summary, "areas": profiles, "markdown": lines}


def where(function: Function) -> str:
    return f"{shown(function.file.relative)}:{function.line}"


def choose_folder(
    worker: Worker, functions: list[Function], areas: Areas, arguments: argparse.Namespace
) -> tuple[str | None, str]:
    """Return the folder to look into more closely, and who chose it."""
    if arguments.focus:
        folder = shown(arguments.focus.removeprefix("./").strip("/")) or "."
        if not any(is_below(one, folder) for one in functions):
            raise WorkerError(f"no functions below the folder {folder}; folders with some: {', '.join(areas)}")
        return folder, "given beforehand"
    if len(areas) < 2:
        return next(iter(areas), None), "the only one with functions" if areas else "there are no functions"
    folders = dict(zip(option_names(list(areas)[:MOST_OPTIONS]), areas, strict=False))
    options = {name: option_label(folder, areas[folder]) for name, folder in folders.items()} | {NONE: "none of them"}
    question = "Which folder to look into more closely?"
    choice, how = worker.ask(question, options, default=next(iter(options)), limit_s=arguments.answer_seconds)
    return folders.get(choice), how


def is_below(function: Function, folder: str) -> bool:
    """Tell whether the function is in the folder; "." has only the files that are in no folder."""
    path = shown(function.file.relative)
    return "/" not in path if folder == "." else path.startswith(f"{folder}/")


def option_names(folders: list[str]) -> list[str]:
    """Return short names to answer with: `agentctl/cli` becomes `agentctl-cli`."""
    names: list[str] = []
    for folder in folders:
        name = re.sub(r"[^A-Za-z0-9]+", "-", folder).strip("-")[:40] or "top"
        while name in {NONE, *names}:
            name += "-2"
        names.append(name)
    return names


def option_label(folder: str, inside: list[Function]) -> str:
    name = "the top folder itself" if folder == "." else folder
    counts = f"{plural(len(inside), 'function')}, {heavy_in(inside)} heavy"
    return f"{name}: {counts}, longest {plural(inside[0].lines, 'line')}"


def closer_look(folder: str, functions: list[Function]) -> list[str]:
    """Return the section on one folder, with its files."""
    inside = [one for one in functions if is_below(one, folder)]
    files: dict[str, list[Function]] = {}
    for one in inside:
        files.setdefault(one.file.relative, []).append(one)
    rows = [(code(path), len(some), heavy_in(some), some[0].lines) for path, some in files.items()]
    rows.sort(key=lambda row: (-row[2], -row[3], row[0]))
    counted = f"{plural(len(inside), 'function')} in {plural(len(files), 'file')}:"
    lines = table(("file", "functions", "heavy", "longest"), rows[:TOP])
    return ["", f"### A closer look: {code(folder)}", "", counted, "", *lines]


if __name__ == "__main__":
    parser = argument_parser(__doc__)
    parser.add_argument("--focus", default="", help="the folder to look into more closely, without asking")
    parser.add_argument("--answer-seconds", type=float, default=120, help="how long the question waits")
    run("functions", work, parser)
