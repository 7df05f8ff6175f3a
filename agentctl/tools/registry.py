"""Lists the tools of each dialect and runs their calls; an error is returned as a result."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from agentctl.domain.names import WorkerId
from agentctl.errors import AgentctlError, BrokenOff, NotFound, Refused, UsageError, WaitStopped
from agentctl.lean import NamedTuple
from agentctl.operations.delegate.delegating import TaskStatus
from agentctl.operations.wait.keys import Sight, gather
from agentctl.tools import agents, delegation, subtasks, worker
from agentctl.tools.answer_schemas import answer_schema
from agentctl.tools.arguments import call_arguments
from agentctl.tools.definition import Call, Ends, Pending, Tool
from agentctl.tools.descriptions import instructions
from agentctl.tools.hints import error_result
from agentctl.tools.listing import LIST_AGENTS
from agentctl.tools.results import question_for_model, question_of
from agentctl.tools.scope import Scope, ScopeSource, Situation, is_for_worker, is_granted
from agentctl.tools.session import Session
from agentctl.tools.waiting import WAIT, told_at_rest

#: What every dialect offers to a worker.
_OF_WORKERS = (worker.ASK_USER, worker.REPORT)
_CODEX = (
    agents.SPAWN_AGENT, agents.SEND_INPUT, WAIT, agents.CLOSE_AGENT, agents.RESUME_AGENT, LIST_AGENTS,
)  # fmt: skip
#: The tools that blocking ones need besides them: to wait for agents that still run, to answer and to stop them.
_BESIDE = (WAIT, agents.SEND_INPUT, agents.CLOSE_AGENT)
_CLAUDE = (delegation.TASK, delegation.TASK_PARALLEL)
_FAILED = (TaskStatus.FAILED, TaskStatus.TIMEOUT)
DIALECTS = ("codex", "claude", "subtask", "all")
DEFAULT_DIALECT = "codex"


class Offered(NamedTuple):
    """A tool as it is offered now."""

    tool: Tool
    description: str

    def to_json(self) -> dict[str, Any]:
        """Return it as the Model Context Protocol lists it."""
        answers = self.tool.answers
        return {
            "name": self.tool.name,
            "description": self.description,
            "inputSchema": self.tool.schema,
            **({} if answers is None else {"outputSchema": answer_schema(answers)}),
            "annotations": {
                "readOnlyHint": self.tool.read_only,
                "destructiveHint": self.tool.destructive,
                "openWorldHint": self.tool.spawns,
            },
        }


class Toolbox:
    """The tools of one dialect, for one session.

    Args:
        call_s: How long a call may take, if the server was given a limit; 0: without a limit.
    """

    def __init__(self, source: ScopeSource, dialect: str = DEFAULT_DIALECT, *, call_s: float | None = None) -> None:
        if dialect not in DIALECTS:
            raise UsageError(f"there is no dialect {dialect!r}", hint=f"known: {', '.join(DIALECTS)}")
        self.source = source
        self.dialect = dialect
        self.call_s = call_s
        self.session = Session(source)

    def renewed(self) -> Toolbox:
        """Return the same tools for another session."""
        return Toolbox(self.source, self.dialect, call_s=self.call_s)

    def instructions(self) -> str:
        """Return the instructions for a client; they name only tools that it is offered."""
        try:
            situation = self.session.situation()
            may_start = any(tool.spawns and _may(tool, situation) for tool in self._tools(situation))
        except (AgentctlError, OSError):  # Each call will say what is wrong.
            may_start = True
        return instructions(self.dialect, may_start=may_start)

    def offered(self) -> list[Offered]:
        """Return the tools that may be used now, always in the same order."""
        situation = self.session.situation()._replace(
            call_s=self.call_s, subtasks_to_the_end=self._subtasks_to_the_end()
        )
        return [Offered(tool, tool.describe(situation)) for tool in self._tools(situation) if _may(tool, situation)]

    def waits_through_questions(self, pending: Pending) -> bool:
        """Return whether a call goes on waiting when one of its workers asks: people who look at the task answer it.

        The descriptions promise what is decided here.
        """
        return is_for_worker() or (_is_subtask(pending.tool) and self._subtasks_to_the_end())

    def _subtasks_to_the_end(self) -> bool:
        # A client that waits without a limit wants the end; any other one could give up before somebody answers.
        return is_for_worker() or self.call_s == 0

    def _tools(self, situation: Situation) -> Iterator[Tool]:
        named: dict[str, tuple[Tool, ...]] = {
            "codex": _CODEX,
            "claude": (*_CLAUDE, *_BESIDE),
            "subtask": (*subtasks.subtask_tools(situation), *_BESIDE) if self.dialect == "subtask" else (),
        }
        every = (*_CODEX, *_CLAUDE, *subtasks.subtask_tools(situation)) if self.dialect == "all" else ()
        yield from every or named[self.dialect]
        if situation.is_worker:
            yield from _OF_WORKERS

    def begin(self, name: str, given: object, call: Call) -> Any:
        """Call a tool; return its answer, or a `Pending` if it answers later.

        Of expected errors only `BrokenOff` is raised; any other is a result, `{"error", "hint"}`.
        """
        try:
            tool = self._named(name)
            arguments = call_arguments(tool, given)
            scope = self._scope_for(tool)
            if scope is None:
                assert tool.without_task is not None
                return tool.without_task(arguments)
            if not scope.grants(tool.name):
                raise Refused(
                    f"this agent may not use {tool.name}",
                    hint="its definition lists its tools, and this one is not among them",
                )
            begun = tool.run(scope, arguments, call)
            if isinstance(begun, Pending):
                scope.note(*begun.targets)
            return begun
        except WaitStopped as stop:
            return {**stop.to_json(), "error": stop.message}
        except BrokenOff:
            raise
        except (AgentctlError, OSError) as error:
            return self.error_result(error)

    def _scope_for(self, tool: Tool) -> Scope | None:
        if tool.without_task is not None:
            return self.session.scope_or_none()
        return self.session.scope(create=tool.spawns)

    def call(self, name: str, given: object, call: Call) -> Any:
        """Call a tool, and wait for its answer as long as the call may take."""
        begun = self.begin(name, given, call)
        return self.finish(self.session.scope(), begun, call) if isinstance(begun, Pending) else begun

    def finish(self, scope: Scope, pending: Pending, call: Call) -> Any:
        """Wait until all workers of a call have ended, and answer; if its time is over first, say which still run.

        Args:
            scope: The scope in which it was begun, whichever task is chosen by now.
        """
        try:
            sight = self.watch(scope, pending, call)
            if all(key in sight and sight[key].is_terminal for key in pending.keys):
                return self.answer(scope, pending)
            return _still_running(scope, pending, sight)
        except WaitStopped as stop:
            return self._stopped(scope, pending, stop)
        except BrokenOff:
            raise
        except (AgentctlError, OSError) as error:
            return self.error_result(error)

    def _stopped(self, scope: Scope, pending: Pending, stop: WaitStopped) -> Any:
        """Answer a caller that is cancelled or was paused."""
        with_caller = self._ends_of(pending).with_caller
        answer = with_caller(scope, pending) if with_caller is not None and stop.stopped == "cancelled" else None
        ids = [target.id for target in pending.targets]
        return answer or {**stop.to_json(), "error": stop.message, "ids": ids}

    def watch(
        self, scope: Scope, pending: Pending, call: Call, *, asked: frozenset[tuple[WorkerId, int]] | None = None
    ) -> Sight:
        """Wait until all have ended or, with `asked`, until there is a question that is not in it."""

        def is_enough(sight: Sight) -> bool:
            if all(key in sight and sight[key].is_final for key in pending.keys):
                return True
            news = ((key, seen) for key, seen in sight.items() if seen.is_news and not seen.is_terminal)
            return asked is not None and any((key, seen.seq) not in asked for key, seen in news)

        call.waits_for(scope, pending.targets)
        return gather(scope.task, pending.keys, is_enough=is_enough, timeout_s=call.limit_s, broken=call.broken)

    def answer(self, scope: Scope, pending: Pending) -> Any:
        """Return the answer of a tool whose workers have all ended."""
        finish = self._ends_of(pending).finish
        assert finish is not None
        return finish(scope, pending)

    def error_result(self, error: Exception) -> dict[str, Any]:
        """Return an error as a result, with a hint that names tools of this dialect."""
        return error_result(error, _names_in(self.dialect))

    def _ends_of(self, pending: Pending) -> Ends:
        """Return how a tool answers; the tools of sub-tasks all alike, even if their agent is no longer defined."""
        if _is_subtask(pending.tool):
            return subtasks.SUBTASK_ENDS
        return self._named(pending.tool).ends

    def _named(self, name: str) -> Tool:
        """Return a tool by any of its names, in any dialect: a session may have changed its dialect."""
        for tool in (*_CODEX, *_CLAUDE, *_OF_WORKERS):
            if name == tool.name or name in tool.other_names:
                return tool
        if _is_subtask(name):
            return subtasks.subtask_tool(self.session.situation(), name)
        known = ", ".join(one.tool.name for one in self.offered())
        raise NotFound(f"there is no tool {name!r}", hint=f"known: {known}")


def _names_in(dialect: str) -> set[str]:
    """Return the names of the tools of a dialect, without those that are made for each agent."""
    named = {"codex": _CODEX, "claude": (*_CLAUDE, *_BESIDE), "subtask": _BESIDE, "all": (*_CODEX, *_CLAUDE)}
    return {tool.name for tool in named[dialect]}


def _is_subtask(tool: str) -> bool:
    return tool.startswith(subtasks.SUBTASK_PREFIX)


def _may(tool: Tool, situation: Situation) -> bool:
    return is_granted(tool.name, situation.granted) and (not tool.spawns or situation.depth_left > 0)


def is_error(answer: Any) -> bool:
    """Return whether an answer as a whole is an error: of the call, or of its only agent.

    A cancelled agent is not an error; neither is one failure among several agents, nor what a `wait` reports.
    """
    if not isinstance(answer, Mapping):
        return False
    if "error" in answer and "status" not in answer:
        return True
    has_failed = answer.get("subTaskStatus") == "Error" or answer.get("status") in _FAILED
    return has_failed and "previous_status" not in answer  # Closing a failed agent succeeds.


def _still_running(scope: Scope, pending: Pending, sight: Sight) -> dict[str, Any]:
    status, questions = {}, {}
    for target in pending.targets:
        seen = sight.get(target.key)
        status[target.id] = str(seen.status) if seen else "queued"
        question = question_of(scope.agent_of(target.key)) if seen and seen.is_news and not seen.is_terminal else None
        if question is not None:
            questions[target.id] = question_for_model(question)
    ids = [target.id for target in pending.targets]
    answer: dict[str, Any] = {"still_running": True, "ids": ids, "status": status}
    answer |= {"questions": questions} if questions else {}
    answer |= told_at_rest({target: sight[target.key] for target in pending.targets if target.key in sight})
    first = "answer the questions with send_input, then " if questions else ""
    hint = f"no agent was stopped: {first}call wait with these ids, repeatedly, until all have ended"
    return answer | {"hint": hint}
