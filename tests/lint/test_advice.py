"""Checks that each command that agentctl advises is one that it has, with the options that it has, and is followed.

A test that follows one is marked so (`tests/hints.py`). What no test follows is named here, with its reason.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Any

import pytest

from agentctl.interfaces.cli.typer_commands import program
from agentctl.interfaces.commands.model.catalogue import VERBS
from tests.hints import SHOWS, followed, hints
from tests.support import REPOSITORY

SOURCES = sorted((REPOSITORY / "agentctl").rglob("*.py"))
#: A command in a text of ours, and what follows up to the end of its part of the sentence.
COMMAND = re.compile(r"\bagentctl ([a-z][a-z-]*)(?: ([a-z][a-z-]*))?([^;,()`|\n]*)")
OPTION = re.compile(r"(?<!\S)(--[a-z][a-z-]*|-[a-z])(?![\w-])")
#: Words that follow the name of the program in sentences about it, and no commands.
SENTENCES = frozenset({
    "in", "is", "version", "must", "here", "above", "speaks", "runs", "does", "says", "never", "goes", "did",
    "which", "has", "itself", "there", "anew", "folder", "removes", "cannot", "needs", "was", "and", "do", "alone",
    "help",
})  # fmt: skip


def texts_in(source: Path) -> Iterator[tuple[int, str]]:
    """Yield the texts of a module that are not documentation, with `{}` for each value in them."""
    tree = ast.parse(source.read_text(encoding="utf-8"))
    parts: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts |= {id(part) for part in node.values}
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            parts.add(id(node.value))
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield node.lineno, "".join(str(one.value) if isinstance(one, ast.Constant) else "{}" for one in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in parts:
            yield node.lineno, node.value


def commands() -> list[tuple[str, str, str, str]]:
    """Return the commands in all texts: where, name, the word after it, the rest."""
    found = []
    for source in SOURCES:
        for line, text in texts_in(source):
            where = f"{source.relative_to(REPOSITORY)}:{line}"
            found += [(where, match[1], match[2] or "", match[3]) for match in COMMAND.finditer(text)]
    return found


@pytest.fixture(scope="module")
def group() -> Any:
    return program()


def problem(group: Any, name: str, part: str, rest: str) -> str | None:
    """Return what is wrong with a command; None if it can be typed."""
    if name not in VERBS:
        return None if name in SENTENCES else f"there is no command {name!r}"
    command = group.get_command(None, name)
    below = getattr(command, "commands", None)
    if below and part in below:
        command = below[part]
    elif below and part and not command.invoke_without_command:
        return f"{name} has no command {part!r}"
    known = {flag for one in command.params for flag in (*one.opts, *one.secondary_opts)} | {"--help", "-h"}
    before, dashes, _ = rest.partition(" -- ")
    wrong = [option for option in OPTION.findall(before if dashes else rest) if option not in known]
    return f"{name} has no option {wrong[0]}" if wrong else None


def test_each_command_that_is_advised_can_be_typed(group: Any) -> None:
    wrong = {where: said for where, *command in commands() if (said := problem(group, *command))}
    assert wrong == {}


def test_each_command_in_the_readme_can_be_typed(group: Any) -> None:
    """Those of the first tour are run (`integration/test_readme.py`); the others need the real agent programs."""
    lines = re.findall(r"^    \$ (.+)$", (REPOSITORY / "README.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    found = [match for line in lines for match in COMMAND.finditer(line)]
    assert len(found) > 35
    wrong = {match[0]: said for match in found if (said := problem(group, match[1], match[2] or "", match[3]))}
    assert wrong == {}


def test_enough_commands_are_found_and_wrong_ones_are_seen(group: Any) -> None:
    assert len({name for _, name, _, _ in commands()} & set(VERBS)) > 35
    assert problem(group, "cancle", "", "") is not None
    assert problem(group, "report", "answer", "") is not None
    assert problem(group, "worktrees", "remove", " {} --force-it") is not None
    assert problem(group, "spawn", "", " --queue -- make --keep-going") is None


class Reason(Enum):
    """Why no test can follow a next step; there are no others."""

    ELSEWHERE = "it takes another machine, a cluster, a package index or an account"
    MACHINE = "it changes the machine itself: its login manager, its crontab"
    LOOK = "it says where more is to be seen, which changes nothing"
    RACE = "it is told only where two things happen at the same moment"
    LATE = "it is told only after more than a minute"
    NO_STEP = "it is no next step: the text only names a command"


#: Next steps that no test follows.
UNFOLLOWED: dict[str, Reason] = {
    "interfaces/editor/next_steps._key_step: agentctl acp": Reason.NO_STEP,  # An editor starts it.
    "interfaces/editor/next_steps.step_in_words: agentctl doctor": Reason.LOOK,
    "adapters/accepted._read: agentctl doctor --runner": Reason.ELSEWHERE,
    "interfaces/python/wording._STEPS: agentctl use": Reason.NO_STEP,  # Words for what is advised elsewhere.
    "interfaces/cli/app._LOOK: agentctl doctor": Reason.LOOK,
    "interfaces/commands/parts/foreground.GO_ON: agentctl wait-any --timeout-seconds": Reason.LATE,
    "drivers/claude/start.(TESTED, INSTALL): npm install": Reason.ELSEWHERE,
    "drivers/codex/errors.INSTALL: npm install": Reason.ELSEWHERE,
    "drivers/llm/providers.HINT: agentctl doctor": Reason.LOOK,
    "interfaces/hosts/host_link.Link._try: agentctl doctor": Reason.ELSEWHERE,
    "interfaces/editor/dialogs._whole_command: agentctl logs --raw": Reason.LOOK,
    "interfaces/mcp/forms._way_to_the_whole: agentctl logs --raw": Reason.LOOK,
    "operations/doctor/examining._machine: loginctl enable-linger": Reason.MACHINE,
    "operations/doctor/examining._moved: git worktree": Reason.LOOK,
    "operations/doctor/examining._unguarded: ps -eo": Reason.LOOK,
    "operations/doctor/nodes._NodeExamination._engine: agentctl doctor --runner --fix": Reason.ELSEWHERE,
    "operations/doctor/nodes.examine_nodes: agentctl doctor": Reason.ELSEWHERE,
    "operations/doctor/probing.NodeProbe._submitted: agentctl doctor": Reason.NO_STEP,
    "operations/doctor/strays.examine_strays: agentctl doctor --runner --fix": Reason.ELSEWHERE,
    "operations/doctor/worktrees.examine_worktrees: git worktree": Reason.LOOK,
    "operations/install/agent_files._hooks: agentctl hook": Reason.NO_STEP,
    "operations/install/agent_files.edits_for: agentctl hook": Reason.NO_STEP,
    "operations/install/boot._MARK: agentctl install": Reason.NO_STEP,
    "operations/install/boot._MARK: agentctl install --undo": Reason.NO_STEP,
    "operations/install/boot._check: agentctl resume --lost": Reason.MACHINE,
    "operations/install/boot._crontab: agentctl install": Reason.MACHINE,
    "operations/install/boot._crontab: agentctl resume --lost": Reason.MACHINE,
    "operations/install/edits.BlockEdit._marks: agentctl install": Reason.NO_STEP,
    "operations/install/edits.BlockEdit._marks: agentctl install --undo": Reason.NO_STEP,
    "operations/show/node_reasons.node_part: agentctl cancel": Reason.ELSEWHERE,
    "interfaces/commands/start/spawn._tell_where_to_look: agentctl watch": Reason.LOOK,
    "operations/start/spawning._not_begun: agentctl doctor": Reason.LOOK,
    "operations/where/shared_roots.check_accepted: agentctl doctor --runner": Reason.ELSEWHERE,
    "operations/worktree/removing._refuse_change: agentctl worktrees remove": Reason.RACE,
    "operations/worktree/removing._remove: agentctl worktrees show": Reason.LOOK,
    "interfaces/screen/acting/peek.Peek.why_not: agentctl logs --raw": Reason.LOOK,
    "interfaces/words/timeline_html._workers: agentctl timeline --json": Reason.LOOK,
    "interfaces/words/timeline_svg._Drawing._foot: agentctl timeline --json": Reason.LOOK,
    "interfaces/web/board._unreadable: agentctl doctor": Reason.LOOK,
    "interfaces/web/gate.Gate._early: agentctl serve": Reason.NO_STEP,
    "interfaces/web/next_requests.REQUESTS: agentctl trust": Reason.NO_STEP,  # Words for what is advised elsewhere.
    "operations/show/result_files.open_result_file: agentctl result": Reason.LOOK,
    "interfaces/web/gate._LINK: agentctl serve": Reason.NO_STEP,
}


def test_each_next_step_is_followed_by_a_test() -> None:
    missing = hints() - followed().keys() - UNFOLLOWED.keys()
    assert not missing, "no test follows:\n" + "\n".join(sorted(missing))


def test_no_test_says_that_it_follows_what_is_not_advised() -> None:
    known = hints()
    gone = {name: where for name, where in followed().items() if name not in known}
    assert not gone
    assert UNFOLLOWED.keys() <= known
    assert not UNFOLLOWED.keys() & followed().keys()


def test_what_counts_as_a_next_step() -> None:
    found = hints()
    assert {
        "operations/show/further_runs._of_retry: agentctl cancel",  # A text of ours.
        "operations/doctor/examining._standstill: agentctl resume --lost",  # `command_line`.
        "operations/show/further_runs._of_resume: agentctl send",  # `Next`.
        "adapters/personal.closing_step: chmod go-w",  # A command of another program.
    } <= found
    assert not [name for name in found if name.partition(": agentctl ")[2] in SHOWS]
