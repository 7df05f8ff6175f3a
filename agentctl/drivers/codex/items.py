"""Turns Codex's items into rows of activity: one row for an item's start, one for its end."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from typing import Any

from agentctl.domain.activity.row import Phase, Row, RowType, message_text
from agentctl.domain.text.plaintext import beginning
from agentctl.drivers.values import list_in, object_in, text_in

#: The tool that runs commands, and the one that changes files, as the model knows them.
SHELL, PATCH = "shell", "apply_patch"
#: More of a tool's output than anybody reads in a tree; the raw output is complete.
_LONGEST = 20_000
#: Shells whose call is left out of a command; a shell in another folder may be anything, and is shown.
_SHELL = re.compile(r"(?:/usr)?/bin/(?:ba|da|k|z)?sh")
#: The kinds of a change of a file; the last one is ours, for the new name of a file that is also moved.
_WRITES, _DELETE, _MOVE = ("add", "update"), "delete", "move"
_STATUS = {"inProgress": "running", "completed": "completed", "failed": "failed", "declined": "denied"}
#: Items that are the work of a tool but carry no status and no result.
_PLAIN_TOOLS = {
    "webSearch": "web_search",
    "imageView": "view_image",
    "imageGeneration": "image_generation",
    "sleep": "sleep",
}
_NOTES = {
    "contextCompaction": "the context was compacted",
    "enteredReviewMode": "review mode entered",
    "exitedReviewMode": "review mode left",
    "hookPrompt": "a hook added a prompt",
}
_TOOLS = frozenset(
    {"commandExecution", "fileChange", "mcpToolCall", "dynamicToolCall", "functionCallOutput", "collabAgentToolCall"}
)


def is_known(item: Mapping[str, Any]) -> bool:
    """Return whether items of this type are known."""
    kind = text_in(item.get("type"))
    is_text = kind in {"userMessage", "agentMessage", "reasoning", "plan", "subAgentActivity"}
    return is_text or is_tool(item) or kind in _NOTES


def is_tool(item: Mapping[str, Any]) -> bool:
    """Return whether an item is a call of a tool."""
    kind = text_in(item.get("type"))
    return kind in _TOOLS or kind in _PLAIN_TOOLS


def item_row(item: Mapping[str, Any], *, is_done: bool, parent: str | None) -> Row | None:
    """Return the row of an item that has begun or is done; None if only its end has one."""
    if is_tool(item):
        return _tool_row(item, is_done=is_done, parent=parent)
    if not is_done:
        return None
    kind, item_id = text_in(item.get("type")), text_in(item.get("id"))
    match kind:
        case "userMessage":
            return Row(RowType.MESSAGE, item_id, parent=parent, name="user", text=_joined(item.get("content")))
        case "agentMessage":
            return Row(RowType.MESSAGE, item_id, parent=parent, text=message_text(text_in(item.get("text"))))
        case "reasoning":
            text = _joined(item.get("summary")) or _joined(item.get("content"))
            return Row(RowType.THOUGHT, item_id, parent=parent, text=text) if text else None
        case "plan":
            return Row(RowType.MESSAGE, item_id, parent=parent, name="plan", text=text_in(item.get("text")))
        case _ if kind in _NOTES:
            return Row(RowType.NOTE, item_id, parent=parent, text=_NOTES[kind])
        case _:
            return None


def _tool_row(item: Mapping[str, Any], *, is_done: bool, parent: str | None) -> Row:
    known = _STATUS.get(text_in(item.get("status")))
    return Row(
        RowType.TOOL,
        text_in(item.get("id")),
        phase=Phase.END if is_done else Phase.START,
        parent=parent,
        status=(known if known != "running" else None) or "completed" if is_done else "running",
        name=policy_tool_name(item),
        text=beginning(_result(item), _LONGEST) or None if is_done else None,
        detail=item_arguments(item),
    )


def policy_tool_name(item: Mapping[str, Any]) -> str:
    """Return a tool's name, as the rules of the policy use it."""
    kind = text_in(item.get("type"))
    match kind:
        case "commandExecution":
            return SHELL
        case "fileChange":
            return PATCH
        case "mcpToolCall":
            return mcp_name(item.get("server"), item.get("tool"))
        case "functionCallOutput":
            return text_in(item.get("name")) or kind
        case "collabAgentToolCall" | "dynamicToolCall":
            return text_in(item.get("tool")) or kind
        case _:
            return _PLAIN_TOOLS.get(kind, kind)


def mcp_name(server: Any, tool: Any) -> str:
    """Return the name of an MCP server's tool."""
    return f"mcp__{text_in(server)}__{text_in(tool)}"


def item_arguments(item: Mapping[str, Any]) -> dict[str, Any]:
    """Return a tool's arguments, and the exit code of a command."""
    match item.get("type"):
        case "commandExecution":
            return _some(item, "cwd", "exitCode") | {"command": model_command(item.get("command"))}
        case "fileChange":
            return patch_arguments(item, _LONGEST)
        case "mcpToolCall" | "dynamicToolCall":
            value = item.get("arguments")
            return value if isinstance(value, dict) else {"arguments": value}
        case "collabAgentToolCall":
            return _some(item, "prompt", "model", "receiverThreadIds")
        case _:
            return _some(item, "query", "action", "path", "durationMs", "namespace")


