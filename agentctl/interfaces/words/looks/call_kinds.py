"""Which call is which, by the names that agent programs have for their tools: the one table of them for all surfaces.

The tools of servers have a meaning of their own, whatever they are called.
"""

from __future__ import annotations

READS, CHANGES, SEARCHES, FETCHES, RUNS, PLANS, SWITCHES = (
    "read", "edit", "search", "fetch", "execute", "think", "switch_mode",
)  # fmt: skip
#: The kind of a tool that is not known.
OTHER = "other"
#: Kind -> names in small letters: Claude Code, Codex, OpenCode, Gemini and Qwen, and our own program.
_NAMES = {
    READS: (
        "read", "notebookread", "read_file", "read_many_files", "view", "view_image", "ls", "list", "list_dir",
        "list_directory",
    ),
    CHANGES: (
        "edit", "multiedit", "write", "notebookedit", "apply_patch", "patch", "filechange", "write_file", "edit_file",
        "replace",
    ),
    SEARCHES: (
        "grep", "glob", "search", "find", "rg", "grep_files", "toolsearch", "search_file_content", "grep_search",
    ),
    FETCHES: ("webfetch", "websearch", "web_search", "web_fetch", "google_web_search", "fetch"),
    RUNS: (
        "bash", "shell", "commandexecution", "command_execution", "exec_command", "run_shell_command", "bashoutput",
        "killshell", "powershell",
    ),
    PLANS: ("todowrite", "todo_write", "write_todos", "update_plan", "think", "agent", "task"),
    SWITCHES: ("exitplanmode", "enterplanmode"),
}  # fmt: skip
#: Of those that read, the ones that show a file, and not what is in a folder.
_FILE_READERS = frozenset({"read", "notebookread", "read_file", "read_many_files", "view", "view_image"})
_KIND_OF = {name: kind for kind, names in _NAMES.items() for name in names}


def tool_kind(name: str) -> str:
    """Return the kind of a tool, by the words of the protocol of editors.

    >>> tool_kind("Bash"), tool_kind("mcp__tracker__close")
    ('execute', 'other')
    """
    return _KIND_OF.get(name.lower(), OTHER)


def reads_files(name: object) -> bool:
    """Return whether a tool does nothing but read files: of several calls in a row only the files are told."""
    return isinstance(name, str) and name.lower() in _FILE_READERS
