"""What the ecosystems have in common: what is declared, what is imported, and how to compare the two."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

from source_tree import SourceFile

RUN, DEVELOPMENT, BUILD = "run", "development", "build"


class ManifestError(Exception):
    """A manifest cannot be read; the message says why."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Declared:
    name: str
    kind: str
    "`run`; `development`: tools of this kind are run, not imported; `build`: used before there is code."
    manifest: str
    project: str
    "The folder that the manifest governs."
    used_by: str = ""
    "Something other than an import that uses it."


@dataclass(frozen=True, kw_only=True, slots=True)
class Imported:
    name: str
    "As written in the source: `os.path`, `@scope/package/file`, `example.com/module/package`."
    certain: bool = True
    "False: perhaps no import at all; it makes a declared name used, but is never missed."
    optional: bool = False
    "Its absence is provided for (`try: import`), or it is for type checkers alone."


@dataclass(kw_only=True, slots=True)
class Usage:
    """One imported name in one folder."""

    imported: Imported
    folder: str
    files: list[str] = field(default_factory=list)


class Ecosystem(Protocol):
    """One language's way to declare and to import."""

    name: str

    def is_manifest(self, file: SourceFile) -> bool: ...
    def declared(self, file: SourceFile, text: str) -> Iterable[Declared]: ...
    def is_source(self, file: SourceFile) -> bool: ...
    def imported(self, file: SourceFile, text: str) -> Iterable[Imported]: ...
    def is_standard(self, name: str) -> bool: ...
    def is_local(self, name: str, folder: str) -> bool:
        """Whether it is the project's own code, so that no declared dependency can be meant."""
        ...

    def is_own(self, name: str) -> bool:
        """Whether another project of this tree provides it: that may be declared, and need not be."""
        ...

    def provides(self, declared: str, imported: str) -> bool: ...
    def shown_name(self, imported: str) -> str: ...


@dataclass(kw_only=True, slots=True)
class Comparison:
    manifests: list[str] = field(default_factory=list)
    declared: list[Declared] = field(default_factory=list)
    usages: dict[tuple[Imported, str], Usage] = field(default_factory=dict)
    problems: dict[str, str] = field(default_factory=dict)


def gather(
    ecosystem: Ecosystem, files: Iterable[SourceFile], text_of: Callable[[SourceFile], str | None]
) -> Comparison:
    """Read all manifests and sources of one ecosystem."""
    comparison = Comparison()
    for file in files:
        manifest, source = ecosystem.is_manifest(file), ecosystem.is_source(file)
        text = text_of(file) if manifest or source else None
        if text is None:
            continue
        if manifest:
            comparison.manifests.append(file.relative)
            try:
                comparison.declared += ecosystem.declared(file, text)
            except ManifestError as problem:
                comparison.problems[file.relative] = str(problem)
        if source:
            for one in ecosystem.imported(file, text):
                usage = comparison.usages.setdefault((one, file.folder), Usage(imported=one, folder=file.folder))
                usage.files.append(file.relative)
    return comparison


def compare(ecosystem: Ecosystem, comparison: Comparison) -> dict[str, Any]:
    """What is declared but never imported, what is imported but not declared."""
    external = [
        usage
        for usage in comparison.usages.values()
        if not ecosystem.is_standard(usage.imported.name) and not ecosystem.is_local(usage.imported.name, usage.folder)
    ]
    never = [one for one in comparison.declared if one.kind != BUILD and not _is_used(ecosystem, one, external)]
    undeclared = _undeclared(ecosystem, comparison, external)
    certain = {usage.imported.name for usage in external if usage.imported.certain}
    return {
        "manifests": comparison.manifests,
        "declared": sorted({one.name for one in comparison.declared}, key=str.lower),
        "imported": sorted({ecosystem.shown_name(name) for name in certain if not ecosystem.is_own(name)}),
        "neverImported": [
            {"name": one.name, "kind": one.kind, "manifest": one.manifest}
            for one in sorted(set(never), key=lambda one: (one.kind != RUN, one.name.lower(), one.manifest))
        ],
        "undeclared": undeclared,
        "problems": comparison.problems,
    }


def _is_used(ecosystem: Ecosystem, declared: Declared, external: list[Usage]) -> bool:
    return bool(declared.used_by) or any(
        is_within(usage.folder, declared.project) and ecosystem.provides(declared.name, usage.imported.name)
        for usage in external
    )


def _undeclared(ecosystem: Ecosystem, comparison: Comparison, external: list[Usage]) -> list[dict[str, Any]]:
    """The names that no manifest above the importing file declares, most used first."""
    found: dict[str, dict[str, Any]] = {}
    for usage in external:
        if (
            not usage.imported.certain
            or ecosystem.is_own(usage.imported.name)
            or _is_declared(ecosystem, usage, comparison.declared)
        ):
            continue
        name = ecosystem.shown_name(usage.imported.name)
        one = found.setdefault(name, {"name": name, "files": set(), "optional": True})
        one["files"].update(usage.files)
        one["optional"] = one["optional"] and usage.imported.optional
    rows = [
        {
            "name": one["name"],
            "files": len(one["files"]),
            "example": min(one["files"]),
            "optional": one["optional"],
        }
        for one in found.values()
    ]
    return sorted(rows, key=lambda row: (row["optional"], -row["files"], row["name"]))


def _is_declared(ecosystem: Ecosystem, usage: Usage, declared: list[Declared]) -> bool:
    return any(
        is_within(usage.folder, one.project) and ecosystem.provides(one.name, usage.imported.name) for one in declared
    )


def is_within(folder: str, project: str) -> bool:
    return not project or folder == project or folder.startswith(f"{project}/")


def ancestors(folder: str) -> Iterator[str]:
    """The folder itself, then all above it; the last is "" (the tree's root)."""
    while folder:
        yield folder
        folder = folder.rpartition("/")[0]
    yield ""
