"""The tools: what a model is told of each, and which of them an agent has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agentctl.worker_programs.plain_model.model.request import ToolSpec
from agentctl.worker_programs.plain_model.toolbox.tool_errors import ToolError

#: Our names -> the names in rules and definitions, which other agent programs have made common.
COMMON = {
    "read_file": "Read", "find": "Glob", "search": "Grep", "edit_file": "Edit", "write_file": "Write",
    "shell": "Bash", "ask_user": "AskUserQuestion",
}  # fmt: skip
_NAMES = {word.lower(): name for name, common in COMMON.items() for word in (name, common)}
#: All that an agent gets which may only read.
READING = frozenset({"read_file", "find", "search", "ask_user"})
#: Those of them that can be carried out side by side.
PARALLEL = frozenset({"read_file", "find", "search"})
SHELL_S, LONGEST_S = 300, 7200
_TYPES: Mapping[str, type] = {"string": str, "integer": int, "boolean": bool, "array": list, "object": dict}


def _schema(required: Sequence[str], **properties: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required)}


def _text(description: str) -> dict[str, Any]:
    return {"type": "string", "description": description}


def _number(description: str) -> dict[str, Any]:
    return {"type": "integer", "description": description}


def _flag(description: str) -> dict[str, Any]:
    return {"type": "boolean", "description": description}


_PATH = _text("A path, relative to the working folder or absolute.")
SPECS = (
    ToolSpec(
        "read_file",
        "Read a text file. Each line comes behind its number and a tab, which are not part of the file. Long files"
        " come in pieces: give offset (the first line, from 1) and limit (the number of lines).",
        _schema(["path"], path=_PATH, offset=_number("The first line, from 1."), limit=_number("How many lines.")),
    ),
    ToolSpec(
        "find",
        "List the files whose path matches a glob (*, ?, **, [a-z], {a,b}), below a folder. A pattern without a slash"
        " is for the file's name in any folder. Links are not followed; .git, node_modules and the like are left out"
        " unless path leads into them.",
        _schema(["pattern"], pattern=_text("Such as *.py or src/**/test_*."), path=_text("The folder; else this one.")),
    ),
    ToolSpec(
        "search",
        "Search the lines of text files for a regular expression (Python's syntax), in a file or below a folder."
        " Finds come as path:line: text.",
        _schema(
            ["pattern"], pattern=_text("The regular expression."), path=_text("A file or folder; else this folder."),
            glob=_text("Only files whose path matches this glob."), ignore_case=_flag("Take a for A."),
        ),
    ),
    ToolSpec(
        "edit_file",
        "Replace a text in a file. old_string must be in the file exactly once, with its spaces and line breaks, unless"
        " replace_all is set.",
        _schema(
            ["path", "old_string", "new_string"], path=_PATH, old_string=_text("What is there now."),
            new_string=_text("What shall be there."), replace_all=_flag("Replace it wherever it is."),
        ),
    ),
    ToolSpec(
        "write_file",
        "Write a whole file: a new one, or in place of what is in it. For a change of a part use edit_file.",
        _schema(["path", "content"], path=_PATH, content=_text("The whole content.")),
    ),
    ToolSpec(
        "shell",
        "Run a line of shell, without input, in the working folder. Output that is long loses its middle, and is kept"
        f" whole in a file that is named. It is stopped after {SHELL_S} s, or timeout_seconds.",
        _schema(
            ["command"], command=_text("The line."), directory=_text("Another folder to run it in."),
            timeout_seconds=_number(f"At most {LONGEST_S}."), description=_text("In a few words what it is for."),
        ),
    ),
    ToolSpec(
        "ask_user",
        "Ask the person a question, and wait for the answer. Only if you cannot go on without it.",
        _schema(
            ["question"], question=_text("The question."),
            options={"type": "array", "items": {"type": "string"}, "description": "Answers to choose from."},
        ),
    ),
)  # fmt: skip
_BY_NAME = {spec.name: spec for spec in SPECS}


def chosen_tools(tools: Sequence[str] | None, *, read_only: bool) -> frozenset[str]:
    """Return the tools of this program that an agent has.

    Args:
        tools: The only ones, by any of their names (`Read`, `read_file`, `Bash(git *)`); None: all of them.

    >>> sorted(chosen_tools(["Read", "Bash(git *)", "WebFetch"], read_only=False))
    ['read_file', 'shell']
    >>> sorted(chosen_tools(["Read", "Bash"], read_only=True))
    ['read_file']
    """
    named = None if tools is None else [tool.partition("(")[0].strip() for tool in tools]
    names = set(_BY_NAME) if named is None else {_NAMES[name.lower()] for name in named if name.lower() in _NAMES}
    return frozenset(names & READING if read_only else names)


def rule_name(tool: str) -> str:
    """Return the name by which rules know a tool."""
    return COMMON.get(tool, tool)


def own_name(tool: str) -> str:
    """Return our name of a tool that a model may call by a common one.

    >>> own_name("Bash"), own_name("spawn_agent")
    ('shell', 'spawn_agent')
    """
    return _NAMES.get(tool.lower(), tool)


def checked(tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments that the tool knows, in its order; nothing else is shown, and nothing else counts.

    Raises:
        ToolError: One is missing, or of the wrong type.
    """
    schema = _BY_NAME[tool].schema
    found = {}
    for name, about in schema["properties"].items():
        value = arguments.get(name)
        if value is None:
            if name in schema["required"]:
                raise ToolError(f"{tool} needs {name}")
            continue
        if isinstance(value, float) and value.is_integer() and about["type"] == "integer":
            value = int(value)
        kind = _TYPES[about["type"]]
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise ToolError(f"{name} of {tool} must be of type {about['type']}")
        found[name] = value
    return found
