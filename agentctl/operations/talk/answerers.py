"""Who may answer a worker's request for permission: a person, or an agent above it whose own rules allow that call.

An agent that could approve its child's requests could do anything by starting a child. So it may only deny, or allow
what its own rules allow it. It cannot answer its own requests, or those of workers that are not below it. All surfaces
check this: command line, tools, Python. An answer by a form that the user's client shows counts as the user's.
"""

from __future__ import annotations

from agentctl.adapters.files import read_known
from agentctl.adapters.realpath import Resolver
from agentctl.adapters.taskdir import WorkerDir
from agentctl.domain.agent.permissions import Rules, answer_by
from agentctl.domain.question import ALLOW, DENY, EVERYTHING, Question, offered, question_within
from agentctl.errors import Next, Refused
from agentctl.lean import NamedTuple
from agentctl.operations.where.agents_above import AgentAbove, agent_above
from agentctl.operations.where.calling import Caller, is_from_worker
from agentctl.operations.where.lineage import shown_caller
from agentctl.operations.where.sandbox import is_in_sandbox_of
from agentctl.supervision.worker.kinship import descendants
from agentctl.supervision.worker.spec import read_order

USER, SESSION = "user", "session"


class Answerer(NamedTuple):
    """Who answers a question."""

    #: The worker that answers; None for a person, or for a person's session with an agent program.
    worker: Caller | None
    #: A model chose the answer.
    is_agent: bool
    #: What shows that, where no worker does.
    above: AgentAbove | None = None

    def name(self, worker: WorkerDir) -> str:
        """Return the name of the answerer as the log of a worker's task has it."""
        if self.worker is None:
            return SESSION if self.is_agent else USER
        is_near = self.worker.task.path == worker.task.path
        return self.worker.instance if is_near else str(self.worker.worker.id)


def who_answers(*, by_tool: bool = False, by_form: bool = False) -> Answerer:
    """Return who is answering by this call.

    Args:
        by_tool: The call came through a tool for agents.
        by_form: The answer came from a form that the user's client has shown.
    """
    worker = shown_caller()
    # The client that shows a form is an agent program, and above this process.
    above = agent_above() if worker is None and not by_form and not by_tool else None
    # A worker of another host could fill in the form itself: it has the client.
    is_agent = worker is not None or by_tool or above is not None or is_from_worker()
    return Answerer(worker, is_agent, above)


def check_answerer(worker_dir: WorkerDir, question: Question, answer: str, who: Answerer) -> None:
    """Raise `Refused` if `who` may not give this answer to this question.

    Args:
        answer: An option's id, or a text.
    """
    if not question.is_permission:
        return  # An ordinary question: anybody may answer it.
    asked = f"{question.id} of {worker_dir.instance} is a request for permission"
    if is_in_sandbox_of(worker_dir):
        raise Refused(f"{asked}: it cannot be answered from within a sandbox", hint=Next("ask a person"))
    worker = who.worker
    if worker is not None and not any(one.path == worker_dir.path for one in descendants(worker.worker)):
        raise Refused(f"{asked}, and {worker.instance} is not above {worker_dir.instance}", hint=Next("ask a person"))
    if not who.is_agent or question.meaning(answer) == DENY:
        return
    if worker is None or not _may_do_itself(worker.worker, worker_dir, question, answer):
        seen = f" ({who.above})" if who.above is not None else ""
        raise Refused(
            f"{asked}: an agent may deny it, or allow what its own rules allow{seen}",
            hint=Next("deny"),
        )


def _may_do_itself(parent: WorkerDir, worker: WorkerDir, question: Question, answer: str) -> bool:
    """Return whether an agent's own rules allow this exact call in the same folder, and the answer allows no more."""
    order, folder = read_order(parent), read_known(worker.spec).get("cwd")
    is_offered = any(one.id == answer for one in offered(question, question_within(question, EVERYTHING)))
    if order is None or not is_offered or question.meaning(answer) != ALLOW or question.tool is None:
        return False
    tool, arguments = question.tool, question.arguments or {}
    if order.get("readOnly") or folder != read_known(parent.spec).get("cwd") or not _has(order.get("tools"), tool):
        return False
    real = Resolver(str(folder))
    own: Rules = order.get("permissions") or []
    above: list[Rules] = order.get("deniedAbove") or []
    is_denied = any(answer_by(rules, tool, arguments, real) == "deny" for rules in above)
    return not is_denied and answer_by(own, tool, arguments, real) == "allow"


def _has(tools: list[str] | None, tool: str) -> bool:
    """Return whether an agent has a tool at all."""
    return tools is None or tool.lower() in {name.partition("(")[0].strip().lower() for name in tools}
