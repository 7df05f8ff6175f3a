"""What Go modules (go.mod) and Rust crates (Cargo.toml) declare and import."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from typing import Any

from code_text import strings_apart, without_comments_and_strings
from ecosystem import BUILD, DEVELOPMENT, RUN, Declared, Imported, ManifestError
from source_tree import SourceFile, Tree

_REQUIRE = re.compile(r"^\s*require\s*\(([^)]*)\)|^\s*require[ \t]+([^(\n]+)$", re.MULTILINE)
_MODULE = re.compile(r'^\s*module\s+"?([^\s"]+)', re.MULTILINE)
_GO_IMPORT = re.compile(r'^\s*import\s*\(([^)]*)\)|^\s*import\s+((?:[\w.]+\s+)?"[^"\n]+")', re.MULTILINE)
_USE = re.compile(
    r"^\s*(?:pub(?:\([^)]*\))?\s+)?(?:use\s+(?:::)?\{?\s*|extern\s+crate\s+)(?:r#)?([A-Za-z_]\w*)",
    re.MULTILINE,
)
_PATH = re.compile(r"(?<![\w:])([a-z_]\w*)\s*::")
_MOD = re.compile(r"\bmod\s+([a-z_]\w*)")
_RUST_OWN = {"crate", "self", "super", "std", "core", "alloc", "proc_macro", "test"}


class Go:
    name = "Go"

    def __init__(self, tree: Tree) -> None:
        manifests = [file for file in tree.files if file.name == "go.mod"]
        self._modules = [match[1] for file in manifests if (match := _MODULE.search(tree.text(file) or ""))]

    def is_manifest(self, file: SourceFile) -> bool:
        return file.name == "go.mod"

    def declared(self, file: SourceFile, text: str) -> Iterator[Declared]:
        for block, single in _REQUIRE.findall(text):
            for line in (block or single).split("\n"):
                words = line.split()
                if len(words) >= 2 and not words[0].startswith("//"):
                    # What others need is listed too; nobody here is expected to import it.
                    kind = BUILD if "// indirect" in line else RUN
                    yield Declared(name=words[0].strip('"'), kind=kind, manifest=file.relative, project=file.folder)

    def is_source(self, file: SourceFile) -> bool:
        return file.name.endswith(".go")

    def imported(self, file: SourceFile, text: str) -> set[Imported]:  # noqa: ARG002
        bare, strings = strings_apart(text, "go")
        numbers = re.findall(r'"(\d+)"', " ".join("".join(many) for many in _GO_IMPORT.findall(bare)))
        return {Imported(name=strings[int(number)]) for number in numbers}

    def is_standard(self, name: str) -> bool:
        return "." not in name.partition("/")[0]

    def is_local(self, name: str, folder: str) -> bool:  # noqa: ARG002
        return name.startswith(".")

    def is_own(self, name: str) -> bool:
        return any(self.provides(module, name) for module in self._modules)

    def provides(self, declared: str, imported: str) -> bool:
        return imported == declared or imported.startswith(f"{declared}/")

    def shown_name(self, imported: str) -> str:
        return "/".join(imported.split("/")[:3])


class Rust:
    name = "Rust"

    def __init__(self, tree: Tree) -> None:
        self._modules = set(_RUST_OWN)
        self._crates: set[str] = set()
        for file in tree.files:
            if self.is_source(file):
                self._modules.update(_MOD.findall(tree.text(file) or ""))
            elif self.is_manifest(file):
                self._crates.update(_crate_names(tree.text(file) or ""))

    def is_manifest(self, file: SourceFile) -> bool:
        return file.name == "Cargo.toml"

    def declared(self, file: SourceFile, text: str) -> Iterator[Declared]:
        try:
            content = tomllib.loads(text)
            # Those of the workspace are used by its members, which name them again.
            for table in [content, *content.get("target", {}).values()]:
                for section, kind in (
                    ("dependencies", RUN),
                    ("dev-dependencies", DEVELOPMENT),
                    ("build-dependencies", BUILD),
                ):
                    for name in table.get(section, {}):
                        yield Declared(name=name, kind=kind, manifest=file.relative, project=file.folder)
        except (tomllib.TOMLDecodeError, AttributeError) as problem:
            raise ManifestError(f"not understood: {problem}") from problem

    def is_source(self, file: SourceFile) -> bool:
        return file.name.endswith(".rs")

    def imported(self, file: SourceFile, text: str) -> set[Imported]:  # noqa: ARG002
        bare = without_comments_and_strings(text, "rust")
        used = {name for name in _USE.findall(bare) if name[0].islower() or name[0] == "_"}
        certain = {Imported(name=name) for name in used}
        return certain | {Imported(name=name, certain=False) for name in set(_PATH.findall(bare)) - used}

    def is_standard(self, name: str) -> bool:
        return name in _RUST_OWN

    def is_local(self, name: str, folder: str) -> bool:  # noqa: ARG002
        return name in self._modules

    def is_own(self, name: str) -> bool:
        return name in self._crates

    def provides(self, declared: str, imported: str) -> bool:
        return declared.replace("-", "_") == imported

    def shown_name(self, imported: str) -> str:
        return imported


def _crate_names(text: str) -> set[str]:
    try:
        content: dict[str, Any] = tomllib.loads(text)
        names = {content.get("package", {}).get("name"), content.get("lib", {}).get("name")}
    except (tomllib.TOMLDecodeError, AttributeError):
        return set()
    return {name.replace("-", "_") for name in names if isinstance(name, str)}
