"""What JavaScript and TypeScript projects declare (package.json) and import."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from code_text import strings_apart
from ecosystem import DEVELOPMENT, RUN, Declared, Imported, ManifestError, ancestors
from source_tree import SourceFile, Tree, is_generated

EXTENSIONS = (".js", ".jsx", ".mjs", ".cjs", ".ts", ".tsx", ".mts", ".cts", ".vue", ".svelte")
BUILT_IN = {
    "assert", "async_hooks", "buffer", "child_process", "cluster", "console", "constants", "crypto",
    "dgram", "diagnostics_channel", "dns", "domain", "events", "fs", "http", "http2", "https", "inspector",
    "module", "net", "os", "path", "perf_hooks", "process", "punycode", "querystring", "readline", "repl",
    "stream", "string_decoder", "sys", "test", "timers", "tls", "trace_events", "tty", "url", "util", "v8",
    "vm", "wasi", "worker_threads", "zlib", "bun", "deno", "electron",
}  # fmt: skip
_KINDS = {
    "dependencies": RUN,
    "peerDependencies": RUN,
    "optionalDependencies": RUN,
    "devDependencies": DEVELOPMENT,
}
_IMPORT = re.compile(r'\bfrom\s*"(\d+)"|\bimport\s*"(\d+)"|\b(?:require(?:\.resolve)?|import)\s*\(\s*"(\d+)"\s*[,)]')
_REFERENCE = re.compile(r"^///\s*<reference\s+types=[\"']([^\"'\n]+)", re.MULTILINE)
_PACKAGE = re.compile(r"(?:@[a-z0-9~-][\w.~-]*/)?[a-z0-9~_-][\w.~-]*(?:/.*)?$", re.IGNORECASE)


class Script:
    name = "JavaScript and TypeScript"

    def __init__(self, tree: Tree) -> None:
        stems = {file.relative.partition(".")[0] if "." in file.name else file.relative for file in tree.files}
        self._paths = stems | {folder for file in tree.files for folder in ancestors(file.folder) if folder}
        self._own: set[str] = set()
        for file in tree.files:
            if file.name == "package.json":
                self._own.add(_own_name(tree.text(file)))

    def is_manifest(self, file: SourceFile) -> bool:
        return file.name == "package.json"

    def declared(self, file: SourceFile, text: str) -> Iterator[Declared]:
        content = _object(text)
        elsewhere = json.dumps({key: value for key, value in content.items() if key not in {*_KINDS, "name"}})
        for section, kind in _KINDS.items():
            packages = content.get(section, {})
            if not isinstance(packages, dict):
                raise ManifestError(f"{section} is no object")
            for name in packages:
                # Tools are run by their scripts or named in a section of their own (`eslintConfig`, `jest`).
                used = re.search(rf"(?<![\w@/-]){re.escape(name)}(?![\w-])", elsewhere)
                yield Declared(
                    name=name,
                    kind=kind,
                    manifest=file.relative,
                    project=file.folder,
                    used_by="package.json" if used else "",
                )

    def is_source(self, file: SourceFile) -> bool:
        return file.name.endswith(EXTENSIONS)

    def imported(self, file: SourceFile, text: str) -> set[Imported]:
        if is_generated(file, text):
            return set()
        bare, strings = strings_apart(text, "script")
        names = {strings[int(next(filter(None, groups)))] for groups in _IMPORT.findall(bare)}
        names.update(_REFERENCE.findall(text))
        return {Imported(name=name) for name in names if _PACKAGE.match(name)}

    def is_standard(self, name: str) -> bool:
        return name.startswith(("node:", "bun:")) or name.partition("/")[0] in BUILT_IN

    def is_local(self, name: str, folder: str) -> bool:
        """A path from a source folder (`baseUrl`)."""
        if name.startswith("@") or "/" not in name:
            return False
        stem = name.partition(".")[0]
        starts = [f"{above}/" if above else "" for above in ancestors(folder)]
        return any(f"{start}{source}{stem}" in self._paths for start in starts for source in ("", "src/", "app/"))

    def is_own(self, name: str) -> bool:
        return package_of(name) in self._own

    def provides(self, declared: str, imported: str) -> bool:
        package = package_of(imported)
        return declared in (package, "@types/" + package.removeprefix("@").replace("/", "__"))

    def shown_name(self, imported: str) -> str:
        return package_of(imported)


def package_of(name: str) -> str:
    parts = name.split("/")
    return "/".join(parts[:2]) if name.startswith("@") else parts[0]


def _own_name(text: str | None) -> str:
    try:
        return str(_object(text or "{}").get("name", ""))
    except ManifestError:
        return ""


def _object(text: str) -> dict[str, Any]:
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as problem:
        raise ManifestError(f"not understood: {problem}") from problem
    if not isinstance(content, dict):
        raise ManifestError("not an object")
    return content
