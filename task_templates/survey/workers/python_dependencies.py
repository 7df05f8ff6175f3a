"""What Python projects declare (pyproject, setup.py, setup.cfg, requirements, Pipfile) and import."""

from __future__ import annotations

import ast
import configparser
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator
from functools import cache
from importlib import metadata
from typing import Any

from ecosystem import BUILD, DEVELOPMENT, RUN, Declared, Imported, ManifestError, ancestors
from python_functions import NOT_PARSED, parse
from source_tree import SourceFile, Tree

#: Distributions whose module is called something that cannot be guessed from their name.
MODULES_OF = {
    "pyyaml": ["yaml"], "pillow": ["PIL"], "beautifulsoup4": ["bs4"], "scikit-learn": ["sklearn"],
    "scikit-image": ["skimage"], "opencv-python": ["cv2"], "opencv-python-headless": ["cv2"],
    "attrs": ["attr", "attrs"], "protobuf": ["google.protobuf"], "python-dotenv": ["dotenv"],
    "pyjwt": ["jwt"], "msgpack-python": ["msgpack"], "mysqlclient": ["MySQLdb"], "gitpython": ["git"],
    "psycopg2-binary": ["psycopg2"], "psycopg-binary": ["psycopg"],
    "setuptools": ["setuptools", "pkg_resources"], "pyzmq": ["zmq"], "pycryptodome": ["Crypto"],
    "python-magic": ["magic"], "faiss-cpu": ["faiss"], "pywin32": ["win32api", "win32con"],
    "djangorestframework": ["rest_framework"], "grpcio": ["grpc"], "discord.py": ["discord"],
    "typing-extensions": ["typing_extensions"], "pyopenssl": ["OpenSSL"], "ipython": ["IPython"],
    "biopython": ["Bio"], "pyserial": ["serial"], "pyusb": ["usb"], "toml": ["toml"], "web.py": ["web"],
    "apache-airflow": ["airflow"], "langchain-core": ["langchain_core"], "fonttools": ["fontTools"],
}  # fmt: skip

_IMPORTERS = ("__import__", "import_module", "importorskip")
_ABSENCE = {"ImportError", "ModuleNotFoundError", "Exception"}
_NOT_INSTALLED = {"__main__", "_typeshed"}  # the program itself; what only type checkers have
_SOURCE_FOLDERS = ("", "src/", "lib/", "python/", "tests/")
_REQUIREMENT = re.compile(r"\s*([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)\s*(?:\[|[<>=!~;@,(\s]|$)")
_EGG = re.compile(r"#egg=([\w.-]+)")
_REQUIREMENTS_FILE = re.compile(r"requirements?[\w.-]*\.(?:txt|in)$|[\w.-]*[-_.]requirements\.(?:txt|in)$")
_DEVELOPMENT_WORD = re.compile(
    r"dev|test|doc|lint|ci|type|format|bench|build|release|style|check|mypy|cov", re.IGNORECASE
)
_PROJECT_FILES = ("pyproject.toml", "setup.py", "setup.cfg", "Pipfile")
_IMPORT_LINE = re.compile(
    r"^[ \t]*(?:from[ \t]+([A-Za-z_][\w.]*)[ \t]+import|import[ \t]+([A-Za-z_][\w.]*))", re.MULTILINE
)


