"""Which templates there are, where each comes from, and which may be used.

A template runs programs and may grant permissions to agents. One that came with a repository is used only after a
person has trusted it exactly as it is: the whole folder, byte by byte.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import stat
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import agentctl
from agentctl.adapters.document import Document
from agentctl.adapters.opening import OddFile, open_plain, read_bytes
from agentctl.adapters.personal import home_folder
from agentctl.adapters.taskdir import Root
from agentctl.adapters.trust import is_trusted, read_trusted, trust_file
from agentctl.adapters.yamldoc import parse_yaml
from agentctl.domain.agent.shell_line import shell_line
from agentctl.domain.names import check_name, is_name
from agentctl.errors import AgentctlError, AtTerminal, NotFound, Refused, UsageError
from agentctl.lean import NamedTuple
from agentctl.operations.where.personal_config import personal_file

#: The prefix that means the shipped template of a name, even if another one has that name.
SHIPPED = "shipped:"
FILE = "task.yaml"
#: Folders made from the other files: neither hashed nor copied.
CACHES = "__pycache__"
#: A root's template with more than this is refused: hashing it must come to an end.
_MOST_TEMPLATES, _MOST_FILES, _MOST_BYTES, _LONGEST_FILE = 200, 1000, 64 << 20, 64 << 10
#: The most levels of folders.
_DEEPEST = 32
_LONGEST_SHOWN = 200


class Template(NamedTuple):
    """A folder that a task can be made from."""

    folder: Path
    #: It is in a root, so it may have come with somebody else's repository.
    of_root: bool

    @property
    def name(self) -> str:
        """The name of the template."""
        return self.folder.name


def all_templates(root: Root | None) -> Iterator[Template]:
    """Yield the templates in order of precedence, also those that others of the same name hide."""
    places = [(Path(root.templates), not _is_home(root))] if root else []
    for folder, of_root in [*places, (personal_file().parent / "templates", False), (_shipped(), False)]:
        try:
            names = sorted(islice(filter(is_name, os.listdir(folder)), _MOST_TEMPLATES))
        except (FileNotFoundError, NotADirectoryError):
            continue
        yield from (Template(folder / name, of_root) for name in names if (folder / name / FILE).is_file())


def _is_home(root: Root) -> bool:
    return os.path.realpath(root.path.parent) == os.path.realpath(home_folder(os.environ))


def _shipped() -> Path:
    package = Path(agentctl.__file__).parent
    return next((f for f in (package / "task_templates", package.parent / "task_templates") if f.is_dir()), package)


def find_template(root: Root | None, name: str) -> Template:
    """Return the first template of this name; `shipped:NAME` means the shipped one.

    Raises:
        NotFound: There is none.
    """
    plain = check_name(name.removeprefix(SHIPPED), "the template")
    if name != plain and (_shipped() / plain / FILE).is_file():
        return Template(_shipped() / plain, of_root=False)
    found = [one for one in all_templates(root) if one.name == plain] if name == plain else []
    if not found:
        known = ", ".join(dict.fromkeys(one.name for one in all_templates(root))) or "none"
        raise NotFound(f"no template {name!r}", hint=f"known: {known}")
    return found[0]


def read_template(template: Template) -> Document:
    """Return what a template's task.yaml says.

    Raises:
        UsageError: It cannot be read; the message names file, line and key.
    """
    return parse_yaml(template.folder / FILE, bytes_of(template))


def bytes_of(template: Template) -> bytes:
    """Return the bytes of a template's task.yaml."""
    path = template.folder / FILE
    return read_bytes(path, _LONGEST_FILE) if template.of_root else path.read_bytes()


def is_usable(template: Template) -> bool:
    """Return whether a template may be used: it is the user's own, shipped, or trusted as it is."""
    try:
        check_usable(template)
    except (AgentctlError, OSError):
        return False
    return True


def check_usable(template: Template) -> str | None:
    """Return the trusted digest of a template of a root, None for any other template.

    Raises:
        Refused: It is not trusted as it is.
    """
    if not template.of_root:
        return None
    digest = folder_digest(template.folder)
    if not is_trusted(read_trusted(trust_file(os.environ)), str(template.folder), digest):
        ships = (_shipped() / template.name / FILE).is_file()
        hides = f"the shipped one is {SHIPPED}{template.name}" if ships else ""
        raise Refused(
            f"the template {template.name} comes with the project and is not trusted: {template.folder}",
            hint=(AtTerminal(f"read it, then: agentctl trust {shlex.quote(str(template.folder))}"), hides),
        )
    return digest


def powers_of(template: Template) -> list[str]:
    """Return in words why a template needs trust: what it runs, and what it allows."""
    try:
        document = read_template(template)
    except (UsageError, OSError) as error:
        return [f"it cannot be read: {error}"]
    roster, config = document.value.get("roster"), document.value.get("config")
    workers = [worker for worker in roster if isinstance(worker, dict)] if isinstance(roster, list) else []
    found = [f"it runs {_work_of(worker)}"[:_LONGEST_SHOWN] for worker in workers]
    if isinstance(config, dict) and "permissions" in config:
        found.append(f"permissions: {config['permissions']}"[:_LONGEST_SHOWN])
    return found or ["it makes a task"]


def _work_of(worker: dict[str, Any]) -> str:
    if "shell" in worker:
        return f"/bin/sh -c {worker['shell']}"
    argv = worker.get("argv")
    return shell_line([*map(str, argv)]) if isinstance(argv, list) else f"the agent {worker.get('agent', 'general')}"


def folder_digest(folder: str | os.PathLike[str]) -> str:
    """Return the hash of everything in a folder: names, which files are executable, contents.

    Raises:
        OddFile: There is a link, a FIFO or the like in it, or more than a template may have.
    """
    digest, left = hashlib.sha256(), _MOST_BYTES
    for number, path in enumerate(_files_in(folder)):
        fd = open_plain(path)
        try:
            found = os.fstat(fd)
            left -= found.st_size
            if left < 0 or number >= _MOST_FILES:
                raise OddFile(f"{os.fspath(folder)} holds more than a template may", hint="look at it, and remove it")
            head = f"{os.path.relpath(path, folder)}\0{bool(found.st_mode & stat.S_IXUSR)}\0{found.st_size}\0"
            digest.update(os.fsencode(head))
            while chunk := os.read(fd, 1 << 20):
                digest.update(chunk)
        finally:
            os.close(fd)
    return digest.hexdigest()


def _files_in(folder: str | os.PathLike[str]) -> Iterator[str]:
    """Yield the files below a folder, in a fixed order; what is not a folder counts, and is opened, as a file.

    Raises:
        OddFile: It has more folders than a template, or they are nested deeper.
    """
    left, folders = [(entry, 1) for entry in _entries_of(folder)], 0
    while left:
        entry, depth = left.pop()
        if not entry.is_dir(follow_symlinks=False):
            yield entry.path
        elif entry.name != CACHES:
            folders += 1
            if depth > _DEEPEST or folders > _MOST_FILES:
                raise OddFile(f"{os.fspath(folder)} has more folders than a template", hint="look at it, and remove it")
            left += [(one, depth + 1) for one in _entries_of(entry.path)]


def _entries_of(folder: str | os.PathLike[str]) -> list[os.DirEntry[str]]:
    """Return the entries of a folder, the last name first."""
    with os.scandir(folder) as entries:
        return sorted(islice(entries, _MOST_FILES + 1), key=lambda entry: entry.name, reverse=True)
