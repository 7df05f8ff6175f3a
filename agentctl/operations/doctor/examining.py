"""`doctor`: what is wrong with a root and its machine; with `fix`, what is safe to repair is repaired."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import stat
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from agentctl.adapters import eventlog
from agentctl.adapters.files import as_storage_error, read_json, set_aside
from agentctl.adapters.locks import is_alive_held, locked
from agentctl.adapters.mounts import network_mount
from agentctl.adapters.paths import FilePath
from agentctl.adapters.taskdir import Root, TaskDir, TreeDir, WorkerDir
from agentctl.adapters.taskyaml import roster
from agentctl.adapters.treedir import tree_at, tree_of
from agentctl.adapters.watch import Watch
from agentctl.domain.names import first_of
from agentctl.domain.states import Reason
from agentctl.domain.worker.ends import HIDDEN
from agentctl.domain.worker.projection import TaskView
from agentctl.drivers.order import order_from
from agentctl.errors import AgentctlError, AtTerminal, Damaged
from agentctl.operations.doctor.conclusion import conclusion_on
from agentctl.operations.doctor.discarded import examine_bulk, examine_discarded, examine_removal
from agentctl.operations.doctor.gates import examine_accounts, examine_gates, examine_targets
from agentctl.operations.doctor.models import examine_models
from agentctl.operations.doctor.orphans import examine_orphans
from agentctl.operations.doctor.programs import examine_programs
from agentctl.operations.doctor.worktrees import examine_unknown, examine_worktrees
from agentctl.operations.show.current_state import mend_roster, read_task
from agentctl.operations.show.queue_holds import hold_in_words
from agentctl.operations.show.sessions_by_hand import held_by
from agentctl.operations.where.command_lines import command_line
from agentctl.operations.where.findings import Finding, finding
from agentctl.operations.where.moved import follow_move, move_of
from agentctl.operations.where.odd_files import (
    examine_notes,
    examine_odd,
    examine_odd_root,
    examine_shims,
)
from agentctl.operations.where.ownership import is_own, may_be_stopped, put_origin_back, taking_over
from agentctl.operations.where.personal_config import DEFAULTS, NOTIFY, section
from agentctl.operations.where.shared_roots import check_accepted
from agentctl.operations.where.task_config import read_config
from agentctl.operations.worktree.making import is_worktree_being_made, take_back
from agentctl.supervision.dispatch import stop_order
from agentctl.supervision.dispatch.dispatch import dispatch
from agentctl.supervision.dispatch.standstill import Standstill, standstill_of
from agentctl.supervision.life.judging import Condition, is_unguarded, judge, queued_instances
from agentctl.supervision.queue.queue_hold import is_any_held, read_holds
from agentctl.supervision.queue.tickets import UNSEEN, Ticket, read_queue
from agentctl.supervision.worker import environment
from agentctl.supervision.worker.endings import Decision, decide, decision_of, read_decision
from agentctl.supervision.worker.environment import AGENT_DIR, COOKIE
from agentctl.supervision.worker.spec import read_order, read_spec

#: A temporary file as adapters.files names it; a worker may have files of its own in its folder that end in `.tmp`.
_TEMPORARY = re.compile(r"\.(\d+)\.[0-9a-f]{8}\.tmp$")


def examine(root: Root | None, *, fix: bool) -> list[Finding]:
    """Return the findings; the last one is the verdict."""
    around = [*_machine(), *examine_programs(), *examine_models(), *examine_accounts()]
    around += _as_far_as_readable([examine_orphans(root, fix=fix)], "" if root is None else root.path)
    if root is None:
        return [*around, conclusion_on(around)]
    inside = [*examine_odd_root(root, fix=fix), *_as_far_as_readable(_looks_at(root, fix), root.path)]
    return [*around, *inside, conclusion_on(inside, root.path, around=around)]


def _examine_task(task: TaskDir, fix: bool) -> Iterator[Finding]:
    is_ours = is_own(task)
    if not is_ours and may_be_stopped(task):
        is_ours = fix and put_origin_back(task)
        yield finding(
            "error", "its origin is not that of the task that you made here: nothing is started in it", task.path,
            (AtTerminal("agentctl doctor --fix restores it, if one of its workers proves it"), taking_over(task.path)),
            fixed=is_ours,
        )  # fmt: skip
        if not is_ours:
            return
    yield from _own(task, fix) if is_ours else [_foreign(task)]


def _own(task: TaskDir, fix: bool) -> Iterator[Finding]:
    """Yield what is wrong with a task of the user's own."""
    yield from examine_odd(task, fix=fix)
    yield from _as_far_as_readable([_task(task, fix)], task.path)