class Python:
    name = "Python"

    def __init__(self, tree: Tree) -> None:
        files = [file for file in tree.files if self.is_source(file) or file.name.endswith((".pyx", ".so"))]
        self._projects = {file.folder for file in tree.files if file.name in _PROJECT_FILES}
        paths = {path for file in files for path in _module_paths(file.relative)}
        self._modules = paths - self._projects  # a project's own folder is not the package of the same name
        self._names = {module.rpartition("/")[2] for module in self._modules}

    def is_manifest(self, file: SourceFile) -> bool:
        return file.name in _PROJECT_FILES or _is_requirements(file)

    def declared(self, file: SourceFile, text: str) -> Iterator[Declared]:
        project = file.folder
        if _is_requirements(file):  # these serve the project around them: requirements/dev.txt, docs/requirements.txt
            project = next((folder for folder in ancestors(file.folder) if folder in self._projects), "")
        for name, kind in _read(file, text):
            yield Declared(name=name, kind=kind, manifest=file.relative, project=project)

    def is_source(self, file: SourceFile) -> bool:
        return file.name.endswith((".py", ".pyi", ".pyw"))

    def imported(self, file: SourceFile, text: str) -> Iterable[Imported]:
        if file.name == "setup.py":
            return []  # needs what builds it, which is declared elsewhere or taken for granted
        try:
            return set(_imports(parse(text), dynamic=any(one in text for one in _IMPORTERS)))
        except NOT_PARSED:
            return {Imported(name=one[0] or one[1]) for one in _IMPORT_LINE.findall(text)}

    def is_standard(self, name: str) -> bool:
        return _top(name) in sys.stdlib_module_names or _top(name) in _NOT_INSTALLED

    def is_local(self, name: str, folder: str) -> bool:
        """Whether a module answers to the name: beside the file, above it, or in a source folder there."""
        top = _top(name)
        if top not in self._names:
            return False
        starts = [f"{above}/" if above else "" for above in ancestors(folder)]
        return any(f"{start}{source}{top}" in self._modules for start in starts for source in _SOURCE_FOLDERS)

    def is_own(self, name: str) -> bool:
        """Somewhere else in the tree, and no distribution is known by that name: some path leads there."""
        return _top(name) in self._names and _top(name).lower() not in _known_modules()

    def provides(self, declared: str, imported: str) -> bool:
        distribution = normalised(declared)
        joined = imported.replace(".", "-").replace("_", "-").lower() + "-"
        if any(joined.startswith(f"{one}-") for one in _guessed_modules(distribution)):
            return True
        return any(imported == module or imported.startswith(f"{module}.") for module in _modules_of(distribution))

    def shown_name(self, imported: str) -> str:
        return _top(imported)


