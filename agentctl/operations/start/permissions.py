"""Which rules decide what an agent may do without asking: those of the call, of its definition, of its task."""

from __future__ import annotations

import json

from agentctl.adapters.taskdir import TaskDir
from agentctl.domain.agent.agentspec import AgentSpec
from agentctl.domain.agent.permissions import Rules, is_allowing, parse_policy
from agentctl.errors import NotFound, Refused, UsageError
from agentctl.operations.start.agent_server import SERVER_RULE
from agentctl.operations.start.inherited import refuse_allowing
from agentctl.operations.start.requests import AgentWork
from agentctl.operations.trust.definitions import find_agent_spec
from agentctl.operations.where.ownership import check_rules
from agentctl.operations.where.task_config import usable_config

_FORM = """rules look like '[{"tool": "Bash", "pattern": "git status*", "answer": "allow"}]'"""


def policy_of(task: TaskDir, work: AgentWork, spec: AgentSpec) -> Rules:
    """Return the rules: first those by which the definition disallows tools, then the call's, its own, the task's.

    The first that matches decides.

    No rule can allow what a read-only agent may not do: its driver ensures that.

    Raises:
        Refused: The task's rules allow something for which this person has not vouched; or a worker would allow its
            child something that neither its own rules, nor its task's, nor the child's definition allow.
    """
    of_task = list(usable_config(task).permissions)
    check_rules(task, of_task)
    rules = [*spec.denials, *given_rules(work), *spec.permissions, *of_task]
    refuse_allowing(rules, lambda: [spec.rules])
    return rules


def given_rules(work: AgentWork) -> Rules:
    """Return the rules that come with a call; in `policy_of`, only the disallowed tools come before them."""
    return _parsed(work.permissions)


def asking(task: TaskDir, spec: AgentSpec) -> Rules:
    """Return rules that ask about everything that an agent may do unasked, and deny what it is denied.

    They come before the definition's and the task's rules, which then allow nothing: a rule that asks matches widely.
    """
    own = [*spec.rules, *usable_config(task).permissions]
    return [{**rule, "answer": "ask"} if is_allowing(rule) else dict(rule) for rule in own]


def check_policy_again(task: TaskDir, agent: str, rules: Rules) -> None:
    """Raise `Refused` where a worker would continue an agent under rules by which it could not start one."""
    refuse_allowing(rules, lambda: [_defined(task, agent), [SERVER_RULE]])


def _defined(task: TaskDir, agent: str) -> Rules:
    try:
        return find_agent_spec(task.root, agent).rules
    except (NotFound, Refused):
        return []


def _parsed(rules: str | Rules | None) -> Rules:
    if rules is None:
        return []
    if isinstance(rules, str) and rules.lstrip().startswith("["):
        try:
            rules = json.loads(rules)
        except (ValueError, RecursionError) as error:
            raise UsageError(f"the permissions are not JSON: {error}", hint=_FORM) from error
    return parse_policy(rules, "permissions")
