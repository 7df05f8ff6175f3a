"""What the tests have to know of each agent program: the names that it has for things, and what it does by design."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import pytest

from agentctl import __version__
from tests.agents.install import ACP_AGENTS, AGENTS

#: The version of every program that is tested, in the order in which they are shown; `llm` is our own.
VERSIONS = {**{package.program: package.version for package in (*AGENTS, *ACP_AGENTS)}, "llm": __version__}

#: Tests of what two vendors' own programs have and no protocol does (sandboxes, accounts, `install`), or for which it
#: does not matter what the program is.
VENDORS = pytest.mark.parametrize("program", [package.program for package in AGENTS])

Step = list[list[Any]]

_OF_CLAUDE: list[Step] = [
    [["ours:task", {"description": "Find cookie", "prompt": "SCENARIO:text", "subagent_type": "general-purpose",
                    "run_in_background": True}]],
    [["ours:wait", {"ids": ["find-cookie-1"], "timeout_ms": 60_000}]],
    [["ours:task", {"description": "More", "prompt": "SCENARIO:text", "resume": "find-cookie-1"}]],
]  # fmt: skip
_OF_CODEX: list[Step] = [
    [["ours:spawn_agent", {"message": "SCENARIO:text", "agent_type": "default", "fork_context": True,
                           "name": "find-cookie-1"}]],
    [["ours:wait", {"targets": ["find-cookie-1"], "timeout_ms": 60_000}]],
    [["ours:send_input", {"target": "find-cookie-1", "message": "SCENARIO:text"}]],
    [["ours:wait", {"ids": ["find-cookie-1"], "timeout_ms": 60_000}]],
]  # fmt: skip
_NO_CREDIT = "400.invalid_request_error.Your_credit_balance_is_too_low"
_NO_QUOTA = "429.insufficient_quota.You_exceeded_your_current_quota"
_PROMPT_TOO_LONG = "400.invalid_request_error.prompt_is_too_long"
_WINDOW_TOO_SMALL = "400.context_length_exceeded.Your_input_exceeds_the_context_window_of_this_model"


class Facts(NamedTuple):
    """What is known of one program."""

    #: Another model than the one that it takes by itself, as a person names it, and as the model's server is told.
    model: str
    model_sent: str
    #: What a provider says of an account without money, and of a conversation that is too long.
    no_money: str
    too_long: str
    #: Our tools called as its own tools for sub-agents are.
    own_shape: list[Step]
    #: Where it looks for what a project tells its agents.
    projects_words: str
    #: Allow once, for good, deny: as it calls them.
    words: tuple[str, str, str] = ("allow", "allow_always", "deny")
    #: A model to which it shows our tools at once, where the other one has to search for them.
    model_with_tools: str | None = None
    #: It can be told to ask no more about a command, and nothing is written into the project for that.
    offers_always: bool = True
    #: What refuses its key: of some programs only the provider's own sentence arrives.
    refused_key: str = "401"
    #: Seconds that retries without progress may last, and a start: some start slowly.
    ceiling_s: float = 2
    #: The files below the test's folder in which a session is written down; `{session}` is its id.
    sessions: str = ""
    #: The role of a definition goes to the model as the system's words, not before the first prompt.
    role_is_system: bool = True
    #: It has efforts for the model that the tests name.
    has_efforts: bool = True
    #: It asks the user with a tool of its own; an agent that may start no other then needs no server of ours.
    asks: bool = True
    #: It has sub-agents where somebody is asked, and their requests are told as theirs.
    sub_agents_ask: bool = True
    #: It reports how many tokens were used.
    counts: bool = True
    #: A denial ends its turn without another word.
    ends_when_denied: bool = False
    #: It reads what a project tells its agents above its own folder, too: without the project's settings, most do not.
    reads_words_above: bool = False
    #: Its commands run in a sandbox.
    is_sandboxed: bool = False
    #: Our tools come over MCP, from a server of ours; else the program has them itself.
    has_our_server: bool = True
    #: What its model is offered where a definition names `Read` and `Grep` alone.
    readers: frozenset[str] = frozenset({"Read", "Grep"})
    #: The limits of a call or definition that it has none of its own for: the spawn is refused.
    refuses: frozenset[str] = frozenset({"maxBudgetUsd", "tools"})


FACTS: Mapping[str, Facts] = {
    "claude": Facts(
        "claude-sonnet-5-5", "claude-sonnet-5-5", _NO_CREDIT, _PROMPT_TOO_LONG, _OF_CLAUDE, "CLAUDE.md",
        sessions="claude/projects/*/{session}.jsonl", refuses=frozenset(),
    ),
    "codex": Facts(
        "gpt-stand-in", "gpt-stand-in", _NO_QUOTA, _WINDOW_TOO_SMALL, _OF_CODEX, "AGENTS.md",
        words=("accept", "acceptWithExecpolicyAmendment", "decline"), sessions="codex/sessions/**/*{session}.jsonl",
        is_sandboxed=True, reads_words_above=True,
    ),
    "opencode": Facts(
        "standin/other", "other", _NO_QUOTA, _WINDOW_TOO_SMALL, _OF_CODEX, "AGENTS.md",
        refused_key="401.invalid_api_key.Incorrect_API_key_provided",
        sessions="home/.local/share/opencode/opencode.db*",
        role_is_system=False, has_efforts=False, asks=False, sub_agents_ask=False, counts=False,
        ends_when_denied=True,
    ),
    "qwen": Facts(
        "stand-in", "stand-in", _NO_QUOTA, _WINDOW_TOO_SMALL, _OF_CODEX, "AGENTS.md",
        offers_always=False, sessions="qwen/projects/*/chats/{session}.jsonl", role_is_system=False,
        has_efforts=False, sub_agents_ask=False,
        ends_when_denied=True,
    ),
    "claude-agent-acp": Facts(
        "sonnet", "claude-sonnet-5-5", _NO_CREDIT, _PROMPT_TOO_LONG, _OF_CLAUDE, "CLAUDE.md",
        offers_always=False, ceiling_s=8, sessions="claude/projects/*/{session}.jsonl",
    ),
    "codex-acp": Facts(
        "gpt-5.5", "gpt-5.5", _NO_QUOTA, _WINDOW_TOO_SMALL, _OF_CODEX, "AGENTS.md",
        model_with_tools="stand-in", ceiling_s=8, sessions="codex/sessions/**/*{session}.jsonl",
        role_is_system=False, asks=False, sub_agents_ask=False, ends_when_denied=True, is_sandboxed=True,
        reads_words_above=True,
    ),
    "llm": Facts(
        "standin/other", "other", _NO_QUOTA, _WINDOW_TOO_SMALL, _OF_CODEX, "AGENTS.md", offers_always=False,
        sub_agents_ask=False, has_our_server=False, readers=frozenset({"read_file", "search"}), refuses=frozenset(),
    ),
}  # fmt: skip
