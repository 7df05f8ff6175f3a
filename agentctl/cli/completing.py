"""What a shell offers for an instance, a task or a template: names of folders. Never raises or writes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from agentctl.adapters.taskdir import Root, TaskDir


def complete_instances(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the workers of the task that the line means."""
    return _offer(lambda: _task_of(ctx).instances(), incomplete, taken=_given(ctx))


def complete_tasks(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the tasks of the root that the line means."""
    return _offer(lambda: _root_of(ctx).task_ids(), incomplete)


def complete_agents(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the agents that are defined here."""
    return _offer(lambda: _agent_names(ctx), incomplete)


def complete_templates(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the templates that can be used."""
    return _offer(lambda: _template_names(ctx), incomplete)


def _offer(names: Callable[[], Iterable[str]], incomplete: str, taken: frozenset[str] = frozenset()) -> list[str]:
    try:
        return [name for name in names() if name.startswith(incomplete) and name not in taken]
    except Exception:  # noqa: BLE001 - a shell that completes a line is shown nothing but names
        return []


def _given(ctx: typer.Context) -> frozenset[str]:
    """Return what stands on the line already."""
    words = (ctx.params or {}).get("instances")
    return frozenset(words) if isinstance(words, (list, tuple)) else frozenset()


def _root_of(ctx: typer.Context) -> Root:
    from agentctl.operations.locating import find_root

    # Reading names does no harm: the checks of whose folder it is are for the command itself.
    return find_root((ctx.params or {}).get("root"), force=True)


def _task_of(ctx: typer.Context) -> TaskDir:
    from agentctl.operations.locating import find_task

    given = ctx.params or {}
    return find_task(given.get("task"), root=given.get("root"), force=True)


def _template_names(ctx: typer.Context) -> list[str]:
    from agentctl.operations.templates import template_folders

    try:
        root: Root | None = _root_of(ctx)
    except Exception:  # noqa: BLE001 - the shipped ones need no root
        root = None
    return [path.parent.name for folder in template_folders(root) for path in Path(folder).glob("*/task.yaml")]


def _agent_names(ctx: typer.Context) -> list[str]:
    from agentctl.operations.agents import list_agent_specs

    try:
        root: Root | None = _root_of(ctx)
    except Exception:  # noqa: BLE001 - the shipped ones need no root
        root = None
    return [agent.spec.name for agent in list_agent_specs(root)[0]]
