"""Task templates: a folder with a task.yaml (config, parameters, roster) and the files that its workers need.

A task made from one has its own copy of the files, and its workers' orders, resolved, in `template/roster.json`.
"""

from __future__ import annotations

import json
import os
import shutil
import stat
import string
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentctl.adapters.document import Document
from agentctl.adapters.files import read_json, storage_errors, to_json, write_whole
from agentctl.adapters.opening import OddFile
from agentctl.adapters.paths import FilePath
from agentctl.adapters.taskdir import Root, TaskDir
from agentctl.adapters.taskyaml.reader import read_limits, read_queueing
from agentctl.adapters.yamldoc import parse_yaml
from agentctl.domain.same_request import digests_of
from agentctl.errors import Argument, Damaged, Next, Refused, StorageError, UsageError, WithArguments
from agentctl.operations.start.batch import SHELL, batch_waits, request_from
from agentctl.operations.start.new_task import create_task
from agentctl.operations.start.request_keys import each_keyed, started_by_key
from agentctl.operations.start.requests import Spawned, SpawnRequest
from agentctl.operations.start.spawning import spawn_workers
from agentctl.operations.trust.templates import (
    CACHES,
    FILE,
    Template,
    all_templates,
    bytes_of,
    check_usable,
    find_template,
    folder_digest,
    is_usable,
    read_template,
)
from agentctl.operations.where.locating import working_folder
from agentctl.operations.where.ownership import check_own

if TYPE_CHECKING:
    from agentctl.domain.documents.tasks import TemplateRow

_ROSTER = "roster.json"
_KEYS = ("name", "description", "title", "parameters", "config", "roster")


def list_templates(root: Root | None) -> list[TemplateRow]:
    """Return a row for each template; of one name, that of the one used."""
    found: dict[str, TemplateRow] = {}
    for template in all_templates(root):
        if template.name not in found:
            found[template.name] = _row(template)
    return list(found.values())


def _row(template: Template) -> TemplateRow:
    row: TemplateRow = {
        "name": template.name, "source": str(template.folder), "usable": is_usable(template), "description": "",
        "parameters": {},
    }  # fmt: skip
    try:
        document = read_template(template)
        return {**row, "description": str(document.value.get("description", "")), "parameters": _parameters(document)}
    except (UsageError, OddFile) as error:
        if not template.of_root:
            raise
        return {**row, "description": f"it cannot be read: {error.message}"}


def create_from_template(
    root: Root,
    name: str,
    values: Mapping[str, str],
    *,
    title: str | None = None,
    task_id: str | None = None,
    is_chosen: bool = True,
    note: Callable[[TaskDir], None] | None = None,
) -> TaskDir:
    """Make a task from a template, with its parameters set to `values`; start none of its workers.

    Raises:
        NotFound: There is no such template.
        Refused: It comes with the project, and is not trusted.
        UsageError: A parameter is unknown or missing, or names a file or folder that is not there; or the template has
            an error (with file, line and key).
    """
    template = find_template(root, name)
    digest, content = check_usable(template), bytes_of(template)
    document = parse_yaml(template.folder / FILE, content)
    unknown = set(document.value) - set(_KEYS)
    if unknown:
        raise document.error((min(unknown),), f"unknown key {min(unknown)!r}; known: {', '.join(_KEYS)}")
    settings = _settings(document, values)
    _check_places(document, settings)
    read_limits(document)
    read_queueing(document)
    task_title = title or _fill(str(document.value.get("title") or template.name), settings, document, ("title",))
    _requests(document, {**settings, "template": "T", "task": "T"})  # An error shows before anything is made.

    def furnish(task: TaskDir) -> None:
        _copy(template.folder, task.template)
        copied = (task.template / FILE).read_bytes()
        if digest is not None and (folder_digest(task.template), copied) != (digest, content):  # Only what was trusted.
            raise Refused(f"{template.folder} was changed meanwhile", hint="try again")
        places = {**settings, "template": str(task.template), "task": str(task.path)}
        write_whole(task.template / _ROSTER, to_json({"requests": _requests(document, places)}))

    config = document.value.get("config") or {}
    return create_task(
        root, task_title, task_id=task_id, config=config, furnish=furnish, is_chosen=is_chosen, note=note
    )


def _copy(folder: Path, target: FilePath) -> None:
    try:
        shutil.copytree(folder, target, ignore=shutil.ignore_patterns(CACHES))
    except OSError as error:
        why = error.args[0][0][2] if isinstance(error, shutil.Error) else error.strerror
        raise StorageError(f"cannot copy the template {folder}: {why}", hint="nothing was made") from error


def start_template(task: TaskDir, key: str | None = None) -> list[Spawned]:
    """Start (or queue) the workers that a task's template declares.

    Args:
        key: The same key starts them once, and returns them.

    Raises:
        Conflict: The key has done something else.
        Damaged: The orders that were resolved when the task was made are no longer in their file.
    """
    check_own(task)
    file = task.template / _ROSTER
    value = read_json(file)
    if value is None:
        raise Refused(f"task {task.id} was made from no template", hint=Next("make from template"))
    orders = value.get("requests")
    if not isinstance(orders, list) or not all(isinstance(item, dict) for item in orders):
        raise Damaged(f"{file} holds no orders of workers", hint=("make the task again", Next("make from template")))
    requests = [request_from(item, str(file)) for item in orders]
    numbers, said = list(map(str, range(1, len(requests) + 1))), digests_of("template", {})
    keys = each_keyed(task, key, numbers, said)
    requests = [
        item if item.key is not None or key is None else item._replace(key=keys[number], said=said)
        for number, item in zip(numbers, requests, strict=True)
    ]
    # One with a key of its own is looked for by that.
    started = {item.name for item in requests if key is not None and started_by_key(task, item.key, item.said)}
    taken = (item.name for item in requests if item.name and task.worker(item.name).path.exists())
    known = [name for name in taken if name not in started]
    if known:
        raise Refused(f"the workers of task {task.id} were started already: {', '.join(known)}")
    return spawn_workers(task, requests, queue=batch_waits(requests))


