"""Reads where workers are to run: `runner` and `resources` of a task, and `runners` in a person's config.yaml."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agentctl.adapters.document import Document
from agentctl.adapters.taskyaml.reader import RESOURCES, RUNNER, RUNNERS
from agentctl.domain.placement import Resources, check_runner, resources_from
from agentctl.errors import UsageError

#: The settings of a runner: key -> (field of a placement, smallest, largest) of the numbers, or the kind of the others.
_NUMBERS = {"pollSeconds": ("poll_s", 0.2, 3600.0), "silenceSeconds": ("silence_s", 1.0, 86_400.0)}
_TEXTS = {"folder": "folder", "python": "python"}
_WHOLE = {"submitAhead": ("ahead", 0, 1000)}


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
    if not isinstance(value, Mapping):
        raise document.error((RUNNERS, runner), f"the settings of {runner} must be a mapping")
    found: dict[str, Any] = {}
    for key, item in value.items():
        place = (RUNNERS, runner, str(key))
        if key in _NUMBERS:
            field, low, high = _NUMBERS[key]
            if isinstance(item, bool) or not isinstance(item, int | float) or not low <= item <= high:
                raise document.error(place, f"{key} must be a number from {low:g} to {high:g}")
            found[field] = float(item)
        elif key in _WHOLE:
            field, least, most = _WHOLE[key]
            if isinstance(item, bool) or not isinstance(item, int) or not least <= item <= most:
                raise document.error(place, f"{key} must be a whole number from {least} to {most}")
            found[field] = item
        elif key in _TEXTS:
            if not isinstance(item, str) or not item.startswith("/") or "\0" in item:
                raise document.error(place, f"{key} must be an absolute path")
            found[_TEXTS[key]] = item
        else:
            known = ", ".join([*_NUMBERS, *_TEXTS, *_WHOLE])
            raise document.error(place, f"unknown key {key!r}; known: {known}")
    return found
