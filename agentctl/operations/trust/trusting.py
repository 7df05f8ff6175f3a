"""`trust`: a person allows what came with a project, or was changed in it, to do what it says.

This is needed for definitions of agents, templates, the settings of a root, rules in a task.yaml that allow something,
and whole tasks that were made elsewhere or by somebody else.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from agentctl.adapters import trust
from agentctl.adapters.taskdir import Root, TaskDir
from agentctl.errors import AgentctlError, AtTerminal, NotFound, Refused
from agentctl.lean import TYPE_CHECKING, Any, NamedTuple
from agentctl.operations.trust.definitions import Agent, all_agents
from agentctl.operations.trust.root_settings import NAME, RootSettings, settings_of
from agentctl.operations.trust.templates import Template, all_templates, folder_digest, is_usable, powers_of
from agentctl.operations.where.calling import caller
from agentctl.operations.where.lineage import true_caller
from agentctl.operations.where.moved import follow_move
from agentctl.operations.where.odd_files import refuse_odd_within
from agentctl.operations.where.ownership import (
    allowing,
    are_vouched_for,
    check_own,
    disown,
    doubt_rules,
    is_own,
    make_own,
    vouch_for_rules,
)
from agentctl.operations.where.task_config import read_config

if TYPE_CHECKING:
    from agentctl.domain.documents.agents import TrustRow


class _Things(NamedTuple):
    """What can be trusted in a root."""

    agents: list[Agent]
    templates: list[Template]
    tasks: list[TaskDir]
    settings: RootSettings | None
    #: What was left out.
    warnings: list[str]


def _things(root: Root | None) -> _Things:
    agents, warnings = all_agents(root)
    templates = [one for one in all_templates(root) if one.of_root]
    tasks = [root.task(name) for name in root.task_ids()] if root else []
    settings, problems = _settings_in(root)
    return _Things(agents, templates, tasks, settings, [*warnings, *problems])


def _settings_in(root: Root | None) -> tuple[RootSettings | None, list[str]]:
    """Return the settings of a root, and why they cannot be looked at."""
    try:
        return (settings_of(root) if root else None), []
    except (AgentctlError, OSError) as error:
        return None, [str(error)]


def list_trust(root: Root | None) -> tuple[list[TrustRow], list[str]]:
    """Return a row for each thing that needs trust here and each that is trusted, and what was left out."""
    found = _things(root)
    rows = [_of_agent(agent) for agent in found.agents if agent.powers]
    rows += [_of_template(template) for template in found.templates]
    rows += [_of_settings(found.settings)] if found.settings else []
    rows += [row for task in found.tasks for row in _of_task(task)]
    here = {row["path"] for row in rows}
    elsewhere = [path for path in trust.read_trusted(trust.trust_file(os.environ)) if path not in here]
    return rows + [_row(path, _kind_of(path), trusted=True) for path in elsewhere], found.warnings


def trust_files(root: Root | None, files: Sequence[str]) -> list[TrustRow]:
    """Trust definitions, templates, settings, tasks and rules of this project as they are now; return a row for each.

    Raises:
        NotFound: A file is something else, or cannot be read.
        Refused: The caller is a worker; only a person may decide what its agents may do.
    """
    _refuse_workers()
    found = _things(root)
    named = [_named(file, found) for file in files]
    digests: dict[str, str] = {}
    for one in named:
        if isinstance(one, Agent) and one.powers:
            digests[one.spec.source] = one.digest
        elif isinstance(one, Template):
            digests[str(one.folder)] = folder_digest(one.folder)
        elif isinstance(one, RootSettings):
            one.says()  # What cannot be read cannot be trusted.
            digests[one.path] = one.digest
    if digests:
        trust.trust_digests(trust.trust_file(os.environ), digests)
    return [_trusted(one) for one in named]


class _Rules(NamedTuple):
    """The rules in the task.yaml of a task."""

    task: TaskDir


def _trusted(one: Agent | Template | RootSettings | TaskDir | _Rules) -> TrustRow:
    """Return the row of what has just been trusted; trust in a task or its rules is recorded here."""
    if isinstance(one, Agent):
        return _of_agent(one._replace(usable=True))
    if isinstance(one, Template):
        return _of_template(one)
    if isinstance(one, RootSettings):
        return _of_settings(one)
    if isinstance(one, TaskDir):
        refuse_odd_within(one)
        if not is_own(one):
            make_own(one)
            follow_move(one)
        return _row(one.path, "task", trusted=True)
    check_own(one.task)
    rules = read_config(one.task).permissions
    vouch_for_rules(one.task, rules)
    return _row(one.task.task_file, "rules", trusted=True, powers=_rule_texts(rules))


def revoke_files(root: Root | None, files: Sequence[str]) -> list[TrustRow]:
    """Revoke the trust in these files; definitions and templates need not exist any more."""
    _refuse_workers()
    paths = [os.path.realpath(file) for file in files]
    tasks = {path: task for path in paths if (task := _task_at(root, path)) is not None}
    gone = trust.revoke(trust.trust_file(os.environ), [path for path in paths if path not in tasks])
    gone += [path for path, task in tasks.items() if _untrust(path, task)]
    missing = [path for path in paths if path not in gone]
    if missing:
        raise NotFound(f"{missing[0]} was not trusted", hint=AtTerminal("agentctl trust --list shows what is"))
    return [_row(path, _kind_of(path, tasks.get(path)), trusted=False) for path in gone]


def _untrust(path: str, task: TaskDir) -> bool:
    return doubt_rules(task, read_config(task).permissions) if _is_of_rules(path) else disown(task)


def _is_of_rules(path: str) -> bool:
    return os.path.basename(path) == "task.yaml"


def _kind_of(path: str, task: TaskDir | None = None) -> str:
    """Return what a path was trusted as; it need not exist any more. The name of a template has no dot."""
    if task is not None:
        return "rules" if _is_of_rules(path) else "task"
    if os.path.basename(path) == NAME:
        return "settings"
    return "agent" if os.path.splitext(path)[1] else "template"


def _refuse_workers() -> None:
    found = true_caller() or caller()  # Also a lost worker, which only its environment shows.
    if found is not None:
        raise Refused(f"{found.instance} is a worker: only a person decides what to trust", hint="ask a person")


def _named(file: str, found: _Things) -> Agent | Template | RootSettings | TaskDir | _Rules:
    path = os.path.realpath(file)
    for agent in found.agents:
        if os.path.realpath(agent.spec.source) == path:
            return agent
    for template in found.templates:
        if path in (os.path.realpath(template.folder), os.path.realpath(template.folder / "task.yaml")):
            return template
    if found.settings is not None and path == found.settings.path:
        return found.settings
    for task in found.tasks:
        if path == os.path.realpath(task.path):
            return task
        if path == os.path.realpath(task.task_file):
            return _Rules(task)
    left_out = [line for line in found.warnings if line.startswith((f"{path}:", f"{os.path.abspath(file)}:"))]
    raise NotFound(
        f"{file} is not a definition, template, task, task.yaml or config.yaml here",
        hint="; ".join(left_out) or AtTerminal("agentctl trust --list"),
    )


def _task_at(root: Root | None, path: str) -> TaskDir | None:
    """Return the task that a path is, or whose task.yaml it is."""
    folder = Path(path).parent if _is_of_rules(path) else Path(path)
    if root is None or os.path.realpath(folder.parent) != os.path.realpath(root.tasks):
        return None
    return root.task(folder.name)


# -- rows --------------------------------------------------------------------------------------------------------------


def _row(path: str, kind: str, *, trusted: bool, powers: Sequence[str] = (), agent: str | None = None) -> TrustRow:
    return {"path": str(path), "kind": kind, "agent": agent, "trusted": trusted, "powers": list(powers)}


def _of_agent(agent: Agent) -> TrustRow:
    path = os.path.realpath(agent.spec.source)
    return _row(path, "agent", trusted=agent.usable, powers=agent.powers, agent=agent.spec.name)


def _of_template(template: Template) -> TrustRow:
    path = os.path.realpath(template.folder)
    return _row(path, "template", trusted=is_usable(template), powers=powers_of(template))


def _of_settings(settings: RootSettings) -> TrustRow:
    return _row(settings.path, "settings", trusted=settings.is_trusted(), powers=settings.powers())


def _of_task(task: TaskDir) -> Iterator[TrustRow]:
    """Yield the row of a task if it is foreign, or the row of its rules if they allow something."""
    if not is_own(task):
        yield _row(task.path, "task", trusted=False, powers=["a task that was not made here by you"])
        return
    try:
        rules = read_config(task).permissions
    except AgentctlError:
        return
    if allowing(rules):
        yield _row(task.task_file, "rules", trusted=are_vouched_for(task, rules), powers=_rule_texts(rules))


def _rule_texts(rules: Sequence[Any]) -> list[str]:
    return [f"permissions allow {rule['tool']} {rule['pattern']}" for rule in allowing(rules)]