def _parameters(document: Document) -> dict[str, dict[str, str]]:
    value = document.value.get("parameters") or {}
    if not isinstance(value, dict) or not all(isinstance(item, dict) for item in value.values()):
        raise document.error(("parameters",), "parameters must be a mapping of name: {description, default}")
    return {
        name: {key: "" if text is None else str(text) for key, text in item.items()} for name, item in value.items()
    }


def _settings(document: Document, values: Mapping[str, str]) -> dict[str, str]:
    known = _parameters(document)
    for name in values:
        if name not in known:
            raise UsageError(f"the template has no parameter {name!r}", hint=f"known: {', '.join(known) or 'none'}")
    settings = {"python": sys.executable}
    for name, item in known.items():
        if name in values:
            settings[name] = values[name]
        elif "default" in item:
            settings[name] = item["default"]
        else:
            raise UsageError(f"the parameter {name!r} has no value", hint=WithArguments(Argument("set", f"{name}=...")))
    return settings


#: What a parameter of a type names: as its `st_mode` says, and in words.
_PLACES: dict[str, tuple[Callable[[int], bool], str]] = {
    "path": (bool, "file or folder"),
    "folder": (stat.S_ISDIR, "folder"),
    "file": (stat.S_ISREG, "file"),
}


def _check_places(document: Document, settings: Mapping[str, str]) -> None:
    """Refuse a parameter that names nothing, seen from the folder in which the workers will run."""
    for name, item in _parameters(document).items():
        kind = item.get("type", "text")
        if kind == "text":
            continue
        if kind not in _PLACES:
            problem = f"the type of a parameter must be one of text, {', '.join(_PLACES)}, not {kind!r}"
            raise document.error(("parameters", name, "type"), problem)
        value = settings[name]
        if value or item.get("default"):  # One that is empty by default may be left empty.
            _check_place(name, value, *_PLACES[kind])


def _check_place(name: str, value: str, is_one: Callable[[int], bool], called: str) -> None:
    step = WithArguments(Argument("set", f"{name}=..."), f" names a {called}")
    if not value:
        raise UsageError(f"the parameter {name!r} is empty", hint=step)
    place = os.path.join(working_folder(), value)
    try:
        with storage_errors(place, "look at"):
            mode = os.stat(place).st_mode
    except (FileNotFoundError, NotADirectoryError):
        raise UsageError(f"the parameter {name!r}: there is no {called} {place}", hint=step) from None
    except ValueError as error:
        raise UsageError(f"the parameter {name!r} cannot be a path: {error}", hint=step) from None
    if not is_one(mode):
        raise UsageError(f"the parameter {name!r}: {place} is not a {called}", hint=step)


def _requests(document: Document, settings: Mapping[str, str]) -> list[dict[str, Any]]:
    roster = document.value.get("roster")
    if not isinstance(roster, list) or not roster:
        raise document.error(("roster",), "roster must be a list of workers")
    found, requests = list[dict[str, Any]](), list[SpawnRequest]()
    for index, item in enumerate(roster):
        at = ("roster", str(index))
        if not isinstance(item, dict):
            raise document.error(at, "a worker must be a mapping")
        filled = {key: _fill_in(value, settings, document, (*at, key)) for key, value in item.items()}
        if isinstance(item.get(SHELL), str) and _has_fields(item[SHELL]):
            problem = "a shell would read a parameter as a part of its line"
            raise document.error(
                (*at, SHELL), f'{problem}; give argv: [sh, -c, LINE, sh, "{{NAME}}"], with "$1" in LINE'
            )
        try:
            requests.append(request_from(filled, f"worker {index + 1}"))
        except UsageError as error:
            raise document.error(at, error.message) from error
        found.append({"cwd": working_folder(), **filled})
    try:
        batch_waits(requests)
    except UsageError as error:
        raise document.error(("roster",), error.message) from error
    return found


def _fill_in(value: Any, settings: Mapping[str, str], document: Document, at: tuple[str, ...]) -> Any:
    if isinstance(value, str):
        return _fill(value, settings, document, at)
    if isinstance(value, list):
        return [_fill_in(item, settings, document, at) for item in value]
    if isinstance(value, dict):
        return {key: _fill_in(item, settings, document, at) for key, item in value.items()}
    return value


def _has_fields(text: str) -> bool:
    return any(field is not None for _, field, _, _ in string.Formatter().parse(text))


def _fill(text: str, settings: Mapping[str, str], document: Document, at: tuple[str, ...]) -> str:
    """Replace each `{name}` by its setting; only plain names, so that a template reaches nothing else."""
    try:
        parts = []
        for literal, field, spec, conversion in string.Formatter().parse(text):
            parts.append(literal)
            if field is not None:
                if spec or conversion or field not in settings:
                    raise document.error(at, f"unknown {{{field}}}; known: {', '.join(sorted(settings))}")
                parts.append(settings[field])
        return "".join(parts)
    except ValueError as error:
        raise document.error(at, f"{error} in {json.dumps(text)}; a literal brace is {{{{ or }}}}") from error