def _as_far_as_readable(looks: Iterable[Iterator[Finding]], where: object) -> Iterator[Finding]:
    """Yield the findings of each look; what cannot be read ends the look that meets it, and is told once."""
    problems: set[str] = set()
    for look in looks:
        try:
            yield from look
        except (AgentctlError, OSError) as error:
            known = as_storage_error(error) or error
            steps = known.steps if isinstance(known, AgentctlError) else ()
            if str(known) not in problems:
                yield finding("error", str(known), where, steps or "look at it, and remove it")
            problems.add(str(known))


def _foreign(task: TaskDir) -> Finding:
    what = "a task that was not made here by you: it is not examined"
    return finding("note", what, task.path, taking_over(task.path))


# -- the machine -------------------------------------------------------------------------------------------------------


def _machine() -> Iterator[Finding]:
    if _kills_at_logout():
        yield finding(
            "warning", "the login manager kills all processes of a user at logout, including workers",
            "/etc/systemd/logind.conf", "loginctl enable-linger, or KillUserProcesses=no",
        )  # fmt: skip
    with Watch() as watch:
        if watch.fd is None:
            yield finding("note", "no inotify instance is available: waits look four times a second instead", "", "")
    try:
        environment.store_folder()
    except (AgentctlError, OSError) as error:
        yield finding("error", f"there is no private place for the environments of queued workers: {error}", "", "")
    try:
        section(DEFAULTS)
        section(NOTIFY)
    except AgentctlError as error:
        yield finding("error", error.message, "", error.steps)


def _kills_at_logout() -> bool:
    """Return whether logind.conf(5) says KillUserProcesses=yes; the file read last wins."""
    value = "no"
    base = Path("/etc/systemd/logind.conf")
    for path in (base, *sorted(Path("/etc/systemd/logind.conf.d").glob("*.conf"))):
        with contextlib.suppress(OSError):
            found = re.findall(r"^\s*KillUserProcesses\s*=\s*(\w+)", path.read_text(errors="replace"), re.MULTILINE)
            value = found[-1].lower() if found else value
    return value in ("yes", "true", "1", "on")


# -- the root ----------------------------------------------------------------------------------------------------------


def _looks_at(root: Root, fix: bool) -> list[Iterator[Finding]]:
    """Return the looks at a root; what one of them cannot read hides nothing that another one finds."""
    return [
        _privacy(root, fix), _network(root), _tasks(root, fix), examine_unknown(root),
        examine_discarded(root, fix=fix), examine_bulk(root), _strays(root),
    ]  # fmt: skip


def _tasks(root: Root, fix: bool) -> Iterator[Finding]:
    for task in map(root.task, root.task_ids()):
        yield from _examine_task(task, fix)


def _privacy(root: Root, fix: bool) -> Iterator[Finding]:
    mode = stat.S_IMODE(os.stat(root.path).st_mode)
    if mode & 0o077 and not _is_private(root.tasks):
        if fix:
            os.chmod(root.path, 0o700)
        what = f"others can read the root (mode {mode:04o})"
        yield finding("warning", what, root.path, "agentctl doctor --fix", fixed=fix)


def _network(root: Root) -> Iterator[Finding]:
    mount = network_mount(root.path)
    if mount is None:
        return
    try:
        check_accepted(root.path, mount)
    except AgentctlError as error:
        yield finding("error", error.message, root.path, error.steps)
    else:
        what = (
            f"the root lies on a network file system ({mount.kind}), and was accepted for the commands of this machine"
        )
        yield finding("note", what, root.path)


def _is_private(path: FilePath) -> bool:
    return path.exists() and not stat.S_IMODE(os.stat(path).st_mode) & 0o077


# -- a task ------------------------------------------------------------------------------------------------------------


