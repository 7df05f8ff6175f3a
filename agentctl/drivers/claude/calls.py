"""What a tool call of Claude Code does, by its name and arguments: what it reads, and which calls are like it."""

from __future__ import annotations

import glob
import json
import os
import posixpath
import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from agentctl.domain.agent.permissions import Rules, answer_by, pattern_folder
from agentctl.domain.text.containment import composed, trimmed
from agentctl.drivers.values import text_in

#: What the program needs for its own work, however few tools an agent has: to give its answer, and to find tools.
INNER = frozenset({"StructuredOutput", "ToolSearch"})
#: The tool that leaves plan mode: the program asks about it by itself, with the plan.
LEAVING_PLAN = "ExitPlanMode"
#: Other tools that touch nothing but the program's own memory.
_OF_ITSELF = INNER | {
    "AskUserQuestion",
    "CronList",
    "EnterPlanMode",
    "ListAgents",
    "ReportFindings",
    "ScheduleWakeup",
    "TaskCreate",
    "TaskGet",
    "TaskList",
    "TaskOutput",
    "TaskStop",
    "TaskUpdate",
    "TodoWrite",
}
#: All that a sub-agent's start may name: its calls come one by one. Others give it a folder or a mode of its own.
_OF_SUB_AGENT = frozenset({"description", "prompt", "subagent_type", "run_in_background", "model", "name"})
_FILES = {"Read": "file_path", "Write": "file_path", "Edit": "file_path", "NotebookEdit": "notebook_path"}
#: No longer pattern is offered to be allowed for good: nobody could read all of it.
_LONGEST_PATTERN = 300
#: What is known of the tools that only read; another argument may name another path, or another machine.
_OF_READERS: Mapping[str, Collection[str]] = {
    "Read": {"file_path", "offset", "limit", "pages", "allow_large"},
    "Grep": {
        "pattern", "path", "glob", "output_mode", "type", "head_limit", "offset", "multiline", "context",
        "-A", "-B", "-C", "-n", "-i", "-o",
    },
    "Glob": {"pattern", "path"},
}  # fmt: skip
_TEXTS = ("file_path", "path", "pattern")
_TRANSCRIPT = ".jsonl"


def read_by(tool: str, arguments: Mapping[str, Any], folder: str) -> list[str] | None:
    """Return the paths that a call reads; None where it may do anything else.

    A path is there twice where the program takes it for another one than it says: both are read, for all we know.

    Args:
        folder: Where the call is made.

    >>> read_by("Read", {"file_path": "/w/a"}, "/w"), read_by("TodoWrite", {}, "/w"), read_by("Bash", {}, "/w")
    (['/w/a'], [], None)
    >>> read_by("Grep", {"pattern": "x", "path": "~/b"}, "/w"), read_by("Read", {"file_path": " /etc"}, "/w")
    (['/w/~/b', '~/b'], ['/w/ /etc', '/etc'])
    """
    if tool in _OF_ITSELF or (tool in {"Agent", "Task"} and arguments.keys() <= _OF_SUB_AGENT):
        return []
    if tool not in _OF_READERS or not arguments.keys() <= set(_OF_READERS[tool]):
        return None
    if not all(isinstance(arguments.get(name, ""), str) for name in _TEXTS):
        return None
    named = text_in(arguments.get("file_path" if tool == "Read" else "path"))
    paths = [named] if tool != "Glob" else _searched(named, text_in(arguments.get("pattern")))
    return None if paths is None else list(dict.fromkeys(_taken(paths, folder)))


def _searched(path: str, pattern: str) -> list[str] | None:
    """Return where the search for a pattern begins; the pattern may have a path of its own. None where it climbs.

    >>> _searched("src", "/etc/*.env"), _searched("", "*/../../*")
    (['src', '/etc/'], None)
    """
    return None if ".." in pattern else [path, posixpath.join(path, pattern_folder(pattern))]


def _taken(paths: Iterable[str], folder: str) -> Iterable[str]:
    """Yield paths as they are written, and as the program takes them (2.1.332).

    It trims them, puts the home for `~`, composes letters, and takes each `..` off with the name before it.
    """
    for path in paths:
        given, bare = os.path.join(folder, path), composed(trimmed(path))
        yield given
        # Which home it has is not known here: such a path leads nowhere that is known.
        meant = bare if bare.startswith("~") else posixpath.normpath(os.path.join(folder, bare))
        if meant != given.rstrip("/"):
            yield meant


def places_of(transcript: str, user: int) -> list[str]:
    """Return where the program keeps what its session has printed: long results, and those of the background.

    >>> places_of("/home/me/.claude/projects/-w/5c.jsonl", 1000)
    ['/home/me/.claude/projects/-w/5c', '/tmp/claude-1000/-w/5c']
    """
    session = transcript.removesuffix(_TRANSCRIPT)
    if session == transcript or not session.startswith("/"):
        return []
    project, name = os.path.split(session)
    return [session, f"/tmp/claude-{user}/{os.path.basename(project)}/{name}"]


def lasting(tool: str, arguments: Mapping[str, Any]) -> Rules:
    """Return the rule by which such calls are allowed for good; none where no rule could say which those are.

    It is for exactly this command, file or skill, for this host, or for this tool of a server.

    >>> lasting("Bash", {"command": "make test", "description": "d"})
    [{'tool': 'Bash', 'pattern': 'make test', 'answer': 'allow'}]
    >>> lasting("Bash", {"command": "make; rm -rf /"}), lasting("Workflow", {"script": "x"})
    ([], [])
    """
    pattern = _lasting_pattern(tool, arguments)
    if not pattern or len(pattern) > _LONGEST_PATTERN or not pattern.isprintable():
        return []
    rules = [{"tool": glob.escape(tool), "pattern": pattern, "answer": "allow"}]
    return rules if answer_by(rules, tool, arguments) == "allow" else []


def _lasting_pattern(tool: str, arguments: Mapping[str, Any]) -> str:
    if tool.startswith("mcp__") or tool == "WebSearch":
        return "*"
    if tool in {"Bash", "Monitor"}:
        return glob.escape(text_in(arguments.get("command")).strip())
    if tool in _FILES:
        return glob.escape(text_in(arguments.get(_FILES[tool])))
    if tool == "WebFetch":
        scheme, mark, rest = text_in(arguments.get("url")).partition("://")
        return glob.escape(f"{scheme}{mark}{re.split(r'[/?#]', rest, maxsplit=1)[0]}") + "/*" if mark else ""
    if tool == "Skill":
        return glob.escape(json.dumps(arguments, sort_keys=True, separators=(",", ":"), ensure_ascii=False))
    return ""
