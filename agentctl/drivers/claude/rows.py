"""Turns what Claude Code prints into rows of activity: messages, thoughts, tool calls, sub-agents, usage."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from agentctl.domain.activity.row import PROMPT, Phase, Row, RowType, message_text
from agentctl.drivers.claude.usage import Tokens, tokens_of
from agentctl.drivers.values import bounded_text, bounded_values, list_in, object_in, sub_agent_detail, text_in
from agentctl.lean import NamedTuple

#: The tool that starts a sub-agent: `Task` in its list of tools, `Agent` in the stream.
AGENT_TOOLS = frozenset({"Agent", "Task"})
#: The model of messages that the program wrote itself, such as API errors.
SYNTHETIC = "<synthetic>"
_FILE_TOOLS = {"Write": "file_path", "Edit": "file_path", "MultiEdit": "file_path", "NotebookEdit": "notebook_path"}
#: What a task's status means for its sub-agent's row.
_TASK_STATUS = {"completed": "completed", "failed": "failed", "stopped": "cancelled", "killed": "cancelled"}
_SILENT_BLOCKS = frozenset({"redacted_thinking", "image", "document"})


class _ProgramTask(NamedTuple):
    """A sub-agent or a command that the program runs as a task of its own."""

    call: str
    agent_type: str | None
    is_background: bool


class _ToolCall(NamedTuple):
    """A tool call that has no result yet."""

    name: str
    file: str | None


class ClaudeTranscript:
    """Turns lines about messages and tasks into rows, and keeps what the outcome needs."""

    def __init__(self) -> None:
        #: Unknown types of lines and blocks, and how often each came.
        self.unknown: Counter[str] = Counter()
        self.touched_files: list[str] = []
        #: The text of the newest message of the agent itself, piece by piece.
        self._answer: list[str] = []
        self._answer_id = ""
        self._rounds: set[str] = set()
        self._counted: set[str] = set()
        #: The sum of the usage rows since the last result.
        self._reported = Tokens()
        self._results = self._lines = 0
        self._calls: dict[str, _ToolCall] = {}
        #: The calls that started sub-agents, and those of them whose sub-agents are still at work.
        self._agents: set[str] = set()
        self._working: set[str] = set()
        #: What they were told by their calls, until they are heard to be told it.
        self._prompts: dict[str, str] = {}
        self._tasks: dict[str, _ProgramTask] = {}
        self.background: set[str] = set()

    @property
    def answer(self) -> str:
        """The text of the agent's newest message."""
        return "".join(self._answer)

    @property
    def tool_rounds(self) -> int:
        """The number of the agent's messages that called tools."""
        return len(self._rounds)

    def agent_of(self, task_id: str) -> tuple[str | None, str | None]:
        """Return the row id and the type of the sub-agent with this task id."""
        task = self._tasks.get(task_id)
        return (task.call, task.agent_type) if task else (task_id or None, None)

    # -- messages ------------------------------------------------------------------------------------------------

    def rows(self, line: Mapping[str, Any]) -> Iterator[Row]:
        """Yield the rows of an `assistant` or `user` line."""
        self._lines += 1
        message, parent = object_in(line.get("message")), text_in(line.get("parent_tool_use_id")) or None
        is_user = line.get("type") == "user"
        if not is_user and parent is None and message.get("model") != SYNTHETIC:
            self._begin_answer(text_in(message.get("id")))
        base = text_in(line.get("uuid")) or f"line-{self._lines}"
        content = message.get("content")
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else list_in(content)
        for number, block in enumerate(blocks):
            row_id = f"{base}-{number}" if number else base
            if is_user:
                yield from self._user_block(object_in(block), row_id, parent, line)
            else:
                yield from self._assistant_block(object_in(block), row_id, parent, message)
        if not is_user:
            yield from self._usage(message, parent)

    def _begin_answer(self, message_id: str) -> None:
        if message_id != self._answer_id or not message_id:
            self._answer_id = message_id
            self._answer.clear()

    def _assistant_block(
        self, block: dict[str, Any], row_id: str, parent: str | None, message: Mapping[str, Any]
    ) -> Iterator[Row]:
        kind, text = text_in(block.get("type")), text_in(block.get("text"))
        is_synthetic = message.get("model") == SYNTHETIC
        if kind == "text":
            is_own = parent is None and not is_synthetic
            if is_own:
                self._answer.append(text)
            # If nobody sees the end, this row is all that is known of the last message.
            shown = message_text(text) if is_own else bounded_text(text)
            yield Row(RowType.NOTE if is_synthetic else RowType.MESSAGE, row_id, parent=parent, text=shown)
        elif kind == "thinking":
            yield Row(RowType.THOUGHT, row_id, parent=parent, text=bounded_text(text_in(block.get("thinking"))))
        elif kind.endswith("tool_use"):
            if parent is None:
                self._rounds.add(text_in(message.get("id")) or row_id)
            yield self._call(block, row_id, parent)
        elif kind.endswith("tool_result"):
            yield from self._result(block, row_id, parent, {})
        elif kind not in _SILENT_BLOCKS:
            self.unknown[f"block {kind}"] += 1

    def _user_block(
        self, block: dict[str, Any], row_id: str, parent: str | None, line: Mapping[str, Any]
    ) -> Iterator[Row]:
        kind = text_in(block.get("type"))
        if kind.endswith("tool_result"):
            yield from self._result(block, row_id, parent, line)
        elif kind == "text":
            # Without a parent, it is a line of the program itself to its agent ("continue where it stopped").
            is_prompt = parent is not None
            if parent is not None and self._prompts.pop(parent, None) == text_in(block.get("text")):
                return
            text = bounded_text(text_in(block.get("text")))
            yield Row(
                RowType.MESSAGE if is_prompt else RowType.NOTE,
                row_id,
                parent=parent,
                name="user" if is_prompt else None,
                text=text,
            )
        elif kind not in _SILENT_BLOCKS:
            self.unknown[f"block {kind}"] += 1

    # -- tools and sub-agents ------------------------------------------------------------------------------------

    def _call(self, block: dict[str, Any], row_id: str, parent: str | None) -> Row:
        call_id, name = text_in(block.get("id")) or row_id, text_in(block.get("name"))
        arguments = object_in(block.get("input"))
        if name in AGENT_TOOLS:
            self._agents.add(call_id)
            self._working.add(call_id)
            self._prompts[call_id] = text_in(arguments.get(PROMPT))
            return Row(
                RowType.AGENT,
                call_id,
                Phase.START,
                parent,
                status="running",
                agent_type=text_in(arguments.get("subagent_type")) or None,
                name=bounded_text(text_in(arguments.get("description"))) or None,
                detail=sub_agent_detail(arguments, ("subagent_type", "description")),
            )
        path = text_in(arguments.get(_FILE_TOOLS.get(name, ""))) or None
        self._calls[call_id] = _ToolCall(name, path)
        return Row(
            RowType.TOOL, call_id, Phase.START, parent, status="running", name=name, detail=bounded_values(arguments)
        )

    def _result(self, block: dict[str, Any], row_id: str, parent: str | None, line: Mapping[str, Any]) -> Iterator[Row]:
        call_id = text_in(block.get("tool_use_id")) or row_id
        text, status = bounded_text(_flat(block.get("content"))) or None, _status(block, call_id, line)
        if call_id in self._agents:
            if call_id in self._working and not self._goes_on(call_id):
                self._working.discard(call_id)
                yield Row(RowType.AGENT, call_id, Phase.END, parent, status=status, text=text)
            return
        call = self._calls.pop(call_id, _ToolCall("", None))
        if call.file and status == "completed" and call.file not in self.touched_files:
            self.touched_files.append(call.file)
        yield Row(RowType.TOOL, call_id, Phase.END, parent, status=status, name=call.name or None, text=text)

    def _goes_on(self, call_id: str) -> bool:
        """Return whether a sub-agent goes on in the background, so that its call's result is not its end."""
        return any(task.call == call_id and task.is_background for task in self._tasks.values())

    def task(self, line: Mapping[str, Any]) -> Iterator[Row]:
        """Yield the rows of a `system` line about a task."""
        task_id, subtype = text_in(line.get("task_id")), line.get("subtype")
        if subtype == "background_tasks_changed":
            tasks = [object_in(task) for task in list_in(line.get("tasks"))]
            self.background = {text_in(task.get("task_id")) for task in tasks}
        elif subtype == "task_started":
            call, agent_type = text_in(line.get("tool_use_id")), text_in(line.get("subagent_type")) or None
            self._tasks[task_id] = _ProgramTask(call or task_id, agent_type, line.get("is_backgrounded") is True)
            if line.get("is_backgrounded") is True:
                self.background.add(task_id)
        elif subtype == "task_updated":
            patch, task = object_in(line.get("patch")), self._tasks.get(task_id)
            if task and patch.get("is_backgrounded") is True:
                self._tasks[task_id] = task._replace(is_background=True)
        elif subtype == "task_progress":
            yield from self._task_progress(task_id, text_in(line.get("description")))
        elif subtype == "task_notification":
            self.background.discard(task_id)
            yield from self._task_end(task_id, line)

    def _task_progress(self, task_id: str, text: str) -> Iterator[Row]:
        call = self._tasks[task_id].call if task_id in self._tasks else ""
        if call in self._working and text:
            yield Row(RowType.AGENT, call, Phase.PROGRESS, text=bounded_text(text))

    def _task_end(self, task_id: str, line: Mapping[str, Any]) -> Iterator[Row]:
        task = self._tasks.pop(task_id, None)
        call = task.call if task else text_in(line.get("tool_use_id"))
        if call in self._working:
            self._working.discard(call)
            status = _TASK_STATUS.get(text_in(line.get("status")), "failed")
            text = bounded_text(text_in(line.get("summary"))) or None
            yield Row(
                RowType.AGENT,
                call,
                Phase.END,
                status=status,
                agent_type=task.agent_type if task else None,
                text=text,
            )

    # -- usage ---------------------------------------------------------------------------------------------------

    def _usage(self, message: Mapping[str, Any], parent: str | None) -> Iterator[Row]:
        message_id, usage = text_in(message.get("id")), message.get("usage")
        if not message_id or message_id in self._counted or not isinstance(usage, dict):
            return
        if message.get("model") == SYNTHETIC:
            return
        self._counted.add(message_id)
        tokens = tokens_of(usage)
        self._reported = self._reported.plus(tokens)
        yield Row(RowType.USAGE, message_id, parent=parent, detail=tokens._asdict())

    def settle(self, total: Tokens) -> Iterator[Row]:
        """Yield, at a result, a row for the tokens that no message has reported.

        A message's usage is what was known when it began: nearly all of its output is missing.
        """
        self._results += 1
        rest, self._reported = total.beyond(self._reported), Tokens()
        if any(rest):
            yield Row(RowType.USAGE, f"result-{self._results}", detail=rest._asdict())


def _status(block: Mapping[str, Any], call_id: str, line: Mapping[str, Any]) -> str:
    if block.get("is_error") is not True:
        return "completed"
    for meta in map(object_in, list_in(line.get("tool_result_meta"))):
        if meta.get("id") == call_id:
            if object_in(meta.get("permission_decision")).get("decision") == "reject":
                return "denied"
            return "cancelled" if meta.get("non_execution_kind") == "user-rejected" else "failed"
    return "failed"


def _flat(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(text_in(object_in(part).get("text")) for part in list_in(content))
