"""Survey: how large the tree is, in which languages, and which files are the largest.

Folders of dependencies, caches and build products are not entered, generated files are counted apart;
both are told.
"""

from __future__ import annotations

import argparse
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Any

import markdown
from languages import language_of
from markdown import code, plural
from source_tree import SourceFile, Tree, area, is_generated, shown, walk
from worker import Worker, argument_parser, run


@dataclass(kw_only=True, slots=True)
class Count:
    files: int = 0
    lines: int = 0
    blank: int = 0
    bytes: int = 0

    def add(self, file: SourceFile, text: str) -> None:
        lines = lines_of(text)
        self.files += 1
        self.lines += len(lines)
        self.blank += sum(1 for line in lines if not line.strip())
        self.bytes += file.size_bytes

    def as_json(self) -> dict[str, int]:
        return {"files": self.files, "lines": self.lines, "blank": self.blank, "bytes": self.bytes}


@dataclass(kw_only=True, slots=True)
class Size:
    languages: defaultdict[str, Count] = field(default_factory=lambda: defaultdict(Count))
    areas: defaultdict[str, Count] = field(default_factory=lambda: defaultdict(Count))
    generated: Count = field(default_factory=Count)
    not_text: Counter[str] = field(default_factory=Counter)
    lengths: list[tuple[int, SourceFile, str]] = field(default_factory=list)

    def add(self, file: SourceFile, text: str | None) -> None:
        if text is None:
            self.not_text[file.name.rpartition(".")[2].lower() if "." in file.name else "(no extension)"] += 1
        elif is_generated(file, text):
            self.generated.add(file, text)
        else:
            language = language_of(file.name, text)
            self.languages[language].add(file, text)
            self.areas[area(file.relative)].add(file, text)
            self.lengths.append((len(lines_of(text)), file, language))


def lines_of(text: str) -> list[str]:
    """Lines as git and editors number them: `str.splitlines` also ends them at form feeds and the like."""
    return text.removesuffix("\n").split("\n") if text else []


def work(worker: Worker, arguments: argparse.Namespace) -> None:
    tree = walk(arguments.path, lambda found: worker.progress(0, f"listing: {plural(found, 'file')}"))
    size = Size()
    for file in worker.each(tree.files, "counting"):
        size.add(file, tree.text(file))
    worker.finish(findings_of(tree, size, arguments.top))


def findings_of(tree: Tree, size: Size, top: int) -> dict[str, Any]:
    by_lines = sorted(size.languages.items(), key=lambda item: (-item[1].lines, item[0]))
    longest = sorted(size.lengths, key=lambda item: (-item[0], item[1].relative))[:top]
    heaviest = sorted(tree.files, key=lambda file: (-file.size_bytes, file.relative))[:top]
    findings: dict[str, Any] = {
        "path": shown(tree.root, 4096),
        "files": len(tree.files),
        "bytes": sum(file.size_bytes for file in tree.files),
        "lines": sum(count.lines for count in size.languages.values()),
        "textFiles": sum(count.files for count in size.languages.values()),
        "languages": {language: count.as_json() for language, count in by_lines},
        "generated": size.generated.as_json(),
        "notText": dict(size.not_text.most_common(top)),
        "longestFiles": [
            {"path": shown(file.relative), "lines": lines, "language": language} for lines, file, language in longest
        ],
        "largestFiles": [{"path": shown(file.relative), "bytes": file.size_bytes} for file in heaviest],
        "areas": {shown(name): count.as_json() for name, count in sorted(size.areas.items())},
        **tree.remarks(),
    }
    main = ", ".join(language for language, _ in by_lines[:3])
    findings["summary"] = (
        f"{plural(findings['lines'], 'line')} in {plural(findings['textFiles'], 'text file')}"
        f" of {plural(findings['files'], 'file')}" + (f"; mostly {main}" if main else "")
    )
    findings["markdown"] = section(findings, top)
    return findings


def section(findings: dict[str, Any], top: int) -> list[str]:
    languages = list(findings["languages"].items())
    rows = [
        (language, count["files"], count["lines"], count["blank"], share(count["lines"], findings["lines"]))
        for language, count in languages[:top]
    ]
    lines = markdown.table(("language", "files", "lines", "blank", "share"), rows)
    if len(languages) > top:
        rest = sum(count["lines"] for _, count in languages[top:])
        lines += ["", f"{plural(len(languages) - top, 'more language')} with {plural(rest, 'line')}."]
    longest = [(code(one["path"]), one["lines"], one["language"]) for one in findings["longestFiles"]]
    lines += ["", "Longest files:", "", *(markdown.table(("file", "lines", "language"), longest) or ["none"])]
    largest = [(code(one["path"]), one["bytes"]) for one in findings["largestFiles"]]
    lines += ["", "Largest files:", "", *(markdown.table(("file", "bytes"), largest) or ["none"])]
    generated = findings["generated"]
    if generated["files"]:
        told = f"{plural(generated['files'], 'generated file')} with {plural(generated['lines'], 'line')}"
        lines += ["", f"Counted apart: {told}."]
    if findings["notText"]:
        kinds = ", ".join(f"{number:,} {code(kind)}" for kind, number in findings["notText"].items())
        lines += ["", f"Without lines, by extension: {kinds}."]
    return [*lines, *markdown.remarks(findings)]


def share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "-"


if __name__ == "__main__":
    run("size", work, argument_parser(__doc__))
