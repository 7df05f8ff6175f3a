"""Reads the tool calls of ACP: their names as rules know them, their arguments, their results."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

from agentctl.domain.agent.permissions import SHELLS
from agentctl.domain.agent.telling_argument import DESCRIPTION
from agentctl.domain.text.plaintext import beginning
from agentctl.drivers.acp.wire import ToolCallUpdate, meta_of
from agentctl.drivers.claude.calls import read_by
from agentctl.drivers.codex.items import reports_in
from agentctl.drivers.values import object_in, sub_agent_detail, text_in

SHELL = "Bash"
#: The names under which rules know tools of these kinds; programs name only some of theirs.
_NAMES = {
    "read": "Read", "edit": "Edit", "delete": "Delete", "move": "Move", "search": "Grep", "execute": SHELL,
    "fetch": "WebFetch",
}  # fmt: skip
#: Tools that some programs name by themselves, as rules name them.
_SAME = frozenset({*_NAMES.values(), "Write", "MultiEdit", "NotebookEdit", "Glob", "WebSearch", "Agent", "Task"})
#: The same and the names of shells, as rules compare them, and how the names of a server's tools begin.
_KNOWN = frozenset({*map(str.lower, _SAME), *SHELLS})
_OF_SERVERS = "mcp__"
#: The name of a tool of which only its title is known, where that is the name of another tool.
_UNNAMED = "other"
#: The arguments in which a command for a shell stands.
_COMMANDS = frozenset({"command", "cmd"})
#: Kinds of calls that change nothing.
_READING = frozenset({"read", "search", "think", "fetch"})
_CHANGING = frozenset({"edit", "delete", "move"})
_ACTING = _CHANGING | {"execute"}
#: Tools that put a text into a file, and the arguments in which programs have that text, in small letters and without
#: underscores. Some programs leave it out where it stands in the call's content.
_WRITING = frozenset({"Edit", "Write", "MultiEdit", "NotebookEdit"})
_TEXTS = frozenset(
    {
        "code", "codeedit", "content", "contents", "diff", "edit", "edits", "filecontent", "filetext", "input",
        "newsource", "newstr", "newstring", "newtext", "patch", "patchtext", "replacement", "text",
    }
)  # fmt: skip
_PATHS = frozenset({"path", "file_path"})
#: Arguments that say where a call is made, and not what it does: a program may tell them before all others.
_PLACES = frozenset({"cwd"})
_AGENT_TOOLS = frozenset({"Agent", "Task"})
#: More of a tool's output than anybody reads in a tree; the raw output is complete.
_LONGEST = 20_000
_LONGEST_NAME = 80
#: How deep the text of an output may lie in it.
_DEEPEST = 20
#: The fields in which programs have the text of an output.
_OUTPUTS = ("output", "text", "content", "stdout", "error", "result")


class AcpCall:
    """A tool call, put together from all that was said about it."""

    def __init__(self, call_id: str, servers: Collection[str] = ()) -> None:
        self.id, self._servers = call_id, servers
        self.title, self.kind, self.status = "", "", "pending"
        self.arguments: dict[str, Any] = {}
        self._has_input = False
        self.parent: str | None = None
        self._own_name, self._is_of_server = "", False
        self._content: list[Any] = []
        self._output: Any = None
        self._streamed: list[str] = []
        self._paths: list[str] = []

    def take(self, update: ToolCallUpdate) -> None:
        """Take in what an update says; what it does not say stays as it is."""
        self.title = update.title or self.title
        self.kind = update.kind or self.kind
        self.status = update.status or self.status
        self._has_input = self._has_input or update.raw_input is not None
        if isinstance(update.raw_input, dict):
            self.arguments |= update.raw_input
        elif update.raw_input is not None:
            self.arguments["input"] = update.raw_input
        self._content = update.content if update.content is not None else self._content
        self._output = update.raw_output if update.raw_output is not None else self._output
        self._paths = [place.path for place in update.locations] if update.locations is not None else self._paths
        meta = meta_of(update)
        self._streamed.append(text_in(object_in(meta.get("terminal_output_delta")).get("data")))
        own = own_fields(meta)
        self._is_of_server = self._is_of_server or own.get("is_mcp_tool_call") is True
        self._own_name = text_in(own.get("toolName")) or self._own_name
        self.parent = parent_in(own) or self.parent

    @property
    def name(self) -> str:
        """The tool, as rules name it: a shell where it has a command, else as it is named.

        Codex takes a command for a search, or for the reading of a file, by its first words: also `find . -delete`.
        """
        return SHELL if self._is_command else self._plain_name

    @property
    def _is_command(self) -> bool:
        """Whether it is known to run a command; what a server's tool does with an argument of that name is its own."""
        return bool(_COMMANDS & self.arguments.keys()) and not self._plain_name.startswith(_OF_SERVERS)

    @property
    def _plain_name(self) -> str:
        """That of a server, by its kind, by its own name, or as people are told."""
        own = self._own_name or self._headline
        # Arguments are the model's; they name the tool only where the program itself does not.
        if self._is_of_server and not self._own_name:
            return f"mcp__{text_in(self.arguments.get('server'))}__{text_in(self.arguments.get('tool'))}"
        # A title may be the model's: it names a tool of a server only where the kind says nothing else.
        if (self._own_name or self.kind in {"other", ""}) and (of_server := server_tool(own, self._servers)):
            return of_server
        if self._own_name in _SAME:
            return self._own_name
        return _NAMES.get(self.kind) or (_UNNAMED if self._claimed_by_title else own)

    def reads(self, folder: str) -> list[str] | None:
        """Return the paths that a call of Claude Code's own tools reads; None where it may do anything else."""
        return read_by(self._own_name, self.arguments, folder)

    @property
    def own_name(self) -> str | None:
        """The program's own name of the tool; None where it tells none."""
        return self._own_name or None

    @property
    def claimed_name(self) -> str | None:
        """Another name that it may have, by its title alone or of what has a command; None where there is none."""
        plain = self._plain_name
        return self._claimed_by_title or (plain if self._is_command and plain.lower() not in SHELLS else None)

    @property
    def _claimed_by_title(self) -> str | None:
        """The name of a tool that it has by its title alone, which may be the model's; None where it claims none."""
        claimed = self._headline.strip()
        is_known = claimed.lower() in _KNOWN or claimed.lower().startswith(_OF_SERVERS)
        is_named = bool(self._own_name or _NAMES.get(self.kind) or self._is_of_server)
        return claimed if is_known and not is_named and not server_tool(claimed, self._servers) else None

    @property
    def _headline(self) -> str:
        return beginning(self.title.partition("\n")[0], _LONGEST_NAME)

    @property
    def is_agent(self) -> bool:
        """Whether it is the work of a sub-agent."""
        return self._own_name in _AGENT_TOOLS or bool(text_in(self.arguments.get("subagent_type")))

    @property
    def agent_type(self) -> str | None:
        """The type of its sub-agent."""
        return text_in(self.arguments.get("subagent_type")) or None

    @property
    def has_ended(self) -> bool:
        """Whether the program has said how it ended."""
        return self.status in {"completed", "failed"}

    @property
    def is_untold(self) -> bool:
        """Whether nothing but its name is known: it has not begun, and what it is to do may still be told."""
        return self.status == "pending" and not (self.arguments or self._paths or self._content)

    @property
    def is_being_written(self) -> bool:
        """Whether the model is still writing its arguments, of which the program tells that there are some."""
        return self.status == "pending" and self._has_input and not (self.arguments.keys() - _PLACES or self._content)

    @property
    def only_reads(self) -> bool:
        """Whether it changes nothing, by its kind."""
        return self.kind in _READING and not self._is_command

    @property
    def is_cut(self) -> bool:
        """Whether it changes files, or runs something, in a way that cannot be seen whole."""
        if self._has_own_text:
            return False
        if not self._writes_text:
            return self.kind in _ACTING and not self.arguments and not self._paths
        changed = self._diffs()
        if _PATHS & self.arguments.keys():
            return not changed
        # What was moved is named by its old path, and shown under the new one.
        return not changed or len({*self._paths} - {*changed}) > len({*changed} - {*self._paths})

    @property
    def _writes_text(self) -> bool:
        return self.kind == "edit" or self._plain_name in _WRITING

    @property
    def _has_own_text(self) -> bool:
        return any(key.replace("_", "").lower() in _TEXTS for key in self.arguments)

    def asked_arguments(self) -> dict[str, Any]:
        """Return its arguments as rules and people see them: with the text of an edit, wherever that stands."""
        named = self.telling_arguments()
        if not self._writes_text or self._has_own_text:
            return named
        return {**named, **({"changes": changes} if (changes := [*map(_change_in, self._blocks())]) else {})}

    def telling_arguments(self) -> dict[str, Any]:
        """Return its arguments, with the files that it touches even where only the program's own fields name them.

        A command is compared with rules by itself: what a program guesses of its files is shown beside it.
        """
        paths = [path for path in dict.fromkeys([*self._paths, *self._diffs()]) if path]
        named = dict(self.arguments)
        if paths and not _PATHS & named.keys():
            named["touches" if "command" in named else "paths"] = paths
        if not named and self.title:
            named["title"] = self.title
        return named

    def sub_agent_detail(self) -> dict[str, Any] | None:
        """Return the arguments of the call of a sub-agent, but for its type and for what its title says."""
        description = self.arguments.get(DESCRIPTION)
        is_titled = isinstance(description, str) and description in self.title
        return sub_agent_detail(self.arguments, {"subagent_type", *((DESCRIPTION,) if is_titled else ())})

    def let_go(self) -> None:
        """Forget what only its end was told with: there may be a million of them."""
        self.arguments = {"subagent_type": self.agent_type} if self.agent_type else {}
        self._content, self._output, self._paths, self._streamed = [], None, [], []

    def touched(self) -> list[str]:
        """Return the files that it has changed."""
        if self.status != "completed":
            return []
        return list(dict.fromkeys([*self._diffs(), *(self._paths if self.kind in _CHANGING else [])]))

    def result(self) -> str:
        """Return what it came to, as text."""
        shown = "\n".join(filter(None, map(_text_of, self._content)))
        said = shown or _flat(self._output) or "".join(self._streamed) or reports_in(self.arguments)
        return beginning(said, _LONGEST)

    def _diffs(self) -> list[str]:
        return [one.path for one in self._blocks()]

    def _blocks(self) -> list[Any]:
        """Return those of its content that show what becomes of a file: {path, old_text, new_text}."""
        return [one for one in self._content if isinstance(getattr(one, "path", None), str)]


