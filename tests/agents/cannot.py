"""What a program cannot do, and why: the tests of it have to fail, so that the matrix stays true."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Cannot(NamedTuple):
    """Why a program cannot do something."""

    reason: str
    #: False: the test is not run. It would only wait for something that never comes, or depend on who is faster.
    is_tried: bool = True


_ASKS_NOBODY = Cannot("it has no tool for questions over ACP; its model asks with ours", is_tried=False)
_READERS_ASK_NOBODY = Cannot(
    "it has no tool for questions over ACP, and an agent that may only read has no server of ours", is_tried=False
)
_TOKENS_COME_LATE = Cannot("it tells its tokens at the end of a turn: too late for a limit, so the spawn is refused")
_NO_SERVERS = Cannot(
    "it starts no servers in a folder that its person has not trusted, so it has none of our tools", is_tried=False
)
_RETRIES_IN_SILENCE = Cannot("it tries again for minutes, and tells nobody: it is shown as stalled", is_tried=False)
_REFUSED_KEY_COMES_LATE = Cannot("it tells nothing of a refused key until its own tries are over", is_tried=False)
_NO_WORDS = Cannot("it reads nothing of a project whose folder its person has not trusted, not even its words")
_NO_SUB_AGENTS_WHERE_ASKED = Cannot("where somebody is asked it has no sub-agents: their requests would reach nobody")
_SUB_AGENTS_ARE_HIDDEN = Cannot("of its sub-agents it tells only that they work, and how they end")
_SUB_AGENTS_ARE_WORKERS = Cannot(
    "it has no sub-agents within itself: those that it starts are workers, as any child by our own tools",
    is_tried=False,
)
_ENDS_BEFORE_ITS_SUB_AGENTS = Cannot(
    "it ends its turn, and so the agent, while a sub-agent works in the background", is_tried=False
)

#: (file.test, or file.test[parameters], program) -> why it cannot.
CANNOT: Mapping[tuple[str, str], Cannot] = {
    # opencode
    ("answers.question", "opencode"): _ASKS_NOBODY,
    ("answers.question_at_the_limit[explore]", "opencode"): _READERS_ASK_NOBODY,
    ("answers.sub_agent", "opencode"): _SUB_AGENTS_ARE_HIDDEN,
    ("permissions.of_sub_agent", "opencode"): _NO_SUB_AGENTS_WHERE_ASKED._replace(is_tried=False),
    ("watch.nested_calls", "opencode"): _NO_SUB_AGENTS_WHERE_ASKED._replace(is_tried=False),
    ("trees.tokens_of_a_tree", "opencode"): Cannot("it tells no tokens that could be added up: the spawn is refused"),
    ("figures.figures[text]", "opencode"): Cannot(
        "it tells only the tokens of a turn's last request: none are counted"
    ),
    ("figures.figures[tool]", "opencode"): Cannot(
        "it tells only the tokens of a turn's last request: none are counted"
    ),
    ("endings.error[429]", "opencode"): _RETRIES_IN_SILENCE,
    ("endings.no_money", "opencode"): _RETRIES_IN_SILENCE,
    ("endings.error[500]", "opencode"): _RETRIES_IN_SILENCE,
    ("endings.error[529]", "opencode"): _RETRIES_IN_SILENCE,
    ("endings.retries_without_progress", "opencode"): _RETRIES_IN_SILENCE,
    ("endings.stream_cut", "opencode"): _RETRIES_IN_SILENCE,
    ("endings.connection_lost", "opencode"): _RETRIES_IN_SILENCE,
    ("endings.cut_by_the_model", "opencode"): Cannot(
        "it passes nothing on of an answer that the model's limit has cut"
    ),
    # qwen
    ("asking_a_person.its_child", "qwen"): _NO_SERVERS,
    ("asking_a_person.an_agent_allows_what_its_rules_allow", "qwen"): _NO_SERVERS,
    ("asking_a_person.an_agent_does_not_answer_its_own_request", "qwen"): Cannot(
        "it runs nothing while somebody is asked: there is nothing that could answer", is_tried=False
    ),
    ("answers.background_sub_agent", "qwen"): _ENDS_BEFORE_ITS_SUB_AGENTS,
    ("project_words.the_projects_own_words[explore-.]", "qwen"): _NO_WORDS,
    ("project_words.the_projects_own_words[general-.]", "qwen"): _NO_WORDS,
    ("permissions.of_sub_agent", "qwen"): _NO_SUB_AGENTS_WHERE_ASKED._replace(is_tried=False),
    ("watch.nested_calls", "qwen"): _NO_SUB_AGENTS_WHERE_ASKED._replace(is_tried=False),
    **{
        (f"delegation.{name}", "qwen"): _NO_SERVERS
        for name in (
            "child",
            "offered_at_once",
            "own_shape",
            "cheap_server",
            "child_that_asks",
            "question_by_our_tool",
        )
    },
    ("endings.error[429]", "qwen"): _RETRIES_IN_SILENCE,
    ("endings.error[500]", "qwen"): _RETRIES_IN_SILENCE,
    ("endings.error[529]", "qwen"): _RETRIES_IN_SILENCE,
    ("endings.retries_without_progress", "qwen"): _RETRIES_IN_SILENCE,
    ("endings.no_money", "qwen"): _RETRIES_IN_SILENCE,
    ("endings.cut_by_the_model", "qwen"): Cannot("it passes nothing on of an answer that the model's limit has cut"),
    # claude-agent-acp
    ("endings.refused_key_at_the_first_sign", "claude-agent-acp"): _REFUSED_KEY_COMES_LATE,
    ("trees.tokens_of_a_tree", "claude-agent-acp"): _TOKENS_COME_LATE,
    # codex-acp
    ("answers.question", "codex-acp"): _ASKS_NOBODY,
    ("answers.question_at_the_limit[explore]", "codex-acp"): _READERS_ASK_NOBODY,
    ("answers.sub_agent", "codex-acp"): _SUB_AGENTS_ARE_HIDDEN,
    ("answers.background_sub_agent", "codex-acp"): _ENDS_BEFORE_ITS_SUB_AGENTS,
    ("permissions.of_sub_agent", "codex-acp"): Cannot("it passes a sub-agent's request on as the agent's own"),
    ("watch.nested_calls", "codex-acp"): _SUB_AGENTS_ARE_HIDDEN,
    ("endings.refused_key_at_the_first_sign", "codex-acp"): _REFUSED_KEY_COMES_LATE,
    ("trees.tokens_of_a_tree", "codex-acp"): _TOKENS_COME_LATE,
    # llm
    **{
        (name, "llm"): _SUB_AGENTS_ARE_WORKERS
        for name in (
            "answers.sub_agent",
            "answers.background_sub_agent",
            "cancels.in_sub_agent",
            "permissions.of_sub_agent",
            "watch.nested_calls",
        )
    },
    ("asking_a_person.an_agent_does_not_answer_its_own_request", "llm"): Cannot(
        "it runs no other call while somebody is asked: there is nothing that could answer", is_tried=False
    ),
}


def cannot(file: str, test: str, parameters: str, program: str) -> Cannot | None:
    """Return why a program cannot do what a test is about; None if it can."""
    name = f"{file.removeprefix('test_')}.{test.removeprefix('test_')}"
    return CANNOT.get((name, program)) or CANNOT.get((f"{name}[{parameters}]", program))
