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

from agentctl.cli.lazy import VERBS, program
from tests.hints import SHOWS, followed, hints
from tests.support import REPOSITORY

SOURCES = sorted((REPOSITORY / "agentctl").rglob("*.py"))
#: A command in a text of ours, and what follows up to the end of its part of the sentence.
COMMAND = re.compile(r"\bagentctl ([a-z][a-z-]*)(?: ([a-z][a-z-]*))?([^;,()`|\n]*)")
OPTION = re.compile(r"(?<!\S)(--[a-z][a-z-]*|-[a-z])(?![\w-])")
#: Words that follow the name of the program in sentences about it, and no commands.
SENTENCES = frozenset({
    "in", "is", "version", "must", "here", "above", "speaks", "runs", "does", "says", "never", "goes", "did",
    "which", "has", "itself", "there", "anew", "folder", "removes", "cannot", "needs", "was", "and", "do"
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
    assert problem(group, "interact", "answer", "") is not None
    assert problem(group, "worktrees", "remove", " {} --force-it") is not None
    assert problem(group, "spawn", "", " --queue -- make --keep-going") is None


class Reason(Enum):
    """Why no test can follow a next step; there are no others."""

    ELSEWHERE = "it takes another machine, a package index or an account; `make test-extras` and its kind try that"
    MACHINE = "it changes the machine itself: its login manager, its crontab"
    NO_STEP = "it is no next step: the text only names a command"


#: Next steps that no test follows.
UNFOLLOWED: dict[str, Reason] = {}
#: NOT YET
NOT_YET = frozenset(
    {
        "acp/choices.changed: agentctl trust",
        "acp/dialogs.way_to_answer: agentctl interact respond",
        "acp/next_steps._key_step: agentctl acp",
        "acp/next_steps.next_step: agentctl doctor",
        "adapters/accepted._read: agentctl doctor --runner",
        "adapters/files.json_in: agentctl doctor",
        "adapters/files.json_in: agentctl doctor --fix",
        "adapters/git._ADVICE: git config",
        "adapters/locks._acquire: kill -CONT",
        "adapters/opening.ODD_HINT: agentctl doctor --fix",
        "adapters/opening.open_plain: agentctl doctor",
        "adapters/opening.read_bytes: agentctl doctor",
        "adapters/personal.is_there: chmod go-w",
        "adapters/privaterows.read_rows: rm",
        "adapters/taskyaml/roster.read_head: agentctl doctor --fix",
        "api/wording._CALLS: agentctl new",
        "api/wording._CALLS: agentctl wait-any",
        "cli/app._LOOK: agentctl doctor",
        "cli/demo._start: agentctl demo --path",
        "cli/foreground.GO_ON: agentctl wait-any --timeout-seconds",
        "cli/lazy._EXAMPLES: agentctl new",
        "cli/lazy._EXAMPLES: agentctl spawn --name",
        "cli/lazy._EXAMPLES: agentctl wait-all",
        "cli/listed._draw: agentctl spawn",
        "cli/listed.show: agentctl resume --lost",
        "cli/report._too_many: agentctl report progress",
        "cli/report.percent_in: agentctl report progress",
        "cli/result._code: agentctl {}",
        "cli/result._notes: agentctl result --max-bytes",
        "cli/sentences._end: agentctl result",
        "cli/sentences.facts_of: agentctl resume --lost",
        "cli/sentences.facts_of: agentctl send",
        "cli/serve._explain: agentctl serve --link",
        "cli/spawnline._check_prompt: agentctl spawn",
        "cli/spawnline._check_prompt: agentctl spawn --agent",
        "cli/starting._PROMPT_FIRST: agentctl spawn --agent",
        "cli/starting._stay: agentctl resume --lost",
        "cli/subtask._notes: agentctl result --max-bytes",
        "cli/subtask._show_interrupted: agentctl cancel --all",
        "cli/subtask._show_interrupted: agentctl wait-all",
        "cli/tasks._draw: agentctl new",
        "cli/tasks._refuse_without_template: agentctl new",
        "cli/timeline._write: mkdir -p",
        "cli/tree.tree: agentctl activity --json",
        "cli/wait._wait: agentctl resume --lost",
        "cli/wait_any.wait_any_command: agentctl resume --lost",
        "cli/watching_lines._now: agentctl spawn",
        "cli/watching_table._fitting: agentctl spawn",
        "drivers/claude/start.(TESTED, INSTALL): npm install",
        "drivers/codex/driver._APP_SERVER: npm install",
        "drivers/llm/providers.HINT: agentctl doctor",
        "drivers/llm/providers._EXAMPLE: agentctl spawn --driver --model",
        "drivers/llm/providers.url_of: unset",
        "drivers/order._fields_in: agentctl doctor",
        "driving/own_home._persons: unset",
        "driving/running._order_in: agentctl doctor",
        "hosts/link.Link._try: agentctl doctor",
        "mcp/forms._way_to_the_whole: agentctl logs --raw",
        "operations/delegate/resuming.resume_worker: agentctl send",
        "operations/delegate/subtasks.begin_subtask: agentctl subtask",
        "operations/delegate/subtasks.find_subtask: agentctl wait-all",
        "operations/doctor/examining._NOTHING_STARTS: agentctl doctor --fix",
        "operations/doctor/examining._examine_task: agentctl doctor --fix",
        "operations/doctor/examining._examine_task: agentctl trust",
        "operations/doctor/examining._foreign: agentctl trust",
        "operations/doctor/examining._leftovers: agentctl doctor --fix",
        "operations/doctor/examining._machine: loginctl enable-linger",
        "operations/doctor/examining._missing_decisions: agentctl doctor --fix",
        "operations/doctor/examining._moved: agentctl doctor --fix",
        "operations/doctor/examining._moved: git worktree",
        "operations/doctor/examining._root: chmod",
        "operations/doctor/examining._stop_order: agentctl cancel --all",
        "operations/doctor/examining._strays: kill",
        "operations/doctor/examining._unfinished: agentctl doctor --fix",
        "operations/doctor/examining._unguarded: ps -eo",
        "operations/doctor/gates._HELD_HINT: agentctl doctor --free-account",
        "operations/doctor/gates.examine_gates: agentctl doctor --close-breaker",
        "operations/doctor/gates.examine_targets: agentctl notify test",
        "operations/doctor/models._use: agentctl spawn --driver --model",
        "operations/doctor/models._without_key: export",
        "operations/doctor/nodes._NodeExamination._engine: agentctl doctor --runner --fix",
        "operations/doctor/nodes.examine_nodes: agentctl doctor",
        "operations/doctor/orphans.examine_orphans: agentctl doctor --fix",
        "operations/doctor/orphans.examine_orphans: kill",
        "operations/doctor/probing.NodeProbe._submitted: agentctl doctor",
        "operations/doctor/strays.examine_strays: agentctl doctor --runner --fix",
        "operations/doctor/worktrees._scratch: agentctl doctor --fix",
        "operations/doctor/worktrees._unrecorded: agentctl doctor --fix",
        "operations/doctor/worktrees.examine_unknown: git worktree",
        "operations/doctor/worktrees.examine_worktrees: git worktree",
        "operations/install/agent_files._hooks: agentctl hook",
        "operations/install/agent_files.edits_for: agentctl hook",
        "operations/install/boot._MARK: agentctl install",
        "operations/install/boot._MARK: agentctl install --undo",
        "operations/install/boot._check: agentctl resume --lost",
        "operations/install/boot._crontab: agentctl install",
        "operations/install/boot._crontab: agentctl resume --lost",
        "operations/install/boot._line: agentctl install",
        "operations/install/edits.BlockEdit._marks: agentctl install",
        "operations/install/edits.BlockEdit._marks: agentctl install --undo",
        "operations/notify/telling.test_target: agentctl wait-all",
        "operations/show/activity.rebuild: agentctl wait",
        "operations/show/end_reasons._breaker: agentctl doctor --close-breaker",
        "operations/show/end_reasons._ways: agentctl result",
        "operations/show/end_reasons._ways: agentctl resume",
        "operations/show/further_runs._of_resume: agentctl retry",
        "operations/show/further_runs._of_resume: agentctl send",
        "operations/show/further_runs._of_retry: agentctl resume",
        "operations/show/further_runs._of_retry: agentctl subtask",
        "operations/show/listing._warnings: agentctl doctor",
        "operations/show/live_reasons._about: agentctl {}",
        "operations/show/live_reasons._asked_below: agentctl interact respond",
        "operations/show/live_reasons._cancel: agentctl cancel --grace-seconds",
        "operations/show/live_reasons._cancelling: agentctl cancel",
        "operations/show/live_reasons._guardian: agentctl cancel",
        "operations/show/live_reasons._guardian: agentctl wait",
        "operations/show/live_reasons._guardian: kill -CONT",
        "operations/show/live_reasons._of_question: agentctl interact respond",
        "operations/show/live_reasons._of_question: agentctl send",
        "operations/show/live_reasons._pause: agentctl unpause",
        "operations/show/live_reasons._process: agentctl wait",
        "operations/show/node_reasons.node_part: agentctl cancel",
        "operations/show/queued_reasons._account: agentctl doctor --free-account",
        "operations/show/queued_reasons._dependencies: agentctl wait",
        "operations/show/queued_reasons._environment: agentctl resume-queue",
        "operations/show/queued_reasons._movers: agentctl resume --lost",
        "operations/show/queued_reasons._movers: agentctl wait",
        "operations/show/queued_reasons._slots: agentctl wait-any",
        "operations/show/queued_reasons.queued_part: agentctl cancel",
        "operations/show/queued_reasons.queued_part: agentctl wait",
        "operations/show/timeline._warnings: agentctl doctor",
        "operations/show/why._claimed: agentctl trust",
        "operations/show/why._unaccepted: agentctl doctor --fix",
        "operations/show/worker_facts.WorkerFacts.command: agentctl {}",
        "operations/start/admission.refuse_elsewhere: agentctl subtask",
        "operations/start/again.start_anew: agentctl retry",
        "operations/start/agent_order.make_order: agentctl spawn --agent",
        "operations/start/from_template.start_template: agentctl new --template",
        "operations/start/requests.check_program: agentctl spawn",
        "operations/start/spawning._check_bound: agentctl spawn",
        "operations/start/spawning._check_bound: agentctl subtask",
        "operations/start/spawning._not_begun: agentctl doctor",
        "operations/start/tested._MEANS: agentctl doctor",
        "operations/talk/reporting.report_progress: agentctl report progress",
        "operations/talk/reporting.report_result: agentctl report result --summary --file",
        "operations/trust/definitions.find_agent_spec: agentctl trust",
        "operations/trust/root_settings.usable_settings: agentctl trust",
        "operations/trust/templates.check_usable: agentctl trust",
        "operations/wait/waiting.wait_all: agentctl spawn",
        "operations/where/calling.caller_or_refuse: agentctl spawn",
        "operations/where/locating._trust: agentctl trust",
        "operations/where/locating._which: agentctl new",
        "operations/where/locating.find_worker: agentctl doctor",
        "operations/where/locating.refuse_foreign_current: agentctl new",
        "operations/where/odd_files.examine_notes: agentctl doctor --fix",
        "operations/where/odd_files.examine_odd: agentctl doctor --fix",
        "operations/where/odd_files.examine_odd_root: agentctl doctor --fix",
        "operations/where/ownership.check_own: agentctl new",
        "operations/where/shared_roots.check_accepted: agentctl doctor --runner",
        "operations/where/task_limits.personal_defaults: chmod go-w",
        "operations/where/task_limits.personal_hosts: chmod go-w",
        "operations/where/task_limits.personal_notify: chmod go-w",
        "operations/where/task_limits.personal_runners: chmod go-w",
        "operations/where/task_limits.read_config: agentctl doctor",
        "operations/worktree/changes.known_worktree: agentctl worktrees show",
        "operations/worktree/changes.record_of: agentctl doctor",
        "operations/worktree/changes.record_of: agentctl spawn --worktree",
        "operations/worktree/diff._live: agentctl doctor",
        "operations/worktree/diff._touched: agentctl spawn --worktree",
        "operations/worktree/making._refuse_taken_prefix: git branch",
        "operations/worktree/making.find_origin: git commit",
        "operations/worktree/making.find_origin: git init",
        "operations/worktree/removing._refuse_change: agentctl worktrees remove",
        "operations/worktree/removing._refuse_in_use: agentctl cancel",
        "operations/worktree/removing._remove: agentctl worktrees show",
        "operations/worktree/removing._remove: git worktree",
        "screen/acting/outside.pager_of: export PAGER",
        "screen/acting/peek.Peek.why_not: agentctl logs --raw",
        "screen/fleet/drawing.said_of: agentctl resume --lost",
        "screen/start/line_editor.editor_argv: export",
        "screen/start/line_editor.editor_argv: export EDITOR",
        "supervision/dispatch/dispatch.check_free: agentctl wait-any",
        "supervision/dispatch/stop_order._HINT: agentctl doctor --fix",
        "supervision/queue/tickets.dependencies_of: agentctl doctor --fix",
        "supervision/worker/endings.read_decision: agentctl doctor --fix",
        "supervision/worker/environment._HINT: export XDG_RUNTIME_DIR",
        "supervision/worker/environment._HINT: mkdir -m",
        "supervision/worker/inboxes.put_message: agentctl result",
        "supervision/worker/spec._damaged: agentctl doctor",
        "supervision/worker/spec._spec_from: agentctl doctor",
        "supervision/worker/spec.read_spec: agentctl doctor",
        "supervision/worker/spec.read_vouched: agentctl doctor",
        "text/timeline_html._workers: agentctl timeline --json",
        "text/timeline_svg._Drawing._foot: agentctl timeline --json",
        "text/worker.respond_command: agentctl interact respond",
        "web/app.Website._log_in: agentctl serve --link",
        "web/board._unreadable: agentctl doctor",
        "web/gate.Gate._early: agentctl serve",
        "web/gate.Gate._from_elsewhere: agentctl serve",
        "web/serving.PortTaken.where_pages_are_open: agentctl serve --port",
        "web/serving.link_to: agentctl serve",
    }
)


def test_each_next_step_is_followed_by_a_test() -> None:
    missing = hints() - followed().keys() - UNFOLLOWED.keys() - NOT_YET
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
