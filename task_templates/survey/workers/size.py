"""Survey: how large the tree is, in which languages, and which files are the longest."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterable
from typing import Any

from survey import TOP, SourceFile, Tree, Worker, argument_parser, code, plural, run, table, walk

LANGUAGES = {
    "py": "Python", "pyi": "Python", "js": "JavaScript", "ts": "TypeScript", "tsx": "TypeScript", "c": "C", "h": "C",
    "cc": "C++", "cpp": "C++", "go": "Go", "rs": "Rust", "java": "Java", "rb": "Ruby", "sh": "Shell", "html": "HTML",
    "css": "CSS", "md": "Markdown", "json": "JSON", "jsonl": "JSON", "toml": "TOML", "yaml": "YAML", "yml": "YAML",
}  # fmt: skip


def work(worker: Worker, arguments: argparse.Namespace) -> None:
    tree = walk(arguments.path)
    lines = {}
    for file in worker.each(tree.files, "counting"):
        text = tree.text(file)
        if text is not None:
            lines[file] = text.count("\n") + (text != "" and not text.endswith("\n"))
    worker.finish(findings_of(tree, lines))


def language_of(name: str) -> str:
    """Return the language that the extension tells, or the extension itself."""
    extension = name.rpartition(".")[2].lower() if "." in name[1:] else ""
    return LANGUAGES.get(extension) or (f".{extension}" if extension.isalnum() and len(extension) < 9 else "other")


def findings_of(tree: Tree, lines: dict[SourceFile, int]) -> dict[str, Any]:
    files, languages, areas = Counter[str](), Counter[str](), Counter[str]()
    for file, number in lines.items():
        language = language_of(file.name)
        files[language] += 1
        languages[language] += number
        areas[file.area] += number
    total, ranked = languages.total(), languages.most_common()
    rows = [(name, files[name], count, f"{100 * count / (total or 1):.1f} %") for name, count in ranked]
    longest = sorted(lines.items(), key=lambda item: (-item[1], item[0].relative))[:TOP]
    summary = f"{plural(total, 'line')} in {plural(len(lines), 'text file')} of {plural(len(tree.files), 'file')}"
    main = ", ".join(name for name, count in ranked[:3] if count)
    summary += f"; mostly {main}" if main else ""
    markdown = table(("language", "files", "lines", "share"), rows[:TOP])
    markdown += ["", f"{plural(len(rows) - TOP, 'more language')}."] if len(rows) > TOP else []
    files_table = table(("file", "lines"), [(code(file.relative), number) for file, number in longest])
    markdown += ["", "Longest files:", "", *files_table]
    return {"summary": summary, "areas": dict(areas), "markdown": [*markdown, *remarks(tree)]}


def remarks(tree: Tree) -> list[str]:
    """Say what was not counted."""
    lines = []
    if tree.skipped:
        lines += ["", f"Folders not entered (dependencies, caches, version control): {some(tree.skipped)}."]
    if tree.left_out:
        counts = [f"{kind} ({number:,})" for kind, number in sorted(tree.left_out.items())]
        lines += ["", f"Not read: {', '.join(counts)}."]
    if tree.unreadable:
        lines += ["", f"Unreadable: {some(f'{problem}: {name}' for name, problem in tree.unreadable.items())}."]
    return lines


def some(names: Iterable[str]) -> str:
    first, *others = sorted(names)
    return code(first) + (f" and {len(others):,} more" if others else "")


if __name__ == "__main__":
    run("size", work, argument_parser(__doc__))
