"""Reads where workers are to run: `runner` and `resources` of a task, and `runners` in a person's config.yaml."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from agentctl.adapters.document import Document
from agentctl.adapters.taskyaml.reader import RESOURCES, RUNNER, RUNNERS
from agentctl.domain.placement import Resources, check_runner, resources_from
from agentctl.errors import UsageError


def read_resources(document: Document, config: Mapping[str, Any], within: tuple[str, ...] = ("config",)) -> Resources:
    """Return what `config`, which lies under the keys `within`, says of the runner and of resources.

    Raises:
        UsageError: With file, line and key.
    """
    runner, resources = config.get(RUNNER), config.get(RESOURCES, {})
    if runner is not None and not isinstance(runner, str):
        raise document.error((*within, RUNNER), f"{RUNNER} must be the name of a runner, such as slurm, not {runner!r}")
    if resources is None:
        resources = {}
    if not isinstance(resources, Mapping):
        raise document.error(
            (*within, RESOURCES), f"{RESOURCES} must be a mapping: cpus, memory, gpus, time, partition, args"
        )
    try:
        found = resources_from(resources)
        return {**found, "runner": check_runner(runner)} if runner is not None else found
    except UsageError as error:
        key = next((name for name in resources if str(error).startswith(str(name))), None)
        place = (
            (*within, RUNNER) if key is None and runner is not None else (*within, RESOURCES, *([key] if key else []))
        )
        raise document.error(place, error.message) from error


def read_root_settings(document: Document) -> Resources:
    """Return what the config.yaml of a root says: the runner and resources, and nothing else.

    Raises:
        UsageError: With file, line and key.
    """
    for key in document.value:
        if key not in (RUNNER, RESOURCES):
            raise document.error((str(key),), f"unknown key {key!r}; known in a root: {RUNNER}, {RESOURCES}")
    return read_resources(document, document.value, within=())


def read_runners(document: Document) -> dict[str, dict[str, Any]]:
    """Return the settings of each runner, under the names of the fields of a placement."""
    value = document.value.get(RUNNERS) or {}
    if not isinstance(value, Mapping):
        raise document.error((RUNNERS,), f"{RUNNERS} must be a mapping: slurm: {{pollSeconds: 15}}")
    return {str(name): _settings(document, str(name), settings) for name, settings in value.items()}


def _settings(document: Document, runner: str, value: Any) -> dict[str, Any]:
    at = (RUNNERS, runner)
    if not isinstance(value, Mapping):
        raise document.error(at, f"the settings of {runner} must be a mapping")
    document.check_keys(at, value, _SETTINGS)
    return {field: read(document, (*at, key), value[key]) for key, (field, read) in _SETTINGS.items() if key in value}


def _path(document: Document, keys: tuple[str, ...], value: Any) -> str:
    if not isinstance(value, str) or not value.startswith("/") or "\0" in value:
        raise document.error(keys, f"{keys[-1]} must be an absolute path")
    return value


#: The settings of a runner: key -> (field of a placement, how its value is read).
_SETTINGS: dict[str, tuple[str, Callable[[Document, tuple[str, ...], Any], Any]]] = {
    "pollSeconds": ("poll_s", partial(Document.number, low=0.2, high=3600)),
    "silenceSeconds": ("silence_s", partial(Document.number, low=1, high=86_400)),
    "folder": ("folder", _path),
    "python": ("python", _path),
    "submitAhead": ("ahead", partial(Document.number, low=0, high=1000, whole=True)),
}