def model_command(command: Any) -> str:
    """Return a command as the model wrote it, without the call of the shell in which Codex wraps it.

    >>> model_command("/bin/bash -lc 'touch a'"), model_command("/home/me/bash -lc 'touch a'")
    ('touch a', "/home/me/bash -lc 'touch a'")
    """
    text = text_in(command)
    try:
        words = shlex.split(text)
    except ValueError:
        return text
    is_wrapped = len(words) == 3 and words[1] in {"-c", "-lc"} and _SHELL.fullmatch(words[0]) is not None
    return words[2] if is_wrapped else text


def item_changes(item: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return the files that a change touches, and how: add, delete or update, and move for the new name of a moved one.

    A file of which no name is known has an empty one: no narrow rule matches that.

    >>> kind = {"type": "update", "move_path": "/b"}
    >>> item_changes({"changes": [{"path": "/a", "kind": kind}]})
    [{'path': '/a', 'kind': 'update'}, {'path': '/b', 'kind': 'move'}]
    """
    changes: list[dict[str, str]] = []
    for change in map(object_in, list_in(item.get("changes"))):
        kind = object_in(change.get("kind"))
        changes.append({"path": text_in(change.get("path")), "kind": text_in(kind.get("type"))})
        if kind.get("move_path") is not None:
            changes.append({"path": text_in(kind["move_path"]), "kind": _MOVE})
    return changes or [{"path": "", "kind": ""}]


def contents_of(item: Mapping[str, Any]) -> dict[str, str]:
    """Return what a change writes into each file: a deletion writes nothing."""
    changes = [object_in(change) for change in list_in(item.get("changes"))]
    return {
        text_in(change.get("path")): change["diff"]
        for change in changes
        if isinstance(change.get("diff"), str) and not _is_deletion(change)
    }


def _is_deletion(change: Mapping[str, Any]) -> bool:
    return object_in(change.get("kind")).get("type") == _DELETE


def patch_arguments(item: Mapping[str, Any], longest: int | None = None) -> dict[str, Any]:
    """Return a change of files as arguments: its files first, then what is written into each.

    Each text is an argument of its own: so it is shown line by line, and none can look like the beginning of another.

    Args:
        longest: Of more of a text only the beginning is returned.
    """
    texts = contents_of(item)
    written = {f"diff of {path}": beginning(text, longest) if longest else text for path, text in texts.items()}
    return {"changes": item_changes(item), **written}


def is_told_whole(item: Mapping[str, Any]) -> bool:
    """Return whether all is known of a change of files: each name and, but for a deletion, what is written."""
    changes, contents = item_changes(item), contents_of(item)
    written = [change["path"] for change in changes if change["kind"] in _WRITES]
    return (
        all(change["path"] and change["kind"] in {*_WRITES, _DELETE, _MOVE} for change in changes)
        and len(written) == len(set(written))
        and all(path in contents for path in written)
    )


def touched_by(item: Mapping[str, Any]) -> list[str]:
    """Return the files that a successful change of files has touched, a moved one under both names."""
    if item.get("type") != "fileChange" or item.get("status") != "completed":
        return []
    changes = [object_in(change) for change in list_in(item.get("changes"))]
    paths = [name for one in changes for name in (one.get("path"), object_in(one.get("kind")).get("move_path"))]
    return [path for path in paths if isinstance(path, str) and path]


def _result(item: Mapping[str, Any]) -> str:
    match item.get("type"):
        case "commandExecution":
            return text_in(item.get("aggregatedOutput"))
        case "fileChange":
            gone = [one for one in map(object_in, list_in(item.get("changes"))) if _is_deletion(one)]
            return "\n".join(text_in(one.get("diff")) for one in gone)
        case "mcpToolCall":
            error = text_in(object_in(item.get("error")).get("message"))
            return error or _joined(object_in(item.get("result")).get("content"))
        case "dynamicToolCall":
            return _joined(item.get("contentItems"))
        case "functionCallOutput":
            return text_in(item.get("output")) or _joined(item.get("output"))
        case "collabAgentToolCall":
            return reports_in(item)
        case _:
            return ""


def reports_in(item: Mapping[str, Any]) -> str:
    """Return what sub-agents have reported, by a call about them."""
    states = object_in(item.get("agentsStates")).values()
    return "\n".join(filter(None, (text_in(object_in(state).get("message")) for state in states)))


def row_id(name: str, earlier: int) -> str:
    """Return a row id that is unique over all runs: each run counts from 1 again.

    >>> row_id("note:1", 0), row_id("note:1", 2)
    ('note:1', 'note:1:2')
    """
    return f"{name}:{earlier}" if earlier else name


def _joined(parts: Any) -> str:
    """Return the text of a list of strings or of `{text}`."""
    return "\n".join(filter(None, (text_in(part) or text_in(object_in(part).get("text")) for part in list_in(parts))))


def _some(item: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    return {key: item[key] for key in keys if item.get(key) is not None}