def normalised(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _top(name: str) -> str:
    return name.partition(".")[0]


def _module_paths(relative: str) -> Iterator[str]:
    stem, _, name = relative.rpartition("/")
    yield f"{stem}/{name.partition('.')[0]}".lstrip("/")
    yield from (folder for folder in ancestors(stem) if folder)


def _guessed_modules(distribution: str) -> set[str]:
    bare = distribution.removeprefix("python-").removesuffix("-python").removesuffix("-py").removeprefix("types-")
    return {distribution, bare, bare.removeprefix("py") or bare, bare.removesuffix("-stubs")}


def _modules_of(distribution: str) -> list[str]:
    return MODULES_OF.get(distribution, []) + _installed().get(distribution, [])


@cache
def _installed() -> dict[str, list[str]]:
    """The modules of what this interpreter has installed, by distribution."""
    modules: dict[str, list[str]] = {}
    for module, distributions in metadata.packages_distributions().items():
        for distribution in distributions:
            modules.setdefault(normalised(distribution), []).append(module)
    return modules


@cache
def _known_modules() -> frozenset[str]:
    return frozenset(_top(module).lower() for modules in MODULES_OF.values() for module in modules)


def _imports(tree: ast.Module, *, dynamic: bool) -> Iterator[Imported]:
    """All imports; those by a call are found, with `dynamic`, by looking into all expressions too."""
    wanted = (ast.AST,) if dynamic else (ast.stmt, ast.excepthandler, ast.match_case)
    pending: list[tuple[ast.AST, bool]] = [(tree, False)]
    while pending:
        node, optional = pending.pop()
        match node:
            case ast.Import(names=names):
                yield from (Imported(name=alias.name, optional=optional) for alias in names)
            case ast.ImportFrom(module=str(module), names=names, level=0):
                # `from google.cloud import storage`: which distribution it is only the last name tells.
                yield from (Imported(name=f"{module}.{alias.name}", optional=optional) for alias in names)
            case ast.Call(
                func=ast.Name(id=caller) | ast.Attribute(attr=caller),
                args=[ast.Constant(value=str(name)), *_],
            ):
                if caller in _IMPORTERS and name.replace(".", "_").isidentifier() and not name.startswith("."):
                    yield Imported(name=name, optional=optional)
        inside = optional or _provides_for_absence(node)
        pending += [(child, inside) for child in ast.iter_child_nodes(node) if isinstance(child, wanted)]


def _provides_for_absence(node: ast.AST) -> bool:
    match node:
        case ast.If(test=ast.Name(id="TYPE_CHECKING") | ast.Attribute(attr="TYPE_CHECKING")):
            return True
        case ast.Try(handlers=handlers):
            return any(one.type is None or _ABSENCE & _names_in(one.type) for one in handlers)
    return False


def _names_in(expression: ast.expr) -> set[str]:
    return {node.id for node in ast.walk(expression) if isinstance(node, ast.Name)}


def _is_requirements(file: SourceFile) -> bool:
    in_folder = file.folder.rpartition("/")[2] == "requirements" and file.name.endswith((".txt", ".in"))
    return in_folder or _REQUIREMENTS_FILE.match(file.name) is not None


def _read(file: SourceFile, text: str) -> Iterable[tuple[str, str]]:
    """Names and kinds of the dependencies in one manifest."""
    try:
        match file.name:
            case "pyproject.toml":
                return list(_pyproject(tomllib.loads(text)))
            case "Pipfile":
                return list(_pipfile(tomllib.loads(text)))
            case "setup.cfg":
                return list(_setup_cfg(text))
            case "setup.py":
                return list(_setup_py(parse(text)))
    except (tomllib.TOMLDecodeError, configparser.Error, AttributeError, TypeError, *NOT_PARSED) as problem:
        raise ManifestError(f"not understood: {str(problem) or type(problem).__name__}") from problem
    return list(_requirements(file, text))


def _requirements(file: SourceFile, text: str) -> Iterator[tuple[str, str]]:
    kind = DEVELOPMENT if _DEVELOPMENT_WORD.search(f"{file.folder.rpartition('/')[2]}/{file.name}") else RUN
    for line in text.replace("\\\n", " ").split("\n"):
        egg = _EGG.search(line)
        if egg is not None:
            yield egg[1], kind
        elif not line.lstrip().startswith(("-", "#")) and "://" not in line.partition("@")[0]:
            yield from _named([line.partition(" #")[0]], kind)


def _named(requirements: Any, kind: str) -> Iterator[tuple[str, str]]:
    for requirement in requirements or []:
        match = _REQUIREMENT.match(requirement) if isinstance(requirement, str) else None
        if match is not None:
            yield match[1], kind


def _pyproject(content: dict[str, Any]) -> Iterator[tuple[str, str]]:
    project, tool = content.get("project", {}), content.get("tool", {})
    own = normalised(project.get("name", ""))
    yield from _named(project.get("dependencies"), RUN)
    for group, requirements in project.get("optional-dependencies", {}).items():
        kind = DEVELOPMENT if _DEVELOPMENT_WORD.search(group) else RUN
        yield from ((name, kind) for name, kind in _named(requirements, kind) if normalised(name) != own)
    for requirements in content.get("dependency-groups", {}).values():
        yield from _named(requirements, DEVELOPMENT)
    yield from _named(content.get("build-system", {}).get("requires"), BUILD)
    poetry = tool.get("poetry", {})
    yield from ((name, RUN) for name in poetry.get("dependencies", {}) if name != "python")
    for group in [{"dependencies": poetry.get("dev-dependencies", {})}, *poetry.get("group", {}).values()]:
        yield from ((name, DEVELOPMENT) for name in group.get("dependencies", {}))


def _pipfile(content: dict[str, Any]) -> Iterator[tuple[str, str]]:
    yield from ((name, RUN) for name in content.get("packages", {}))
    yield from ((name, DEVELOPMENT) for name in content.get("dev-packages", {}))


def _setup_cfg(text: str) -> Iterator[tuple[str, str]]:
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    parser.read_string(text)
    yield from _named(parser.get("options", "install_requires", fallback="").split("\n"), RUN)
    yield from _named(parser.get("options", "setup_requires", fallback="").split("\n"), BUILD)
    extras = parser["options.extras_require"] if parser.has_section("options.extras_require") else {}
    for extra, requirements in dict(extras).items():
        kind = DEVELOPMENT if _DEVELOPMENT_WORD.search(extra) else RUN
        yield from _named(requirements.split("\n"), kind)


def _setup_py(tree: ast.Module) -> Iterator[tuple[str, str]]:
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    setups = [call for call in calls if ast.unparse(call.func).rpartition(".")[2] == "setup"]
    kinds = {
        "install_requires": RUN,
        "extras_require": RUN,
        "tests_require": DEVELOPMENT,
        "setup_requires": BUILD,
    }
    for keyword in (keyword for call in setups for keyword in call.keywords if keyword.arg in kinds):
        try:
            value = ast.literal_eval(keyword.value)
        except ValueError as problem:
            raise ManifestError(f"{keyword.arg} is computed, not written down") from problem
        for requirements in value.values() if isinstance(value, dict) else [value]:
            yield from _named(
                [requirements] if isinstance(requirements, str) else requirements, kinds[str(keyword.arg)]
            )
