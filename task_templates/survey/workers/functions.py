"""Survey: the longest and the most deeply nested functions, and one folder more closely.

Python is read from its syntax tree, brace languages by their braces, others by their indentation.
A person may choose the folder to look into more closely; without an answer it is the one with the most
heavy functions.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter
from typing import Any

import brace_functions
import indented_functions
import markdown
import python_functions
from languages import language_of
from markdown import code, plural
from measures import DEEP_LEVELS, LONG_LINES, Located, Measure, deepest, longest, most_branching, profile
from source_tree import SourceFile, Tree, area, is_generated, shown, walk
from worker import Answer, Worker, WorkerError, argument_parser, positive, run

MOST_OPTIONS = 6
NONE = "none"


def work(worker: Worker, arguments: argparse.Namespace) -> None:
    tree = walk(arguments.path, lambda found: worker.progress(0, f"listing: {plural(found, 'file')}"))
    functions: list[Located] = []
    unparsed: list[str] = []
    for file in worker.each(tree.files, "measuring", 0, 90):
        functions += functions_of(tree, file, unparsed)
    findings = findings_of(tree, functions, unparsed, arguments.top)
    worker.save(findings, complete=False)  # what is known stays, if the question is never answered
    folder, how = choose_folder(worker, functions, arguments)
    if folder is not None:
        findings["closer"] = closer_look(folder, how, functions, arguments.top)
        findings["markdown"] += closer_section(findings["closer"])
        findings["summary"] += f"; a closer look at {folder}"
    else:
        findings["markdown"] += ["", f"No folder was looked into more closely: {how}."]
    worker.finish(findings)


def functions_of(tree: Tree, file: SourceFile, unparsed: list[str]) -> list[Located]:
    """All functions of one file; none where the language has none that can be found."""
    language = language_of(file.name)
    if "." in file.name and not is_measured(language):
        return []  # no need to read it: the extension has told
    text = tree.text(file)
    if text is None or is_generated(file, text):
        return []
    language = language_of(file.name, text)
    path = shown(file.relative)
    found = measures_of(text, language) if is_measured(language) else []
    if language == "Python" and any(one.method != "ast" for one in found):
        unparsed.append(path)
    return [Located(path=path, area=shown(area(file.relative)), language=language, measure=one) for one in found]


def is_measured(language: str) -> bool:
    return language in brace_functions.FAMILIES or language in indented_functions.HEADERS


def measures_of(text: str, language: str) -> list[Measure]:
    if language == "Python":
        try:
            return python_functions.measure(text)
        except python_functions.NOT_PARSED:
            return indented_functions.measure(text, language)
    if language in brace_functions.FAMILIES:
        return brace_functions.measure(text, language)
    return indented_functions.measure(text, language)


def findings_of(tree: Tree, functions: list[Located], unparsed: list[str], top: int) -> dict[str, Any]:
    findings: dict[str, Any] = {
        "path": shown(tree.root, 4096),
        **profile(functions),
        "longLines": LONG_LINES,
        "deepLevels": DEEP_LEVELS,
        "languages": dict(Counter(one.language for one in functions).most_common()),
        "methods": dict(Counter(one.measure.method for one in functions).most_common()),
        "longest": [one.as_json() for one in longest(functions)[:top]],
        "deepest": [one.as_json() for one in deepest(functions)[:top] if one.measure.nesting],
        "areas": {name: profile(inside) for name, inside in by_area(functions).items()},
        "notParsed": unparsed,
        **tree.remarks(),
    }
    findings["summary"] = summary_of(findings)
    findings["markdown"] = section(findings)
    return findings


def by_area(functions: list[Located]) -> dict[str, list[Located]]:
    """The heaviest first: most heavy functions, then most lines."""
    grouped: dict[str, list[Located]] = {}
    for one in functions:
        grouped.setdefault(one.area, []).append(one)

    def weight(item: tuple[str, list[Located]]) -> tuple[int, int, str]:
        name, inside = item
        return -sum(one.is_heavy for one in inside), -sum(one.measure.lines for one in inside), name

    return dict(sorted(grouped.items(), key=weight))


def summary_of(findings: dict[str, Any]) -> str:
    if not findings["functions"]:
        return "no functions found"
    first = findings["longest"][0]
    return (
        f"{plural(findings['functions'], 'function')}, median {findings['medianLines']} lines,"
        f" {findings['heavy']:,} heavy;"
        f" the longest is {first['name']} ({first['lines']:,} lines, {first['path']}:{first['line']})"
    )


def section(findings: dict[str, Any]) -> list[str]:
    heading = f"Heavy: {LONG_LINES} lines or more, or {DEEP_LEVELS} levels of nesting or more."
    lines = [heading, "", "Longest:", "", *(function_table(findings["longest"]) or ["none"])]
    lines += ["", "Most deeply nested:", "", *(function_table(findings["deepest"]) or ["none"])]
    estimated = sum(number for method, number in findings["methods"].items() if method != "ast")
    if estimated:
        lines += ["", f"{plural(estimated, 'function')} estimated from braces or indentation."]
    if unparsed := findings["notParsed"]:
        lines += ["", f"Not Python of today: {plural(len(unparsed), 'file')}, first {code(unparsed[0])}."]
    return [*lines, *markdown.remarks(findings)]


def function_table(functions: list[dict[str, Any]]) -> list[str]:
    rows = [
        (
            code(one["name"], 60),
            one["lines"],
            one["nesting"],
            one["branches"],
            code(f"{one['path']}:{one['line']}"),
        )
        for one in functions
    ]
    return markdown.table(("function", "lines", "nesting", "branches", "where"), rows)


def choose_folder(worker: Worker, functions: list[Located], arguments: argparse.Namespace) -> tuple[str | None, str]:
    """The folder to look into more closely, and who chose it."""
    if arguments.focus:
        return given_folder(arguments.focus, functions), "given beforehand"
    areas = by_area(functions)
    if len(areas) <= 1:
        return next(iter(areas), None), "the only folder with functions" if areas else "there are no functions"
    folders = dict(zip(option_ids(list(areas)[:MOST_OPTIONS]), areas, strict=False))
    options = {identifier: option_label(folder, areas[folder]) for identifier, folder in folders.items()}
    worker.progress(90, "waiting for an answer", in_any_case=True)
    answer: Answer = worker.ask(
        "Which folder to look into more closely?",
        {**options, NONE: "none of them"},
        default=next(iter(options)),
        deadline_s=arguments.answer_seconds,
    )
    return folders.get(answer.choice), answer.how


def given_folder(focus: str, functions: list[Located]) -> str:
    folder = focus.strip("/").removeprefix("./") or "."
    if not any(is_below(one.path, folder) for one in functions):
        raise WorkerError(f"no functions below the folder {shown(focus)}: give one of {', '.join(by_area(functions))}")
    return folder


def option_ids(folders: list[str]) -> list[str]:
    """Short names to answer with: `agentctl/cli` becomes `agentctl-cli`."""
    identifiers: list[str] = []
    for folder in folders:
        plain = re.sub(r"[^A-Za-z0-9]+", "-", folder).strip("-")[:40] or "top"
        identifier, number = plain, 2
        while identifier in (NONE, *identifiers):
            identifier, number = f"{plain}-{number}", number + 1
        identifiers.append(identifier)
    return identifiers


def option_label(folder: str, inside: list[Located]) -> str:
    facts = profile(inside)
    name = "the top folder itself" if folder == "." else shown(folder, 60)
    many = plural(facts["functions"], "function")
    return f"{name}: {many}, {facts['heavy']} heavy, longest {facts['longestLines']} lines"


def is_below(path: str, folder: str) -> bool:
    """Whether the path is in the folder; "." are the files of no folder, as among the areas."""
    return "/" not in path if folder == "." else path.startswith(f"{folder}/")


def closer_look(folder: str, how: str, functions: list[Located], top: int) -> dict[str, Any]:
    """All functions of one folder: by file, by length, by branches."""
    inside = [one for one in functions if is_below(one.path, folder)]
    files: dict[str, list[Located]] = {}
    for one in inside:
        files.setdefault(one.path, []).append(one)
    rows = [
        {"path": path, "lines": sum(one.measure.lines for one in some), **profile(some)} for path, some in files.items()
    ]
    return {
        "folder": folder,
        "how": how,
        **profile(inside),
        "files": sorted(rows, key=lambda row: (-row["heavy"], -row["longestLines"], row["path"]))[:top],
        "filesInAll": len(files),
        "lengths": length_classes(inside),
        "mostBranching": [one.as_json() for one in most_branching(inside)[:top] if one.measure.branches],
    }


def length_classes(functions: list[Located]) -> dict[str, int]:
    bounds = [(1, 10), (11, 25), (26, 49), (50, 99), (100, None)]
    return {
        f"{low} to {high}" if high else f"{low} and more": sum(
            low <= one.measure.lines <= (high or one.measure.lines) for one in functions
        )
        for low, high in bounds
    }


def closer_section(closer: dict[str, Any]) -> list[str]:
    lines = ["", f"### A closer look: {code(closer['folder'])}", "", f"Folder: {closer['how']}."]
    lines += [f"{plural(closer['functions'], 'function')} in {plural(closer['filesInAll'], 'file')}.", ""]
    lines += markdown.table(("lines of a function", "functions"), closer["lengths"].items())
    rows = [
        (
            code(one["path"]),
            one["functions"],
            one["heavy"],
            one["medianLines"],
            one["longestLines"],
            one["deepestNesting"],
        )
        for one in closer["files"]
    ]
    lines += ["", *markdown.table(("file", "functions", "heavy", "median lines", "longest", "deepest"), rows)]
    lines += ["", "Most branches:", "", *(function_table(closer["mostBranching"]) or ["none"])]
    return lines


if __name__ == "__main__":
    arguments = argument_parser(__doc__)
    arguments.add_argument("--focus", default="", help="the folder to look into more closely, without asking")
    arguments.add_argument(
        "--answer-seconds", type=positive, default=120, help="how long the question waits (default: 120)"
    )
    run("functions", work, arguments)
