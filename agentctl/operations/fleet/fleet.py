"""All tasks of a root at once, brought up to date by what has changed: what `watch` shows."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import TracebackType

from agentctl.adapters.clock import monotonic
from agentctl.adapters.tails import file_version, read_tail
from agentctl.adapters.taskdir import Root, TaskDir, WorkerDir
from agentctl.adapters.watch import SAFETY_S, Watch
from agentctl.domain.names import WorkerId
from agentctl.domain.states import TERMINAL, UNKNOWN
from agentctl.domain.worker.last_output import lines_at_end
from agentctl.domain.worker.need import need_of
from agentctl.errors import AgentctlError
from agentctl.lean import TYPE_CHECKING
from agentctl.operations.fleet.glance import Doing, FleetTask, FleetWorker, Glance, TaskTotals, parent_in_fleet
from agentctl.operations.fleet.listing_times import ListingTimes, is_being_made
from agentctl.operations.fleet.seen import SeenEnds
from agentctl.operations.fleet.task_feed import FeedRow, TaskFeed, open_feed
from agentctl.operations.fleet.task_totals import totals_of, with_those_below
from agentctl.operations.show.activity_nodes import KEPT, ActivityNodes, interrupted_at
from agentctl.operations.show.results import last_words
from agentctl.operations.wait.live_view import sleep_over
from agentctl.supervision.account.accounts import folder_of_accounts
from agentctl.supervision.account.waiters import Awaited
from agentctl.supervision.queue.queue_hold import QueueHold

if TYPE_CHECKING:
    from agentctl.domain.documents.workers.worker import WorkerRow

#: How long one look may read: whoever draws wants to draw what is known so far.
_TURN_S = 0.05
#: How many bytes at the end of an activity are searched for an agent's last words.
_LOOKED_BACK = 1 << 16
#: How much is shown of the end of a command's output, of each stream.
_OUTPUT_BYTES, _OUTPUT_LINES = 4096, 6


class Fleet:
    """The tasks of a root. Used by one thread at a time.

    Args:
        seen: The ends that were looked at.
        only: The id of the only task that is looked at; the tasks below it are not.
        rest: Called every millisecond or so while much is read, so that other threads get their turn.
    """

    def __init__(
        self, root: Root, seen: SeenEnds, *, only: str | None = None, rest: Callable[[], object] = lambda: None
    ) -> None:
        self.root = root
        self._rest = rest
        self._only = only
        self._seen = seen
        self._watch = Watch()
        self._awaited = Awaited(folder_of_accounts())
        self._feeds: dict[str, TaskFeed] = {}
        self._unread: list[str] = []
        #: The tasks of which nothing is known: they cannot be read now.
        self._unreadable: set[str] = set()
        self._listing = ListingTimes(root)
        self._workers: dict[str, dict[WorkerId, FleetWorker]] = {}
        self._totals: dict[str, TaskTotals] = {}
        self._doings: dict[WorkerId, _WantedWorker] = {}
        self._holds: dict[str, QueueHold | None] = {}
        self._glance: Glance | None = None
        self._is_behind = False

    def want(self, wanted: Mapping[WorkerId, bool]) -> None:
        """Say which workers are to be seen: True of one means everything that it did, False its running calls."""
        for key in [key for key, one in self._doings.items() if wanted.get(key) is not one.is_expanded]:
            self._doings.pop(key).close()
        for key, is_expanded in wanted.items():
            if key not in self._doings and key.task_id in self._feeds:
                self._doings[key] = _WantedWorker(self._feeds[key.task_id].task, key.instance, is_expanded, self._watch)

    def look(self) -> Glance:
        """Return what there is now; the same object as before if nothing has changed."""
        has_changed = self._list_tasks()
        changed = {name: self._update(feed) for name, feed in self._feeds.items()}
        until = monotonic() + _TURN_S  # However long the known tasks have taken, the others get their turn.
        while self._unread and (monotonic() < until or not self._feeds):
            name = self._unread.pop()
            feed = open_feed(self.root.task(name), self._watch, self._awaited)
            self._unreadable.discard(name)
            if isinstance(feed, TaskFeed):
                self._feeds[name] = feed
                changed[name] = feed.names()
            elif feed is not None:  # The next listing tries again.
                self._unreadable.add(name)
            has_changed = True
        if self._seen.update():
            changed = {name: feed.names() for name, feed in self._feeds.items()}
        does_more = self._update_doings(until, changed)
        for name, instances in changed.items():
            if instances:
                self._judge(self._feeds[name], instances)
                has_changed = True
        holds = {name: feed.hold() for name, feed in self._feeds.items()}
        has_changed, self._holds = has_changed or holds != self._holds, holds
        if self._glance is None or has_changed or does_more or self._glance.is_partial != bool(self._unread):
            self._glance = self._made()
        return self._glance

    @property
    def has_more_to_read(self) -> bool:
        """Return whether the last look could not read everything that is there."""
        return bool(self._unread) or self._is_behind

    def sleep(self, timeout_s: float | None = None, others: Iterable[int] = ()) -> list[int]:
        """Sleep until something may have changed or one of `others` is readable; return what is readable.

        Args:
            timeout_s: At most this long; a sleep lasts no more than `SAFETY_S` in any case.
        """
        limit = min(self._listing.at_most_s, SAFETY_S if timeout_s is None else timeout_s)
        if self.has_more_to_read:
            limit = 0.0
        limit = min([limit, *(max(0.0, one.due - monotonic()) for one in self._doings.values() if one.due is not None)])
        live = [feed.live for feed in self._feeds.values() if feed.live is not None and feed.live.sentinels()]
        return sleep_over(live, self._watch, limit, others)

    def close(self) -> None:
        """Close all descriptors."""
        for feed in self._feeds.values():
            feed.close()
        self._watch.close()

    def __enter__(self) -> Fleet:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # -- tasks -----------------------------------------------------------------------------------------------------

    def _list_tasks(self) -> bool:
        """Find the tasks that were made or removed; return whether one was removed."""
        was_there = self._listing.is_there
        if not self._listing.is_due():
            return False
        if not was_there and self._listing.is_there:
            self._watch.add(self.root.tasks, names_only=True)
        names = dict.fromkeys(name for name in self._listing.task_ids() if self._only in (None, name))
        # Where names have come and gone, one may have come again, for another task.
        replaced = [name for name, feed in self._feeds.items() if self._listing.has_changed and feed.is_replaced]
        for name in replaced:
            self._forget(name)
        known = self._feeds.keys() | set(self._unread)
        # The youngest is read first: it is what a person looks for.
        new = [name for name in names if name not in known]
        unfinished = {name for name in new if is_being_made(self.root.task(name))}
        if unfinished:
            new = [name for name in new if name not in unfinished]
            self._listing.expire()
        self._unread = [*(name for name in self._unread if name in names), *new]
        self._unreadable &= names.keys()
        removed = self._feeds.keys() - names.keys()
        for name in removed:
            self._forget(name)
        return bool(removed or replaced)

    def _forget(self, name: str) -> None:
        self._feeds.pop(name).close()
        self._workers.pop(name, None)
        self._totals.pop(name, None)
        for key in [key for key in self._doings if key.task_id == name]:
            self._doings.pop(key).close()

    def _update(self, feed: TaskFeed) -> list[str]:
        try:
            changed = feed.update()
            for key in [WorkerId(feed.task.id, instance) for instance in feed.take_removed()]:
                if key in self._doings:
                    self._doings.pop(key).close()
            return changed
        except (AgentctlError, OSError):  # It was removed, or cannot be read any more: the next listing tells.
            self._listing.expire()
            return []

    def _judge(self, feed: TaskFeed, instances: Iterable[str]) -> None:
        """Make some workers of a task anew."""
        made = self._workers.setdefault(feed.task.id, {})
        for instance in instances:
            key, one = WorkerId(feed.task.id, instance), feed.row_of(instance)
            if one is None:
                made.pop(key, None)
            else:
                made[key] = self._worker(feed.task, key, one)
        self._totals[feed.task.id] = totals_of(made.values())

    def _worker(self, task: TaskDir, key: WorkerId, one: FeedRow) -> FleetWorker:
        idle = next((asked for asked in one.questions if asked.idle), None)
        questions = tuple(asked for asked in one.questions if not asked.idle)
        at = str(idle.asked_at) if idle is not None else one.row["endedAt"]
        need = need_of(
            one.row, asks=bool(questions), is_idle=idle is not None, is_seen=self._seen.has(key, at),
            has_changes=one.changed_files > 0,
        )  # fmt: skip
        return FleetWorker(task, one.row, need, questions, idle, one.changed_files)

    def _made(self) -> Glance:
        workers = {key: one for name in self._feeds for key, one in self._workers.get(name, {}).items()}
        known = {name: self._task(feed) for name, feed in self._feeds.items()}
        tasks = with_those_below({name: self._unknown(name) for name in self._unreadable} | known)
        doings = {key: one.doing for key, one in self._doings.items() if one.doing is not None}
        return Glance(tasks, _with_askers_below(tasks, workers), doings, bool(self._unread))

    def _unknown(self, name: str) -> FleetTask:
        return FleetTask(self.root.task(name), "", UNKNOWN, is_own=True, parent=None, parent_instance=None)

    def _task(self, feed: TaskFeed) -> FleetTask:
        above = self._feeds.get(feed.config.parent_task_id or "")
        is_below = above is not None and feed.task.id in above.view.subtasks
        parent = above.task.id if above is not None and is_below else None
        asker = feed.config.parent_instance if is_below else None
        totals = self._totals.get(feed.task.id, TaskTotals())
        return FleetTask(feed.task, feed.config.title, feed.state(), feed.is_own, parent, asker, totals, feed.hold())

    # -- what the wanted workers do --------------------------------------------------------------------------------

    def _update_doings(self, until: float, changed: dict[str, list[str]]) -> bool:
        """Read on in the activities of the wanted workers; return whether any of them has changed."""
        has_changed = self._is_behind = False
        for key, wanted in self._doings.items():
            feed = self._feeds.get(key.task_id)
            one = feed.workers.get(key.instance) if feed is not None else None
            if feed is None or one is None:
                continue
            if wanted.has_reported() and feed.refresh_reports(key.instance):
                changed.setdefault(key.task_id, []).append(key.instance)
            has_changed = wanted.update(one.row, until, self._rest) or has_changed
            self._is_behind = self._is_behind or wanted.is_behind
        return has_changed


class _WantedWorker:
    """What one wanted worker does, read on at each look."""

    def __init__(self, task: TaskDir, instance: str, is_expanded: bool, watch: Watch) -> None:
        self._dir = task.worker(instance)
        self.is_expanded = is_expanded
        self._nodes = ActivityNodes(self._dir, KEPT if is_expanded else 0)
        self._version: object = None
        self._reported: object = None
        self.doing: Doing | None = None
        self._watch = watch
        self._mark = None if self._dir.has_ended else watch.add(self._dir.path)

    def close(self) -> None:
        """Watch its files no more."""
        if self._mark is not None:
            self._watch.remove(self._mark)

    @property
    def is_behind(self) -> bool:
        """Return whether its activity has not been read to its end."""
        return self._nodes.is_behind

    @property
    def due(self) -> float | None:
        """When what was read already is to be seen, by the monotonic clock; None if it is seen."""
        return self._nodes.due

    def has_reported(self) -> bool:
        """Return whether its progress or its usage was written since the last call."""
        version = (_version_of(self._dir.progress), _version_of(self._dir.spent))
        before, self._reported = self._reported, version
        return version != before

    def update(self, row: WorkerRow, until: float, rest: Callable[[], object]) -> bool:
        """Read on; return whether anything has changed."""
        ended = row["status"] in TERMINAL
        is_agent = row["driver"] is not None
        output = None if is_agent else (_version_of(self._dir.stdout), _version_of(self._dir.stderr))
        version = (_version_of(self._dir.activity), output, ended)
        if version == self._version and not self._nodes.is_behind and self.due is None:
            return False
        self._version = version
        nodes = self._nodes.nodes(ended=ended, ended_at=interrupted_at(row), until=until, rest=rest)
        if self.due is not None:
            return False
        words = last_words(self._dir, _LOOKED_BACK) if is_agent else _last_lines(self._dir)
        self.doing = Doing(nodes, words, self._nodes.is_behind)
        return True


def _last_lines(worker: WorkerDir) -> str:
    """Return the last lines that a command printed: those on stderr, if there are any, after those on stdout."""
    lines = [_end_of(path) for path in (worker.stdout, worker.stderr)]
    return "\n".join(text for text in lines if text)


def _end_of(path: str) -> str:
    try:
        data, size = read_tail(path, _OUTPUT_BYTES)
    except OSError:
        return ""
    return "\n".join(lines_at_end(data, size)[-_OUTPUT_LINES:])


def _version_of(path: str | os.PathLike[str]) -> tuple[int, int, int] | None:
    try:
        return file_version(path)
    except OSError:
        return None


def _with_askers_below(
    tasks: Mapping[str, FleetTask], workers: dict[WorkerId, FleetWorker]
) -> dict[WorkerId, FleetWorker]:
    """Return the workers, those above an asking one with the number of questions that are open below them."""
    below: defaultdict[WorkerId, int] = defaultdict(int)
    for one in [one for one in workers.values() if one.questions]:
        for above in _above(tasks, workers, one.id):
            below[above] += len(one.questions)
    for key, count in below.items():
        one = workers[key]
        workers[key] = one._replace(row={**one.row, "askedBelow": count})
    return workers


def _above(
    tasks: Mapping[str, FleetTask], workers: Mapping[WorkerId, FleetWorker], key: WorkerId
) -> Iterator[WorkerId]:
    """Yield the workers above one, nearest first, through the tasks above its own; a forged cycle ends it."""
    seen = {key}
    while (above := parent_in_fleet(tasks, workers, key)) is not None and above not in seen:
        yield above
        seen.add(above)
        key = above
