"""`notify list` and `notify test`: which targets there are, what they were told, and whether they can be reached."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from agentctl.adapters.clock import now_iso
from agentctl.adapters.taskdir import TaskDir
from agentctl.adapters.treedir import tree_of
from agentctl.domain.notice.notice_messages import message_to_test
from agentctl.domain.notice.notices import Notice
from agentctl.domain.notice.quiet import in_words
from agentctl.domain.notice.targets import COMMAND, TERMINAL, Applied, NoticeTarget
from agentctl.domain.text.plaintext import plain
from agentctl.errors import AtTerminal, NotFound, Refused
from agentctl.lean import TYPE_CHECKING
from agentctl.operations.notify.applied_targets import applied_to
from agentctl.operations.where.calling import is_from_worker
from agentctl.operations.where.lineage import shown_caller
from agentctl.operations.where.ownership import is_own
from agentctl.operations.where.personal_config import NOTIFY, personal_file, section
from agentctl.supervision.notify.armed import KEPT_VARIABLES, Armed
from agentctl.supervision.notify.book import FAILED, REFUSED, SEEN, SENT, Book, Step
from agentctl.supervision.notify.delivery import deliver
from agentctl.supervision.notify.sender import is_quiet, notices_due
from agentctl.supervision.notify.tree_notices import TreeNotices

if TYPE_CHECKING:
    from agentctl.domain.documents.notices import TargetRow, TargetTest, TargetTold


def list_targets(task: TaskDir | None) -> list[TargetRow]:
    """Return every target of the person, whether it applies to the tree of a task, and what it was told there."""
    personal = section(NOTIFY)
    found = {} if task is None else {one.target.name: one for one in applied_to(task)}
    armed = Armed((), quiet=personal.quiet, environ=_environ())
    quiet, is_quiet_now = None if personal.quiet is None else in_words(personal.quiet), is_quiet(armed)
    book, notices = _told(task) if task is not None and found else (None, [])
    rows: list[TargetRow] = []
    for name, target in personal.targets.items():
        applied = found.get(name)
        rows.append({
            "target": name, "type": target.type, "where": where_of(target), "by": applied.by if applied else None,
            "events": list((applied.target if applied else target).events), **_told_of(name, applied, book, notices),
            "quiet": quiet, "isQuietNow": is_quiet_now,
        })  # fmt: skip
    return rows


def where_of(target: NoticeTarget) -> str:
    """Return in short where a target is; never a token, and no more of a URL than its host."""
    if target.type == COMMAND:
        return os.path.basename(target.argv[0])
    if target.type == TERMINAL:
        return ",".join(target.ways)
    from urllib.parse import urlsplit

    return urlsplit(target.url).netloc


def _told(task: TaskDir) -> tuple[Book, list[Notice]]:
    tree = tree_of(task)
    book = Book(tree.notices)
    book.refresh()
    return book, TreeNotices(tree).look()


def _told_of(name: str, applied: Applied | None, book: Book | None, notices: Sequence[Notice]) -> TargetTold:
    steps = [] if book is None else [step for (target, _), step in book.steps.items() if target == name]
    counts = {what: sum(step.what == what for step in steps) for what in (SENT, SEEN, REFUSED, FAILED)}
    wrong = [step for step in steps if step.what in (FAILED, REFUSED)]
    last = max(wrong, key=lambda step: step.at, default=None)
    since = _since(applied)
    waiting = [] if book is None or since is None else notices_due(since, book, notices)
    return {
        "sent": counts[SENT], "seen": counts[SEEN], "refused": counts[REFUSED], "failing": counts[FAILED],
        "waiting": len(waiting), "lastError": plain(last.said) if last else None,
    }  # fmt: skip


def _since(applied: Applied | None) -> NoticeTarget | None:
    return None if applied is None or applied.target.type == TERMINAL else applied.target


def failing(task: TaskDir) -> Iterator[tuple[str, int, str]]:
    """Yield each target that cannot be told of the tree of a task: its name, how many notices, and what came back."""
    tree = tree_of(task)
    if not tree.notices.exists() or not is_own(tree):
        return
    book = Book(tree.notices)
    book.refresh()
    wrong: dict[str, list[Step]] = {}
    for (target, _), step in book.steps.items():
        if step.what in (FAILED, REFUSED):
            wrong.setdefault(target, []).append(step)
    for target, steps in sorted(wrong.items()):
        yield plain(target), len(steps), plain(max(steps, key=lambda step: step.at).said)


def test_target(name: str) -> TargetTest:
    """Send one message to a target now, whatever hour it is; return what came of it.

    Raises:
        NotFound: There is no such target.
        Refused: The caller is a worker, or it is a terminal: only who has one can write to it.
    """
    if shown_caller() is not None or is_from_worker():
        raise Refused("a worker may not send anything to a target", hint="only a person can, in their own terminal")
    personal = section(NOTIFY)
    target = personal.targets.get(name)
    if target is None:
        names = ", ".join(sorted(personal.targets)) or "none"
        raise NotFound(f"there is no target {name!r}", hint=f"known: {names}; they are defined in {personal_file()}")
    message = message_to_test(name, now_iso())
    if target.type == TERMINAL:
        raise Refused(
            f"{name} is a terminal: a wait on it tells there", hint=AtTerminal("agentctl wait-all, on a terminal")
        )
    outcome = deliver(target, Armed((target,), personal.hosts, None, _environ()), message)
    return {"target": name, "delivered": outcome.step == SENT, "said": outcome.said}


def _environ() -> dict[str, str]:
    return {name: os.environ[name] for name in KEPT_VARIABLES if name in os.environ}
