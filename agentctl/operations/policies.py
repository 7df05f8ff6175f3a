"""Which rules decide what an agent may do without asking: those of the call, of its definition, of its task."""

from __future__ import annotations

import json

from agentctl.adapters.taskdir import TaskDir
from agentctl.domain.agentspec import AgentSpec
from agentctl.domain.permissions import Rules, parse_policy
from agentctl.errors import UsageError
from agentctl.operations.configuring import usable_config
from agentctl.operations.inheriting import refuse_allowing
from agentctl.operations.ownership import check_rules
from agentctl.operations.requests import AgentWork

_FORM = """rules look like '[{"tool": "Bash", "pattern": "git status*", "answer": "allow"}]'"""


def policy_of(task: TaskDir, work: AgentWork, spec: AgentSpec) -> Rules:
    """Return the rules: those of the call before the definition's, before the task's; the first that matches decides.

    What a read-only agent may not do, no rule allows: its driver sees to that.

    Raises:
        Refused: The task's rules allow something for which this person has not vouched; or a worker allows its child
            what it may not do itself.
    """
    wished = _parsed(work.permissions)
    refuse_allowing(wished)
    rules = list(usable_config(task).permissions)
    check_rules(task, rules)
    return [*wished, *spec.permissions, *rules]


def _parsed(wished: str | Rules | None) -> Rules:
    if wished is None:
        return []
    if isinstance(wished, str) and wished.lstrip().startswith("["):
        try:
            wished = json.loads(wished)
        except (ValueError, RecursionError) as error:
            raise UsageError(f"--permissions is no JSON: {error}", hint=_FORM) from error
    return parse_policy(wished, "--permissions")
