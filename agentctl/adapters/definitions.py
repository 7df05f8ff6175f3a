"""Finds and reads agent definitions: where they are looked for, in which order, and how a file is read.

The first of a name wins. A file that cannot be read as a definition is left out with a warning: a half-saved file must
not keep the others from working.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any

import agentctl
from agentctl.adapters.clock import monotonic
from agentctl.adapters.files import storage_errors
from agentctl.adapters.known import KnownFiles
from agentctl.adapters.opening import OF_THE_FILE
from agentctl.adapters.personal import config_folder, home_folder
from agentctl.domain.agent.agentspec import FIELDS, AgentSpec, claude_spec, codex_spec, own_spec
from agentctl.domain.agent.permissions import BadValue
from agentctl.errors import UsageError
from agentctl.lean import NamedTuple
from agentctl.world_errors import missing_part, next_step

_SIZE_LIMIT = 256 * 1024
#: YAML is slow to parse; long text belongs in the prompt below.
_FRONT_LIMIT = 16 * 1024
#: The parts of a TOML key; the time that a parser takes grows with their square.
_MOST_PARTS = 200
#: A folder with more files than this, or one that takes longer to read, is not a folder of definitions.
_MOST_FILES, _FOLDER_LIMIT_S = 1000, 10.0


class Origin(StrEnum):
    """Whose a definition is."""

    #: It is in the project's folder: anybody who wrote to the repository may have made it.
    PROJECT = "project"
    #: It is the person's own.
    HOME = "home"
    SHIPPED = "shipped"


class Definition(NamedTuple):
    """A definition, where it comes from, and the digest of its file."""

    spec: AgentSpec
    origin: Origin
    digest: str


class Source(NamedTuple):
    """A folder of definitions."""

    folder: Path
    origin: Origin
    #: own claude codex
    form: str
    #: Files must lie in here, also after links are resolved; None: anywhere.
    within: Path | None = None


class Found(NamedTuple):
    """All definitions, the ones that win first, and warnings about what was left out."""

    definitions: list[Definition]
    warnings: list[str]


def sources(root: Path | None, project: Path | None, environ: Mapping[str, str]) -> list[Source]:
    """Return where definitions are looked for, the ones that win first.

    Args:
        root: The `.agentctl` in use.
        project: The folder that the project's files lie in.
    """
    home = Path(home_folder(environ))
    found = []
    if root is not None and not _same(root.parent, home):
        found.append(Source(root / "agents", Origin.PROJECT, "own", root.parent))
    if project is not None and not _same(project, home):
        found.append(Source(project / ".claude" / "agents", Origin.PROJECT, "claude", project))
        found.append(Source(project / ".codex" / "agents", Origin.PROJECT, "codex", project))
    personal = (
        (home / ".agentctl" / "agents", "own"),
        (Path(config_folder(environ)) / "agents", "own"),
        (Path(environ.get("CLAUDE_CONFIG_DIR") or home / ".claude") / "agents", "claude"),
        (Path(environ.get("CODEX_HOME") or home / ".codex") / "agents", "codex"),
    )
    found += [Source(folder, Origin.HOME, form) for folder, form in personal]
    return [*found, Source(Path(agentctl.__file__).parent / "agents", Origin.SHIPPED, "own")]


def _same(one: Path, other: Path) -> bool:
    return os.path.realpath(one) == os.path.realpath(other)


def read_all(places: Sequence[Source], known: KnownFiles) -> Found:
    """Read every definition of these folders."""
    found = Found([], [])
    for place in places:
        until = monotonic() + _FOLDER_LIMIT_S
        for path in _files(place, found.warnings):
            if monotonic() > until:
                found.warnings.append(f"{path} and the files after it are left out: the folder takes too long to read")
                break
            try:
                found.definitions.append(_read(path, place, known))
            except UsageError as error:
                found.warnings.append(f"{error.message}; the file is left out")
    known.save()
    return found


def _files(place: Source, warnings: list[str]) -> Iterator[Path]:
    ending = ".toml" if place.form == "codex" else ".md"
    try:
        names = sorted(name for name in os.listdir(place.folder) if name.endswith(ending) and not name.startswith("."))
    except (FileNotFoundError, NotADirectoryError) as error:
        if missing_part(error) is not None:
            raise
        return
    except OSError as error:
        warnings.append(f"{place.folder}: {error.strerror}; the folder is left out")
        return
    if len(names) > _MOST_FILES:
        warnings.append(f"{place.folder}: {len(names)} files; only the first {_MOST_FILES} are read")
    yield from (place.folder / name for name in names[:_MOST_FILES])


def _read(path: Path, place: Source, known: KnownFiles) -> Definition:
    data = _content(path, place.within)
    with contextlib.suppress(KeyError, TypeError):  # The cached value is not a definition.
        return _definition(place, known.said(place.form, path, data) or {})
    says = _understood(path, place.form, data)
    known.keep(place.form, path, data, says)
    return _definition(place, says)


def _definition(place: Source, says: Mapping[str, Any]) -> Definition:
    return Definition(AgentSpec(**says["spec"]), place.origin, str(says["sha256"]))


def _understood(path: Path, form: str, data: bytes) -> dict[str, Any]:
    """Return the content of a definition in the form that is cached."""
    import hashlib  # 5 ms, with OpenSSL.

    spec = {"own": _read_own, "claude": _read_claude, "codex": _read_codex}[form](path, data)
    return {"spec": {name: getattr(spec, name) for name in FIELDS}, "sha256": hashlib.sha256(data).hexdigest()}


def _content(path: Path, within: Path | None) -> bytes:
    """Return the content of a plain file of bounded size; refuse a link that leads out of `within`."""
    if within is not None and not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(within)):
        raise UsageError(f"{path}:1: it is a link that leads out of {within}")
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)  # a FIFO would block forever
        try:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                raise UsageError(f"{path}:1: it is not a plain file")
            with os.fdopen(fd, "rb", closefd=False) as file:
                data = file.read(_SIZE_LIMIT + 1)
        finally:
            os.close(fd)
    except OSError as error:
        if error.errno in OF_THE_FILE or next_step(error) is None:
            raise UsageError(f"{path}:1: {error.strerror}") from error
        with storage_errors(path, "read"):  # Another definition of that name would count instead of it.
            raise
    if len(data) > _SIZE_LIMIT:
        raise UsageError(f"{path}:1: it is larger than {_SIZE_LIMIT} bytes")
    return data


def _text(path: Path, data: bytes) -> str:
    try:
        return data.removeprefix(b"\xef\xbb\xbf").decode()
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise UsageError(f"{path}:{line}: byte {data[error.start]:#04x} is not UTF-8") from error


# -- front matter --------------------------------------------------------------------------------------------

_FRONT_MATTER = re.compile(r"---[ \t]*\n(.*?)^---[ \t]*(?:\n|\Z)(.*)", re.DOTALL | re.MULTILINE)
#: A value without quotes: people (and other programs) put colons and stars into it, which YAML does not allow.
_UNQUOTED = re.compile(r"^([A-Za-z][\w-]*):[ \t]+(?![\"'\[{|>])(\S.*)$", re.MULTILINE)


def _split(path: Path, data: bytes) -> tuple[str, str]:
    """Return front matter and prompt; lines of the former keep their numbers."""
    found = _FRONT_MATTER.match(_text(path, data).replace("\r\n", "\n"))
    if found is None:
        raise UsageError(f"{path}:1: it does not begin with front matter (YAML between two lines of ---)")
    if len(found.group(1).encode()) > _FRONT_LIMIT:
        raise UsageError(f"{path}:1: its front matter is larger than {_FRONT_LIMIT} bytes; the prompt belongs below it")
    return "\n" + found.group(1), found.group(2)


def _read_own(path: Path, data: bytes) -> AgentSpec:
    from agentctl.adapters.yamldoc import parse_yaml

    front, prompt = _split(path, data)
    document = parse_yaml(path, front.encode())
    try:
        return own_spec(document.value, path.stem, prompt, str(path))
    except BadValue as error:
        raise UsageError(f"{document.error(error.keys, error.message).message}{_told(error)}") from error


def _read_claude(path: Path, data: bytes) -> AgentSpec:
    from agentctl.adapters.yamldoc import parse_yaml

    front, prompt = _split(path, data)
    try:
        document = parse_yaml(path, front.encode())
    except UsageError:
        document = parse_yaml(path, _UNQUOTED.sub(_quote, front).encode())
    try:
        return claude_spec(document.value, path.stem, prompt, str(path))
    except BadValue as error:
        raise UsageError(f"{document.error(error.keys, error.message).message}{_told(error)}") from error


def _quote(found: re.Match[str]) -> str:
    key, value = found[1], found[2].rstrip(" \t")
    plain = re.fullmatch(r"true|false|[\d.]+", value)
    return found.group() if plain else f"{key}: {json.dumps(value, ensure_ascii=False)}"


def _read_codex(path: Path, data: bytes) -> AgentSpec:
    import tomllib  # 5 ms, only for people who have such files.

    text = _text(path, data)
    _refuse_long_keys(path, text)
    try:
        return codex_spec(tomllib.loads(text), path.stem, "", str(path))
    except BadValue as error:
        raise UsageError(f"{path}:{_line_of(text, error.keys[0])}: {error.message}{_told(error)}") from error
    except (ValueError, RecursionError) as error:
        line = re.search(r"line (\d+)", str(error))
        raise UsageError(f"{path}:{line.group(1) if line else 1}: {str(error) or 'nested too deep'}") from error


#: Everything in a TOML file except keys and numbers: comments and strings, also unterminated ones.
_NO_KEYS = re.compile(
    r'''#[^\n]*+|"""(?:[^"\\]|\\.|"(?!""))*+(?:"{3,5})?|\'{3}(?:[^']|'(?!''))*+(?:'{3,5})?'''
    r"""|"(?:[^"\\\n]|\\[^\n])*+"?|'[^'\n]*+'?""",
    re.DOTALL,
)


def _refuse_long_keys(path: Path, text: str) -> None:
    bare = _NO_KEYS.sub(lambda found: "\n" * found.group().count("\n"), text)
    for number, line in enumerate(bare.split("\n"), 1):
        keys = line.split("=")[:-1] or [line]  # After the last = comes a value.
        if any(key.count(".") > _MOST_PARTS for key in keys):
            raise UsageError(f"{path}:{number}: a key has more than {_MOST_PARTS} parts")


def _line_of(text: str, key: str) -> int:
    found = re.search(rf"^[ \t]*{re.escape(key)}[ \t]*=", text, re.MULTILINE)
    return text[: found.start()].count("\n") + 1 if found else 1


def _told(error: Any) -> str:
    return f" ({error.hint})" if error.hint else ""
