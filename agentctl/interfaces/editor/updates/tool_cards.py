"""What a client is shown of a tool call: its kind, a title, the files that it is about, and what it changes in them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from agentctl.domain.text.plaintext import plain
from agentctl.interfaces.editor.updates.client_bounds import bounded_json
from agentctl.interfaces.editor.updates.contents import Content, look_content
from agentctl.interfaces.words.activity import label, short_line
from agentctl.interfaces.words.looks.call_kinds import CHANGES, tool_kind
from agentctl.interfaces.words.looks.call_look import call_look

Detail = Mapping[str, Any]
_PATHS = ("file_path", "path", "notebook_path", "filePath")
_LONGEST_PATH, _MOST_PATHS = 4000, 20
#: What a driver leaves at the end of a text that it has cut, which must not be shown as what a file is to contain.
_CUT = " [cut: "


def title_of(name: str, detail: Detail | None) -> str:
    """Return a call in one line."""
    return label("tool", name, None, detail, None)


def call_fields(name: str, detail: Detail | None, cwd: str) -> dict[str, Any]:
    """Return the fields of a tool call that follow from its arguments.

    Args:
        cwd: The folder from which relative paths lead.
    """
    fields: dict[str, Any] = {"title": title_of(name, detail), "kind": tool_kind(name)}
    if detail:
        fields["rawInput"] = bounded_json(dict(detail))
        paths = paths_in(detail, cwd)
        if paths:
            fields["locations"] = [{"path": path} for path in paths]
            changed = _changes(name, detail, cwd, paths[0])
            if changed:
                fields["content"] = changed
    return fields


def paths_in(detail: Detail, cwd: str) -> list[str]:
    r"""Return the files that a call names, absolute, and safe to show.

    >>> paths_in({"file_path": "a\x1b.py"}, "/src"), paths_in({"changes": [{"path": "/b"}, 5]}, "/src")
    (['/src/a\\x1b.py'], ['/b'])
    """
    changes = detail.get("changes")
    many = [one.get("path") for one in changes if isinstance(one, dict)] if isinstance(changes, list) else []
    named = [detail.get(key) for key in _PATHS] + many[:_MOST_PATHS]
    fit = [path for path in named if isinstance(path, str) and 0 < len(path) <= _LONGEST_PATH and _CUT not in path]
    return list(dict.fromkeys(plain(os.path.join(cwd, path)) for path in fit))


def _changes(name: str, detail: Detail, cwd: str, path: str) -> list[Content]:
    """Return what a call changes, of each file; nothing where it is not known whole."""
    is_cut = any(isinstance(value, str) and _CUT in value[-40:] for value in detail.values())
    if tool_kind(name) == CHANGES and not is_cut:
        look = call_look(name, detail)
        return [] if look is None else look_content(look, cwd, lambda text: plain(text, keep="\r\n\t"))
    changed = _change(detail, path)
    return [] if changed is None else [changed]


def _change(detail: Detail, path: str) -> dict[str, Any] | None:
    """Return what a call changes in a file; None if it is not known whole."""
    old, new = detail.get("old_string"), detail.get("new_string")
    if old is None and new is None:
        new = detail.get("content")
        old = ""
    if not isinstance(old, str) or not isinstance(new, str) or _CUT in old[-40:] or _CUT in new[-40:]:
        return None
    return bounded_json({"type": "diff", "path": path, "newText": new} | ({"oldText": old} if old else {}))  # type: ignore[no-any-return]


def plan_in(name: str, detail: Detail | None) -> list[dict[str, str]] | None:
    """Return the entries of a plan that a call writes down; None if it does not.

    >>> plan_in("TodoWrite", {"todos": [{"content": "Look", "status": "completed"}]})
    [{'content': 'Look', 'priority': 'medium', 'status': 'completed'}]
    """
    todos = (detail or {}).get("todos")
    if name.lower() != "todowrite" or not isinstance(todos, list):
        return None
    entries = [one for one in todos[:_MOST_ENTRIES] if isinstance(one, dict) and isinstance(one.get("content"), str)]
    return [
        {
            "content": short_line(one["content"]),
            "priority": one["priority"] if one.get("priority") in _PRIORITIES else "medium",
            "status": one["status"] if one.get("status") in _STATUSES else "pending",
        }
        for one in entries
    ]


_MOST_ENTRIES = 100
_PRIORITIES, _STATUSES = ("high", "medium", "low"), ("pending", "in_progress", "completed")
