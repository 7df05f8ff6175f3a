"""Survey: what the manifests declare against what the sources import.

Reads Python, JavaScript and TypeScript, Go and Rust; manifests of others are named as not read.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

import markdown
from ecosystem import DEVELOPMENT, RUN, Ecosystem, compare, gather
from markdown import code, plural
from module_dependencies import Go, Rust
from python_dependencies import Python
from script_dependencies import Script
from source_tree import Tree, shown, walk
from worker import Worker, argument_parser, run

NOT_READ = {
    "pom.xml": "Maven", "build.gradle": "Gradle", "build.gradle.kts": "Gradle", "Gemfile": "Ruby",
    "composer.json": "PHP", "mix.exs": "Elixir", "Package.swift": "Swift", "pubspec.yaml": "Dart",
    "build.sbt": "Scala", "conanfile.txt": "C++", "vcpkg.json": "C++", "environment.yml": "Conda",
    "cpanfile": "Perl", "stack.yaml": "Haskell", "deps.edn": "Clojure",
}  # fmt: skip


def work(worker: Worker, arguments: argparse.Namespace) -> None:
    tree = walk(arguments.path, lambda found: worker.progress(0, f"listing: {plural(found, 'file')}"))
    ecosystems: Sequence[Ecosystem] = (Python(tree), Script(tree), Go(tree), Rust(tree))
    compared: dict[str, dict[str, Any]] = {}
    for number, ecosystem in enumerate(ecosystems):
        start, end = 100 * number / len(ecosystems), 100 * (number + 1) / len(ecosystems)
        files = worker.each(tree.files, f"reading {ecosystem.name}", start, end)
        comparison = gather(ecosystem, files, tree.text)
        if comparison.manifests or comparison.usages:
            compared[ecosystem.name] = printable(compare(ecosystem, comparison))
    worker.finish(findings_of(tree, compared, arguments.top))


def printable(value: Any) -> Any:
    """The same findings, with every name fit to be shown."""
    if isinstance(value, str):
        return shown(value)
    if isinstance(value, dict):
        return {shown(key): printable(one) for key, one in value.items()}
    return [printable(one) for one in value] if isinstance(value, list) else value


def findings_of(tree: Tree, compared: dict[str, dict[str, Any]], top: int) -> dict[str, Any]:
    others = [{"manifest": shown(one.relative), "of": NOT_READ[one.name]} for one in tree.files if one.name in NOT_READ]
    never = [one for each in compared.values() for one in each["neverImported"] if one["kind"] == RUN]
    undeclared = [one for each in compared.values() for one in each["undeclared"] if not one["optional"]]
    declared = sum(len(each["declared"]) for each in compared.values())
    manifests = sum(len(each["manifests"]) for each in compared.values())
    findings: dict[str, Any] = {
        "path": shown(tree.root, 4096),
        "ecosystems": compared,
        "manifestsNotRead": others,
        "neverImported": len(never),
        "undeclared": len(undeclared),
        **tree.remarks(),
    }
    findings["summary"] = (
        f"{declared:,} declared in {plural(manifests, 'manifest')}; {len(never):,} never imported,"
        f" {len(undeclared):,} imported but not declared"
        if compared
        else "no manifests and no sources of a known ecosystem"
    )
    findings["markdown"] = section(findings, top)
    return findings


def section(findings: dict[str, Any], top: int) -> list[str]:
    lines: list[str] = []
    for name, each in findings["ecosystems"].items():
        lines += ecosystem_section(name, each, top)
    if others := findings["manifestsNotRead"]:
        some = ", ".join(f"{code(one['manifest'])} ({one['of']})" for one in others[:top])
        lines += ["", f"Not compared, their kind is not read: {plural(len(others), 'manifest')}: {some}."]
    return [*(lines[1:] or ["Nothing to compare."]), *markdown.remarks(findings)]


def ecosystem_section(name: str, each: dict[str, Any], top: int) -> list[str]:
    manifests = ", ".join(code(one) for one in each["manifests"][:4]) or "none"
    more = f" and {len(each['manifests']) - 4} more" if len(each["manifests"]) > 4 else ""
    lines = ["", f"### {name}", "", f"Manifests: {manifests}{more}."]
    lines += [f"{len(each['declared']):,} declared, {len(each['imported']):,} imported from outside.", ""]
    for path, problem in list(each["problems"].items())[:top]:
        lines += [f"{code(path)}: {problem}.", ""]
    by_kind = {kind: [one for one in each["neverImported"] if one["kind"] == kind] for kind in (RUN, DEVELOPMENT)}
    rows = [(code(one["name"]), code(one["manifest"])) for one in by_kind[RUN][:top]]
    lines += ["Declared, never imported:" + told(len(by_kind[RUN]), top), ""]
    lines += markdown.table(("name", "manifest"), rows)
    if by_kind[DEVELOPMENT]:
        names = ", ".join(code(one["name"]) for one in by_kind[DEVELOPMENT][: 2 * top])
        lines += ["", f"For development, never imported (tools are run, not imported): {names}."]
    missing = each["undeclared"]
    found = [
        (code(one["name"]), one["files"], code(one["example"]), "optional" if one["optional"] else "")
        for one in missing[:top]
    ]
    lines += ["", "Imported, not declared:" + told(len(missing), top), ""]
    return lines + markdown.table(("name", "files", "first in", "remark"), found)


def told(number: int, top: int) -> str:
    return f" {number:,}" + (f", the first {top}" if number > top else "") if number else " none"


if __name__ == "__main__":
    run("dependencies", work, argument_parser(__doc__))