def _task(task: TaskDir, fix: bool) -> Iterator[Finding]:
    tree = tree_at(task.path)  # The folder of a sub-task may hold the files of a tree, too: a worker can write there.
    looks = (
        _task_file(task, fix), examine_notes(tree, fix=fix), _log(task), _leftovers(tree, fix), _stop_order(tree, fix),
        examine_removal(task, fix=fix), _held(tree, fix),
    )  # fmt: skip
    yield from _as_far_as_readable(looks, task.path)
    for instance in task.instances():
        yield from _as_far_as_readable([_agent_files(task.worker(instance), fix)], f"{task.id}/{instance}")
    try:
        view, conditions = read_task(task)
    except AgentctlError as error:
        yield finding("error", error.message, task.path, error.steps)
        return
    more = (
        _missing_decisions(task, view, fix), _conditions(task, conditions), _unguarded(task), _refused(task, view),
        _unreadable(task, view), examine_shims(task, conditions), _unfinished(task, view, fix), _queue(tree, fix),
        _held_sessions(task, view), _moved(task, fix), examine_worktrees(task, fix=fix), examine_gates(task),
        examine_targets(task),
    )  # fmt: skip
    yield from _as_far_as_readable(more, task.path)
    if fix:
        mend_roster(task)


def _task_file(task: TaskDir, fix: bool) -> Iterator[Finding]:
    try:
        if fix and roster.put_marker_back(task):
            yield finding("error", "the line that begins agentctl's half was missing", task.task_file, fixed=True)
        read_config(task)
    except AgentctlError as error:
        yield finding("error", error.message, task.task_file, error.steps)


def _log(task: TaskDir) -> Iterator[Finding]:
    view = TaskView()
    reader = eventlog.LogReader(task.events)
    view.apply(reader.rows())
    for bad in view.damage:
        yield finding("warning", f"line {bad.seq} is not an event and is skipped: {bad.problem}", task.events, "")
    if more := view.bad_lines - len(view.damage):
        yield finding("warning", f"{more} more lines are not events and are skipped", task.events, "")
    with contextlib.suppress(FileNotFoundError):
        torn = os.stat(task.events).st_size - reader.offset
        if torn > 0:
            yield finding("note", f"{torn} bytes without a newline; the next writer cuts them off", task.events, "")


def _leftovers(tree: TreeDir, fix: bool) -> Iterator[Finding]:
    """Yield the temporary files of writers that were killed; those of live writers are left alone."""
    # A folder that cannot be read is told by the other looks.
    found = (Path(folder, name) for folder, _, names in os.walk(tree.path) for name in names)
    for path in sorted(path for path in found if path.suffix == ".tmp"):
        named = _TEMPORARY.search(path.name)
        if named and not Path("/proc", named[1]).exists():
            if fix:
                path.unlink(missing_ok=True)
            yield finding("note", "left by a writer that was killed", path, "agentctl doctor --fix", fixed=fix)
    for path in sorted(Path(tree.queue).glob(f"*{UNSEEN}")):
        if fix:
            with locked(tree.queue_lock):  # A live spawn holds this lock until the name counts.
                path.unlink(missing_ok=True)
        yield finding("note", "left by a spawn that was killed", path, "agentctl doctor --fix", fixed=fix)
    for path in sorted(Path(tree.cursors).glob("*.claim")):
        if not is_alive_held(path):
            yield finding("note", "an end was claimed by a wait that died; the next wait gives it again", path, "")


def _stop_order(tree: TreeDir, fix: bool) -> Iterator[Finding]:
    """Yield a decision to stop workers that was not carried out to its end; with `fix` the rest of it is."""
    try:
        with locked(tree.queue_lock):  # A live cancel holds this lock until it is.
            if not tree.stop_order.exists():
                return
            try:
                order = stop_order.read_stop_order(tree)
            except Damaged as error:
                if fix:
                    set_aside(tree.stop_order)
                yield finding("error", error.message, tree.stop_order, _NOTHING_STARTS, fixed=fix)
                return
    except FileNotFoundError:
        return
    if fix:
        dispatch(tree)
    what = f"a cancel of {len(order.workers)} workers was killed; the next look at the queue carries it out"
    yield finding("note", what, tree.stop_order, "agentctl doctor --fix", fixed=fix and not tree.stop_order.exists())


