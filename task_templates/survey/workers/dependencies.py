"""Survey: what Python projects declare (pyproject.toml, requirements files) against what the sources import.

The tree is taken as a whole, and doubt counts in its favour: a module whose name is that of a file or folder of the
tree is never missed, and a package is used if any import could mean it.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from importlib import metadata
from typing import Any

from survey import TOP, SourceFile, Tree, Worker, argument_parser, code, parse, plural, run, shown, table, walk

#: Modules that are called differently from their package; for packages that are installed here this is known.
MODULES = {
    "pyyaml": "yaml", "pillow": "PIL", "beautifulsoup4": "bs4", "scikit-learn": "sklearn", "opencv-python": "cv2",
    "attrs": "attr", "pyjwt": "jwt", "gitpython": "git", "protobuf": "google.protobuf", "psycopg2-binary": "psycopg2",
}  # fmt: skip
NOT_READ = ("setup.py", "setup.cfg", "Pipfile", "poetry.lock", "environment.yml")
_DEVELOPMENT = re.compile(r"dev|test|doc|lint|typ|build|bench", re.IGNORECASE)
_REQUIREMENTS_FILE = re.compile(r"(^|/)requirements[^/]*(/[^/]*)?\.txt$")
_REQUIREMENT = re.compile(r"\s*([A-Za-z0-9][\w.-]*)\s*(?:$|[\[<>=!~;@,(#])")


def work(worker: Worker, arguments: argparse.Namespace) -> None:
    tree = walk(arguments.path)
    declared: set[str] = set()
    for_use: dict[str, str] = {}  # With the manifest that declares it, and not for development alone.
    imported: defaultdict[str, set[str]] = defaultdict(set)  # Each module, dotted, with the files that import it.
    remarks: list[str] = []
    for file in worker.each(tree.files, "reading"):
        if file.name in NOT_READ:
            remarks.append(f"{code(file.relative)} is of a kind that is not read.")
        elif file.is_python:
            parsed = parse(tree.text(file) or "")
            for module in imports_in(parsed) if parsed else ():
                imported[module].add(file.relative)
            remarks += [] if parsed else [f"{code(file.relative)} cannot be parsed."]
        elif file.name == "pyproject.toml" or _REQUIREMENTS_FILE.search(file.relative):
            try:
                packages = list(declared_in(file, tree.text(file) or ""))
            except (ValueError, TypeError, AttributeError, RecursionError) as problem:
                remarks.append(f"{code(file.relative)} is not understood: {shown(str(problem))}.")
                continue
            declared |= {name for name, _ in packages}
            for_use |= {name: file.relative for name, is_used in packages if is_used}
    worker.finish(findings_of(tree, declared, for_use, imported, remarks))


def declared_in(file: SourceFile, text: str) -> Iterator[tuple[str, bool]]:
    """Yield the packages that a manifest requires, and whether for use, not for development alone."""
    own, groups = "", [(file.relative, text.split("\n"))]
    if file.name == "pyproject.toml":
        content = tomllib.loads(text)
        project = content.get("project", {})
        if "poetry" in content.get("tool", {}) and "dependencies" not in project:
            raise ValueError("Poetry's own tables are not read")
        own = normal(project.get("name", ""))
        groups = [("", project.get("dependencies", [])), *project.get("optional-dependencies", {}).items()]
        groups += [("development", each) for each in content.get("dependency-groups", {}).values()]
        groups.append(("build", content.get("build-system", {}).get("requires", [])))
    for group, requirements in groups:
        for match in map(_REQUIREMENT.match, map(str, requirements)):
            if match is not None and normal(match[1]) != own:
                yield normal(match[1]), not _DEVELOPMENT.search(group)


def imports_in(tree: ast.Module) -> Iterator[str]:
    pending: list[ast.AST] = [tree]
    while pending:
        node = pending.pop()
        pending += [child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.expr)]
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            # `from google.cloud import storage`: only the last name tells which package it is.
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def normal(name: str) -> str:
    """Return the one form of a package's name, in which a dotted module can be compared with it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def beginnings(packages: set[str]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield each package with what the modules that it may provide begin with, in the normal form."""
    known = defaultdict(list, {name: [module] for name, module in MODULES.items()})
    for module, distributions in metadata.packages_distributions().items():
        for one in distributions:
            known[normal(one)].append(module)
    for name in sorted(packages):
        yield name, tuple(f"{normal(one)}-" for one in (name, name.removeprefix("python-"), *known[name]))


def findings_of(
    tree: Tree, declared: set[str], for_use: dict[str, str], imported: dict[str, set[str]], remarks: list[str]
) -> dict[str, Any]:
    local = {name for file in tree.files for name in (*file.relative.split("/")[:-1], file.name.partition(".")[0])}
    known = local | sys.stdlib_module_names | {"_typeshed", tree.root.rpartition("/")[2]}
    modules = [(module, f"{normal(module)}-") for module in imported]
    never, provided = [], set()
    for name, starts in beginnings(declared):
        used = {module for module, dashed in modules if dashed.startswith(starts)}
        provided |= used
        if name in for_use and not used:
            never.append((code(name), code(for_use[name])))
    missing: defaultdict[str, set[str]] = defaultdict(set)
    for module, files in imported.items():
        if module not in provided and module.partition(".")[0] not in known:
            missing[module.partition(".")[0]] |= files
    rows = [(code(name), len(files), code(min(files))) for name, files in missing.items()]
    rows.sort(key=lambda row: (-row[1], row[0]))
    summary = f"{plural(len(declared), 'package')} declared, {len(never):,} of them for use and never imported; "
    summary += f"{plural(len(rows), 'module')} imported and not declared"
    summary += f" ({plural(len(remarks), 'remark')})" if remarks else ""
    lines = [f"Declared for use, never imported: {len(never):,}", "", *table(("name", "manifest"), never[:TOP]), ""]
    lines += [f"Imported, not declared: {len(rows):,}", "", *table(("module", "files", "first in"), rows[:TOP])]
    lines += [line for remark in remarks[:TOP] for line in ("", remark)]
    return {"summary": summary if declared or imported else "no Python project found", "markdown": lines}


if __name__ == "__main__":
    run("dependencies", work, argument_parser(__doc__))
