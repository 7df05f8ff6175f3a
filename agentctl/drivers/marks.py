"""By what the processes of agent programs are known: what they set for their children, and what they are called.

Whoever answers a request for permission must be told from a model that runs commands in a person's own session. That is
asked by short commands, so the marks are here, where nothing else has to be loaded; the rows of programs.yaml say the
same of theirs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from agentctl.lean import NamedTuple


class Marks(NamedTuple):
    """The marks of one agent program."""

    #: Variables that it sets in the shells that it runs; no person sets them for a terminal.
    variables: tuple[str, ...] = ()
    #: What its processes are called: a program, a script without its ending, or an npm package in the script's path.
    names: tuple[str, ...] = ()


#: Those of the programs that ship with a driver, as observed with the versions in their drivers; of programs that were
#: not tried, as their documentation has them.
SHIPPED: Mapping[str, Marks] = {
    "claude": Marks(
        ("CLAUDECODE", "CLAUDE_CODE_CHILD_SESSION", "CLAUDE_CODE_SESSION_ID", "CLAUDE_PID"),
        ("claude", "@anthropic-ai/claude-code"),
    ),
    "codex": Marks(
        ("CODEX_CI", "CODEX_SANDBOX", "CODEX_SANDBOX_NETWORK_DISABLED", "CODEX_SESSION_ID", "CODEX_THREAD_ID"),
        ("codex", "@openai/codex"),
    ),
    "opencode": Marks(("OPENCODE", "OPENCODE_PID"), ("opencode",)),
    "qwen": Marks(("QWEN_CODE", "QWEN_CODE_PROMPT_ID", "QWEN_CODE_SESSION_ID"), ("qwen", "@qwen-code/qwen-code")),
    "claude-agent-acp": Marks(
        (), ("claude-agent-acp", "@agentclientprotocol/claude-agent-acp", "@zed-industries/claude-code-acp")
    ),
    "codex-acp": Marks((), ("codex-acp", "@agentclientprotocol/codex-acp", "@zed-industries/codex-acp")),
    "gemini": Marks(("GEMINI_CLI",), ("gemini", "@google/gemini-cli")),
    "copilot": Marks(("COPILOT_CLI",), ("copilot", "@github/copilot")),
    "goose": Marks(("GOOSE_TERMINAL",), ("goose",)),
    "kimi": Marks((), ("kimi", "kimi-cli")),
    "cursor-agent": Marks(("CURSOR_AGENT",), ("cursor-agent",)),
    "auggie": Marks(("AUGMENT_AGENT",), ("auggie", "@augmentcode/auggie")),
}
#: Programs that run others: what they are called says nothing of what they run.
_CARRIER = re.compile(
    r"node(?:js)?|bunx?|deno|npm|npx|pnpm|yarn|python[\d.]*|pypy[\d.]*|uvx?|pipx|ruby|perl|java|dotnet"
    r"|(?:ba|da|z|k|fi|c|tc)?sh|env|sudo|doas|nice|timeout|ssh|docker|podman|bwrap|agentctl"
)
_INTERPRETER = re.compile(r"node(?:js)?|bun|deno|python[\d.]*|pypy[\d.]*|ruby|perl")
_ENDING = re.compile(r"\.(?:[cm]?js|ts|py|exe)$")
#: The kernel keeps that much of a process's name.
_COMM = 15
#: More arguments than an interpreter takes of its own in front of a script.
_MOST_FLAGS = 20


def names_of_row(program: str, also: tuple[str, ...]) -> tuple[str, ...]:
    """Return what the processes of a row are called; an interpreter is the name of any script.

    >>> names_of_row("qwen", ("@qwen-code/qwen-code",)), names_of_row("python3", ())
    (('qwen', '@qwen-code/qwen-code'), ())
    """
    own = () if not program or _CARRIER.fullmatch(program) else (program,)
    return (*own, *also)


def name_by_marks(kernels: str, program: str, arguments: list[str], names: Iterable[str]) -> str | None:
    """Return by which of some names a process is called; None if by none.

    Args:
        kernels: What the kernel calls it.
        program: The path of the program that it runs; "" where that cannot be read.
        arguments: Its command line.

    >>> name_by_marks("node", "/usr/bin/node", ["node", "--expose-gc", "/usr/lib/@qwen-code/qwen-code/cli.js", "-y"],
    ...     ["qwen", "@qwen-code/qwen-code"])
    '@qwen-code/qwen-code'
    >>> name_by_marks("vim", "/usr/bin/vim", ["vim", "claude"], ["claude"])
    """
    script = _script(program, arguments)
    called = {_stem(path) for path in (program, *arguments[:1], script) if path}
    for name in names:
        if name in called or name[:_COMM] == kernels or ("/" in name and f"/{name}/" in script):
            return name
    return None


def _script(program: str, arguments: list[str]) -> str:
    """Return the script that an interpreter runs; "" for another program."""
    if not arguments or not any(_INTERPRETER.fullmatch(_stem(path)) for path in (program, arguments[0])):
        return ""
    return next((word for word in arguments[1:_MOST_FLAGS] if not word.startswith("-")), "")


def _stem(path: str) -> str:
    return _ENDING.sub("", path.removesuffix(" (deleted)").rpartition("/")[2])