def _held(tree: TreeDir, fix: bool) -> Iterator[Finding]:
    """Yield what holds the queue of a tree of tasks."""
    if not is_any_held(tree):
        return
    try:
        holds = read_holds(tree).values()
    except Damaged as error:
        if fix:
            set_aside(tree.held)
        yield finding("error", error.message, tree.held, _NOTHING_STARTS, fixed=fix)
        return
    for hold in holds:
        if hold.instance is None:
            yield finding("note", hold_in_words(tree, hold), tree.held, "")


_NOTHING_STARTS = "nothing is started until it is gone: agentctl doctor --fix sets it aside"


def _agent_files(worker: WorkerDir, fix: bool) -> Iterator[Finding]:
    for path in (worker.spec, worker.exit, worker.result, worker.cancel, worker.process, worker.shim):
        try:
            _read(worker, path)
        except Damaged as error:
            if fix:
                set_aside(path)
            yield finding("error", error.message, path, "agentctl doctor --fix sets it aside", fixed=fix)


def _read(worker: WorkerDir, path: FilePath) -> None:
    """Read a file of a worker as those do who need what is in it.

    Raises:
        Damaged: They refuse it.
    """
    if path == worker.exit and worker.has_ended:
        read_decision(worker)
    elif path == worker.spec and path.exists():
        read_spec(path)
        order = read_order(worker)
        if order is not None:
            order_from(order)
    else:
        read_json(path)


def _missing_decisions(task: TaskDir, view: TaskView, fix: bool) -> Iterator[Finding]:
    """Yield the ends in the log whose exit.json is gone: without that file, the worker would be read as lost."""
    for worker in view.workers.values():
        worker_dir = task.worker(worker.instance)
        if not worker.is_terminal or worker_dir.has_ended or not worker_dir.path.exists():
            continue
        if fix:
            reason = Reason(worker.reason) if worker.reason in set(Reason) else None
            ending = Decision(
                status=worker.status, reason=reason, exit_code=worker.exit_code, signal=worker.signal,
                started_at=worker.started_at, duration_s=worker.duration_s, message="restored from the log",
            )  # fmt: skip
            decide(worker_dir, ending)
        yield finding("warning", "its end is only in the log", worker_dir.exit, "agentctl doctor --fix", fixed=fix)


def _conditions(task: TaskDir, conditions: dict[str, Condition]) -> Iterator[Finding]:
    for instance, condition in conditions.items():
        where = f"{task.id}/{instance}"
        match condition:
            case Condition.UNSUPERVISED:
                yield finding(
                    "warning", "unsupervised: its shim is gone, but it is alive", where,
                    command_line(task, "cancel", instance),
                )  # fmt: skip
            case Condition.LOST:
                yield finding("warning", "lost: worker and shim are gone, the exit was not seen", where, "", fixed=True)
            case Condition.ELSEWHERE:
                yield finding("note", "on another machine or in another pid namespace", where, "look at it there")
            case _:
                pass


def _refused(task: TaskDir, view: TaskView) -> Iterator[Finding]:
    """Yield the workers of which a disk refuses something: it waits in memory, with whoever guards the worker."""
    for worker in view.workers.values():
        if worker.is_terminal or not worker.refused:
            continue
        held = "it has ended, and its end" if "end" in worker.refused else "a request to it"
        what = f"{held} waits in memory: {worker.refused.get('problem')}"
        helps = "make the disk take files again; the process that guards it then writes it: leave that process alone"
        yield finding("error", what, f"{task.id}/{worker.instance}", helps)


def _unreadable(task: TaskDir, view: TaskView) -> Iterator[Finding]:
    """Yield the workers whose files cannot be read: how they are is not known, and nothing is decided about them."""
    for worker in view.workers.values():
        if worker.unreadable is not None and not worker.is_terminal:
            what = f"its state is unknown: {worker.unreadable.message}"
            yield finding("error", what, f"{task.id}/{worker.instance}", worker.unreadable.steps)


def _unguarded(task: TaskDir) -> Iterator[Finding]:
    """Yield the workers that have ended without a shim: of their processes, only those that were found are gone."""
    for instance in task.instances():
        worker = task.worker(instance)
        if is_unguarded(worker, decision_of(worker)):
            what = f"it ended while its shim was gone: {HIDDEN}"
            yield finding("warning", what, f"{task.id}/{instance}", "ps -eo pid,lstart,args shows what runs here")


