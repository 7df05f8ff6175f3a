"""Who may answer a worker's request for permission: a person, or rules that allow that very call.

An agent that could answer for its child would have whatever it wanted by starting one. So it may deny, or allow what
its own rules allow for itself; of its own requests, and those of others than its children, it answers none. This is
asked at every door: the command line, the tools, Python. A form that a person's client shows is the person.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from agentctl.adapters.files import read_quietly
from agentctl.adapters.realpath import Resolver
from agentctl.adapters.taskdir import WorkerDir
from agentctl.domain.answers import ALLOW, DENY, meaning
from agentctl.domain.permissions import Rules, decide
from agentctl.errors import Next, Refused
from agentctl.lean import NamedTuple
from agentctl.operations.where.calling import Caller
from agentctl.operations.where.lineage import shown_caller
from agentctl.operations.where.sandbox import is_in_sandbox_of
from agentctl.supervision.worker.kinship import descendants
from agentctl.supervision.worker.spec import read_order

#: Set by agent programs in the shells that they run: who answers there is a model, as far as one can tell.
_OF_AGENTS = ("CLAUDECODE", "CODEX_SANDBOX", "CODEX_THREAD_ID", "GEMINI_CLI", "OPENCODE")
USER, SESSION = "user", "session"


class Answerer(NamedTuple):
    """Who answers."""

    #: The worker that does; None is a person, or a session that a person has with an agent program.
    worker: Caller | None
    #: A model decides what is answered.
    is_agent: bool

    def name(self, worker: WorkerDir) -> str:
        """Return what the log calls the one who answers a worker."""
        if self.worker is None:
            return SESSION if self.is_agent else USER
        is_near = self.worker.task.path == worker.task.path
        return self.worker.instance if is_near else str(self.worker.worker.id)


def who_answers(*, by_tool: bool = False, by_form: bool = False) -> Answerer:
    """Return who calls.

    Args:
        by_tool: Over a tool for agents.
        by_form: By a form that the person's client has shown.
    """
    worker = shown_caller()
    in_agents_shell = not by_form and any(os.environ.get(name) for name in _OF_AGENTS)
    return Answerer(worker, is_agent=worker is not None or by_tool or in_agents_shell)


def check_answerer(worker_dir: WorkerDir, question: Mapping[str, Any], answer: str, who: Answerer) -> None:
    """Raise `Refused` where somebody may not answer a question like this.

    Args:
        answer: As the question has it: an option's id, or a text.
    """
    if not question.get("tool"):
        return  # What colour? Whoever knows may say.
    asked = f"{question.get('id')} of {worker_dir.instance} is a request for permission"
    if is_in_sandbox_of(worker_dir):
        raise Refused(f"{asked}: nothing within a sandbox answers it", hint=Next("ask a person"))
    worker = who.worker
    if worker is not None and not any(one.path == worker_dir.path for one in descendants(worker.worker)):
        raise Refused(f"{asked}, and {worker.instance} is not above {worker_dir.instance}", hint=Next("ask a person"))
    if not who.is_agent or meaning(question.get("means"), answer) == DENY:
        return
    if worker is None or not _may_itself(worker.worker, worker_dir, question, answer):
        raise Refused(
            f"{asked}: an agent may deny it, or allow what its own rules allow",
            hint=Next("deny"),
        )


def _may_itself(parent: WorkerDir, worker: WorkerDir, question: Mapping[str, Any], answer: str) -> bool:
    """Tell whether the rules of an agent allow it this very call, in the same folder, and the answer allows no more."""
    order, folder = read_order(parent), read_quietly(worker.spec).get("cwd")
    if order is None or question.get("isCut") or meaning(question.get("means"), answer) != ALLOW:
        return False
    tool, arguments = str(question.get("tool")), question.get("arguments") or {}
    if order.get("readOnly") or folder != read_quietly(parent.spec).get("cwd") or not _has(order.get("tools"), tool):
        return False
    real = Resolver(str(folder))
    own: Rules = order.get("permissions") or []
    above: list[Rules] = order.get("deniedAbove") or []
    is_denied = any(decide(rules, tool, arguments, real) == "deny" for rules in above)
    return not is_denied and decide(own, tool, arguments, real) == "allow"


def _has(tools: list[str] | None, tool: str) -> bool:
    """Tell whether an agent has a tool at all."""
    return tools is None or tool.lower() in {name.partition("(")[0].strip().lower() for name in tools}