def _change_in(block: Any) -> dict[str, Any]:
    return {"path": block.path, "oldText": block.old_text, "newText": block.new_text}


def server_tool(name: str, servers: Collection[str]) -> str | None:
    """Return the tool of an MCP server by the name that rules have for it; None if it is not a tool of these servers.

    >>> server_tool("agentctl_spawn_agent", ["agentctl"]), server_tool("mcp__agentctl__wait", ["agentctl"])
    ('mcp__agentctl__spawn_agent', 'mcp__agentctl__wait')
    """
    for server in servers:
        found = re.fullmatch(rf"(?:mcp__)?{re.escape(server)}(?:__|_|\.|/|: ?)([A-Za-z0-9_-]+)", name)
        if found:
            return f"mcp__{server}__{found[1]}"
    return None


def own_fields(meta: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that programs add to a call, some of them under a name of their own.

    >>> own_fields({"claudeCode": {"toolName": "Bash"}}), own_fields({"toolName": "shell"})
    ({'toolName': 'Bash'}, {'toolName': 'shell'})
    """
    found = {name: value for name, value in meta.items() if not isinstance(value, dict)}
    for value in meta.values():
        found |= object_in(value)
    return found


def parent_in(own: Mapping[str, Any]) -> str | None:
    """Return the call whose sub-agent an update is of, by the fields that programs add; None for the agent's own."""
    return text_in(own.get("parentToolUseId")) or text_in(own.get("parentToolCallId")) or None


def _text_of(content: Any) -> str:
    if getattr(content, "type", "") == "diff":
        return f"{content.path}\n{content.new_text}"
    return text_in(getattr(getattr(content, "content", None), "text", None))


def _flat(value: Any, depth: int = _DEEPEST) -> str:
    """Return the text in a tool's raw output, whose form is the program's own."""
    if isinstance(value, str):
        return value
    if depth == 0:
        return ""
    if isinstance(value, list):
        return "\n".join(filter(None, (_flat(one, depth - 1) for one in value)))
    fields = object_in(value)
    return next((_flat(fields[key], depth - 1) for key in _OUTPUTS if fields.get(key) is not None), "")