def _unfinished(task: TaskDir, view: TaskView, fix: bool) -> Iterator[Finding]:
    """Yield the folders of spawns that were killed before their first event; the queue's lock excludes live ones."""
    queued = queued_instances(task)
    for instance in task.instances():
        worker = task.worker(instance)
        if instance in view.workers or instance in queued or worker.shim.exists() or worker.has_ended:
            continue
        if worker.worktree.exists() and is_worktree_being_made(worker):
            continue
        if fix:
            if worker.worktree.exists() and judge(worker) is Condition.LOST and not worker.shim.exists():
                take_back(worker)  # Not under the lock: git is slow, and the spawn that made it is proven gone.
            with locked(tree_of(task).queue_lock):
                if judge(worker) is Condition.LOST and not worker.shim.exists():
                    shutil.rmtree(worker.path)
        yield finding("note", "a spawn was killed before it began", worker.path, "agentctl doctor --fix", fixed=fix)


def _moved(task: TaskDir, fix: bool) -> Iterator[Finding]:
    """Yield that a task's files still name the place from which it was moved, and what keeps them from being mended."""
    move = move_of(task)
    if move is not None:
        problems = follow_move(task) if fix else []
        yield finding(
            "warning", f"its files name the place where it was: {move.old}", task.path, "agentctl doctor --fix",
            fixed=fix and not problems,
        )  # fmt: skip
        for problem in problems:
            yield finding("note", f"git could not be told of the move: {problem}", task.path, "git worktree list")


def _held_sessions(task: TaskDir, view: TaskView) -> Iterator[Finding]:
    """Yield the ended agents that cannot be continued now, since another program holds their session."""
    newest = {worker.agent_id: worker.instance for worker in view.workers.values() if worker.agent_id is not None}
    for instance in newest.values():
        held = held_by(task.worker(instance))
        if held is not None:
            yield finding("note", f"it cannot be continued now: {held.said}", f"{task.id}/{instance}", held.way)


def _queue(tree: TreeDir, fix: bool) -> Iterator[Finding]:
    queue = read_queue(tree)
    if queue:
        yield from _standstill(tree, standstill_of(tree), fix)
    for ticket in queue:
        where = ticket.worker_id
        with contextlib.suppress(AgentctlError):
            spec = read_spec(tree.worker_at(ticket.worker_id).spec)
            program = os.path.join(spec.cwd, spec.argv[0]) if os.sep in spec.argv[0] else spec.argv[0]
            if shutil.which(program) is None:
                yield finding("warning", f"queued, but its program is missing: {spec.argv[0]}", where, "install it")


def _standstill(tree: TreeDir, found: Standstill, fix: bool) -> Iterator[Finding]:
    """Yield why workers in the queue are stranded; with `fix` it is moved, as any command that waits would."""
    if found.unmoved:
        if fix:
            dispatch(tree)
        yield finding(
            "error", f"the queue stands still, and no live process will move it: {_stranded(found.unmoved)}",
            tree.path, command_line(tree, "resume", "--lost"), fixed=fix and not standstill_of(tree).unmoved,
        )  # fmt: skip
    if found.without_environment:
        what = f"the environment is gone, as after a restart: {_stranded(found.without_environment)}"
        yield finding("error", what, tree.path, command_line(tree, "resume", "--lost"))


def _stranded(tickets: list[Ticket]) -> str:
    names = first_of([f"{ticket.task_id}/{ticket.instance}" for ticket in tickets])
    return f"{names} {'is' if len(tickets) == 1 else 'are'} stranded"


# -- processes ---------------------------------------------------------------------------------------------------------


def _strays(root: Root) -> Iterator[Finding]:
    """Yield the processes that carry the cookie of an ended worker of this root."""
    import psutil  # 20 ms: only here, where every process is looked at.

    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):  # It has ended, or is another user's.
            environ, command = process.environ(), process.cmdline()
            folder = environ.get(AGENT_DIR, "")
            if COOKIE in environ and Path(folder).is_relative_to(root.path) and process.pid != os.getpid():
                yield from _as_far_as_readable([_stray(process.pid, command, WorkerDir(folder))], folder)


def _stray(pid: int, command: Sequence[str], worker: WorkerDir) -> Iterator[Finding]:
    if worker.has_ended:
        what = f"a process of an ended worker is alive: pid {pid}, {' '.join(command)[:120]}"
        yield finding("warning", what, worker.path, f"kill {pid}, if you do not want it")
