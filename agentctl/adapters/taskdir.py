"""The files of a root, a task and a worker: the only module that knows their names."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import islice

from agentctl.adapters.files import file_text
from agentctl.adapters.opening import ODD_HINT, OddFile
from agentctl.adapters.paths import FilePath
from agentctl.domain.names import WorkerId, is_name
from agentctl.lean import TYPE_CHECKING

ROOT_NAME = ".agentctl"
_NONCE_CHARACTERS = 32
#: At most this many questions of a worker are looked at, since it may ask without end; each has up to three files.
_MOST_QUESTIONS = 1000
_CANCEL, _PAUSE, _INTERACTIONS = "cancel.json", "pause.json", "interactions"
_REQUESTS = frozenset({_CANCEL, _PAUSE, _INTERACTIONS})
#: More names than a worker's folder has, unless the worker has made some.
_MANY_NAMES = 100


def names_in(folder: FilePath, most: int) -> list[str]:
    """Return at most `most` names in a folder, in no order: a worker may have made a million."""
    try:
        with os.scandir(folder) as entries:
            return [entry.name for entry in islice(entries, most)]
    except (FileNotFoundError, NotADirectoryError):
        return []


def _folders_in(folder: FilePath) -> Iterator[str]:
    """Yield the names of the folders in a folder that a task or worker may have; links to folders do not count."""
    try:
        with os.scandir(folder) as entries:
            yield from (entry.name for entry in entries if is_name(entry.name) and entry.is_dir(follow_symlinks=False))
    except (FileNotFoundError, NotADirectoryError):
        return


class _Entry:
    """A file or folder of a fixed name; its path is made on first use (a queue of 10,000 uses few of them)."""

    def __init__(self, file_name: str) -> None:
        self.file_name = file_name

    def __set_name__(self, owner: type[_Folder], name: str) -> None:
        self._name = name

    def __get__(self, folder: _Folder, owner: type[_Folder]) -> FilePath:
        path = folder.__dict__[self._name] = folder.path / self.file_name
        return path


class _Place(_Entry):
    """A folder of a fixed name, in which files are made; a link in its place raises `OddFile`.

    `open_plain` checks only the last part of a path.
    """

    def __get__(self, folder: _Folder, owner: type[_Folder]) -> FilePath:
        path = super().__get__(folder, owner)
        if os.path.islink(path):
            del folder.__dict__[self._name]
            raise OddFile(f"{path} is not a folder: it is a link", hint=ODD_HINT)
        return path


if TYPE_CHECKING:
    from functools import cached_property as _once
else:

    class _once:  # noqa: N801 - it is used as a decorator
        """A value that is made on first use and then kept: `cached_property` without the lock of Python 3.11.

        Under 3.11, making 10,000 workers and reading their names takes 12 ms with this, and 20 ms with that.
        """

        def __init__(self, make):
            self._make = make
            self.__doc__ = make.__doc__

        def __set_name__(self, owner, name):
            self._name = name

        def __get__(self, folder, owner):
            value = folder.__dict__[self._name] = self._make(folder)
            return value


class _Folder:
    """A folder whose entries have fixed names."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = FilePath(os.fspath(path))

    def entries(self) -> Iterator[tuple[FilePath, bool]]:
        """Yield each place of a fixed name, and whether it is a folder."""
        for entry in (entry for kind in reversed(type(self).__mro__) for entry in vars(kind).values()):
            if isinstance(entry, _Entry):
                yield self.path / entry.file_name, isinstance(entry, _Place)

    def is_at(self, path: str) -> bool:
        """Return whether a path leads to this folder; it may do so through another link."""
        if self.path == path:
            return True
        try:
            return os.path.samefile(self.path, path)
        except (OSError, ValueError):
            return False


class Root(_Folder):
    """`.agentctl/`: where the tasks of a project are."""

    tasks = _Place("tasks")
    #: Which task the folder says, and a file for each session that has chosen one.
    current = _Entry("current")
    chosen = _Place("chosen")
    lock = _Entry("root.lock")
    templates = _Entry("templates")
    #: Agents that the project defines.
    definitions = _Entry("agents")
    worktrees = _Entry("worktrees")
    #: Where workers run by default; it may have come with the project, so it counts once it is trusted.
    settings = _Entry("config.yaml")
    #: Keeps our files out of the repository that the root may lie in.
    gitignore = _Entry(".gitignore")
    #: Tasks that were put away, each with those below it, as a root of its own: `archive/ID/tasks/...`.
    archive = _Place("archive")
    #: What was removed, until it is deleted: nobody looks for anything there.
    removed = _Place("removed")
    #: Which request with a key has made which task.
    keys = _Place("keys")

    def parts(self) -> Iterator[FilePath]:
        """Yield everything in a root except the worktrees, in which its workers work."""
        yield from (
            self.tasks,
            self.current,
            self.chosen,
            self.lock,
            self.templates,
            self.definitions,
            self.settings,
            self.gitignore,
            self.archive,
            self.removed,
            self.keys,
        )

    def task(self, task_id: str) -> TaskDir:
        """Return the directory of a task, which need not exist."""
        return TaskDir(self.tasks / task_id)

    def archived(self, name: str) -> Root:
        """Return the place of a task that was put away, as the root that it now is."""
        return Root(self.archive / name)

    def task_ids(self) -> list[str]:
        """Return the ids of all tasks, oldest name first."""
        tasks = (self.task(name) for name in _folders_in(self.tasks))
        return sorted(task.id for task in tasks if task.task_file.exists() and not task.put_away.exists())

    def unmade_task_ids(self) -> list[str]:
        """Return the names of the folders that may become tasks: they have no `task.yaml` yet."""
        return [name for name in _folders_in(self.tasks) if not self.task(name).task_file.exists()]


class TaskDir(_Folder):
    """One job on disk."""

    task_file = _Entry("task.yaml")
    task_lock = _Entry("task.lock")
    #: Held while it is decided which works are tried again. While it does not exist, no work has had a further try.
    tries_lock = _Entry("tries.lock")
    #: Exists while the roster in task.yaml is known to be behind the log.
    stale_roster = _Entry("roster.stale")
    config_cache = _Entry("config.json")
    events = _Entry("events.jsonl")
    agents = _Place("agents")
    keys = _Place("keys")
    #: Calls over MCP that answer later, under names that cannot be guessed.
    handles = _Place("handles")
    template = _Place("template")
    #: Sub-agents of programs that a person runs by hand, as those programs report them.
    observed = _Entry("observed.jsonl")
    #: Written by `join` where no other folder is named.
    report_text = _Entry("report.md")
    report_data = _Entry("report.json")
    #: Shows that this person made the task, and that it did not come with somebody else's files.
    origin = _Entry("origin")
    #: Under which root the paths in its files are right.
    place = _Entry("place")
    #: The key of the request that has made it, if it had one.
    made_by = _Entry("made-by")
    #: A decision to remove some of its workers, while that is carried out.
    removal = _Entry("removal.json")
    #: A decision to put it away with all below it, or to bring it back: until that is carried out, no command sees it.
    #: It stays with a task that was put away.
    put_away = _Entry("archive.json")

    #: Whether the command that runs means it, without having been told its name.
    is_meant = False

    @_once
    def id(self) -> str:
        """The task's id."""
        return self.path.name

    @_once
    def root(self) -> Root:
        """The root that this task lies in."""
        return Root(self.path.parent.parent)

    def nonce(self) -> str:
        """Return the random text in `origin`, known only to those who have read it; empty where there is none.

        Raises:
            StorageError: It cannot be read.
        """
        return file_text(self.origin, "ascii").strip()[:_NONCE_CHARACTERS]

    @property
    def exists(self) -> bool:
        """Return whether there is such a task."""
        return self.task_file.exists()

    def sibling(self, task_id: str) -> TaskDir:
        """Return the directory of a task of the same root."""
        return self if task_id == self.id else TaskDir(self.path.parent / task_id)

    def worker(self, instance: str) -> WorkerDir:
        """Return the directory of a worker, which need not exist."""
        return WorkerDir(self.agents / instance, self)

    def worker_at(self, worker_id: WorkerId) -> WorkerDir:
        """Return the directory of a worker of any task of the same root."""
        return self.sibling(worker_id.task_id).worker(worker_id.instance)

    def instances(self) -> list[str]:
        """Return the names of all agent folders."""
        return sorted(_folders_in(self.agents))


class TreeDir(TaskDir):
    """The folder of a root task: beside the task's own files, those that its whole tree of tasks uses.

    `adapters/treedir.py` alone makes one, so no sub-task is taken for its root task.
    """

    slots = _Place("slots")
    queue = _Place("queue")
    queue_lock = _Entry("queue.lock")
    #: Which workers are to be stopped, by one decision that is being carried out.
    stop_order = _Entry("stop.json")
    #: The tasks whose queues are held.
    held = _Entry("held.json")
    cursors = _Place("cursors")
    shim_log = _Entry("shim.log")
    #: A name for each account that workers of the tree wait for, and the process that wakes them.
    cooling = _Place("cooling")
    waker = _Entry("waker.json")
    #: The process that tells the person, what it has told, and where this tree is told of or not.
    sender = _Entry("sender.json")
    notices = _Entry("notices.jsonl")
    notify = _Entry("notify.json")
    #: Notes of guardians (shims and the like) of other trees that were started below its workers.
    kin = _Place("kin")
    #: When agents failed last.
    failures = _Place("failures")

    def folders(self) -> Iterator[FilePath]:
        """Yield the folders that every task has from the start, since it may be the top of its tree."""
        yield from (self.path, self.agents, self.slots, self.queue, self.cursors)


class WorkerDir(_Folder):
    """`agents/<instance>/`: what a worker is to do, who guards it, and its results."""

    spec = _Entry("spec.json")
    #: The identity of its shim; the liveness lock is on this file.
    shim = _Entry("shim.json")
    #: Its first process, with the cookie that all of its processes carry.
    process = _Entry("worker.json")
    control = _Entry("control")
    cancel = _Entry(_CANCEL)
    pause = _Entry(_PAUSE)
    stdout = _Entry("stdout.log")
    stderr = _Entry("stderr.log")
    activity = _Entry("activity.jsonl")
    progress = _Entry("progress.json")
    interactions = _Place(_INTERACTIONS)
    inbox = _Place("inbox")
    #: Its reports and questions from a sandbox in which it may write nothing else of its task; they count as no more.
    outbox = _Place("outbox")
    result = _Entry("result.json")
    #: The vendor's session of an agent: what `resume` needs.
    session = _Entry("session.json")
    #: The conversation of an agent without a program of a vendor, and the whole outputs of its commands.
    conversation = _Entry("conversation.jsonl")
    outputs = _Place("outputs")
    #: The prepared first answers of its own server, which removes them.
    offer = _Entry("offer.json")
    #: How the agent ended, as its driver saw it: the shim's decision follows this.
    outcome = _Entry("outcome.json")
    #: The tokens and the money that an agent has used up, over all of its attempts.
    spent = _Entry("spent.json")
    #: Where there was nothing before its program started, of what a sandbox makes: see `mount_points`.
    mount_points = _Entry("mountpoints.json")
    #: When it was at work, as its shim measured it; only for a worker that was ever not at work.
    worked = _Entry("worked.json")
    #: The inputs of its dialogue other than the program's output, which is in stdout.log.
    dialogue = _Entry("dialogue.jsonl")
    exit = _Entry("exit.json")
    #: Its git worktree, and what it changed there.
    worktree = _Entry("worktree.json")
    #: The turns of an agent in a worktree, and the objects of git that say what lay there at the end of the last ones.
    turns = _Entry("turns.jsonl")
    turn_objects = _Place("turns")
    #: The folder of settings that its program is given in place of the person's, while it runs.
    home = _Place("home")
    #: The process of an editor that has its session open holds the liveness lock of this file.
    editor = _Entry("editor.lock")
    #: A name for each worker that it started: `TASK.INSTANCE`.
    children = _Place("children")
    patch = _Entry("changes.patch")
    #: Commits and changes that were only in repositories within its worktree.
    submodules = _Place("submodules")
    #: The whole of texts of which a reader was shown only the beginning.
    texts = _Place("texts")
    #: The launch on a node that is under way, or was last; and the folders in which launches are carried out.
    launch = _Entry("launch.json")
    launches = _Place("launches")

    def __init__(self, path: str | os.PathLike[str], task: TaskDir | None = None) -> None:
        super().__init__(path)
        #: The task that this worker belongs to.
        self.task = task or TaskDir(self.path.parent.parent)

    @_once
    def instance(self) -> str:
        """The worker's name."""
        return self.path.name

    @property
    def id(self) -> WorkerId:
        """Its name among all tasks of its root."""
        return WorkerId(self.task.id, self.instance)

    @property
    def lock(self) -> FilePath:
        """The lock of its end, its questions and its inbox: the folder itself."""
        return self.path / ""  # With the slash, locking a removed folder does not make a file of its name.

    @property
    def has_ended(self) -> bool:
        """Return whether its end is decided."""
        return self.exit.exists()

    def attempt_exit(self, attempt: int) -> FilePath:
        """Return the file that keeps the exit of an attempt that was retried."""
        return self.path / f"exit.{attempt}.json"

    def question(self, question_id: str) -> FilePath:
        """Return the file of a question; its answer and its asker's lock lie beside it."""
        return self.interactions / f"{question_id}.json"

    def answer(self, question_id: str) -> FilePath:
        """Return the file of an answer."""
        return self.interactions / f"{question_id}.answer.json"

    def asker_lock(self, question_id: str) -> FilePath:
        """Return the file whose liveness lock a waiting asker holds."""
        return self.interactions / f"{question_id}.lock"

    def has_no_request(self) -> bool:
        """Return whether its folder surely holds no request to cancel or to pause it, and no question."""
        try:
            names = names_in(self.path, _MANY_NAMES)
        except OSError:
            return False
        return len(names) < _MANY_NAMES and _REQUESTS.isdisjoint(names)

    def question_ids(self) -> list[str]:
        """Return the ids of all its questions, oldest first."""
        try:
            names = names_in(self.interactions, 3 * _MOST_QUESTIONS)
        except OddFile:
            return []
        ids = (name[:-5] for name in names if name.endswith(".json") and is_name(name[:-5]))
        return sorted(ids, key=lambda name: (len(name), name))[:_MOST_QUESTIONS]


class LaunchDir(_Folder):
    """What the head and a node exchange about one launch of a worker there.

    Each file has one writer: a network file system makes no promise about locks, or about appends from two machines.
    """

    #: Written at the head: what is to be done, and the environment, which the node removes.
    order = _Entry("order.json")
    environment = _Entry("environment")
    #: What the engine called it; only a hint.
    handle = _Entry("handle.json")
    #: How it ended, as the shim at the head takes it.
    verdict = _Entry("verdict.json")
    #: How much of the node's log is in the task's own.
    mirrored = _Entry("mirrored.json")
    to_node = _Place("to-node")
    #: Written on the node: who carries it out, made once; and its sign of life, whose time of change counts.
    claim = _Entry("claim.json")
    heartbeat = _Entry("heartbeat")
    #: How the worker has ended, under the seal of the launch.
    ended = _Entry("ended.json")
    #: The root of the one task that lies on the node, and the commands that its worker wants carried out at the head.
    node = _Place("node")
    calls = _Place("calls")
    #: The name of the last report that came by way of the head and was kept.
    kept_report = _Entry("kept-report")
    #: Written by the engine.
    engine_log = _Entry("engine.log")

    @property
    def id(self) -> str:
        """The launch's id."""
        return self.path.name

    @_once
    def inbound(self) -> ToNodeDir:
        """What the head tells the node."""
        return ToNodeDir(self.to_node)

    def worker_on_node(self, worker: WorkerDir) -> WorkerDir:
        """Return the worker's folder in the node's own task."""
        return Root(self.node).task(worker.task.id).worker(worker.instance)


class ToNodeDir(_Folder):
    """What the head tells a node, in files that the node looks at once a second."""

    cancel = _Entry("cancel.json")
    pause = _Entry("pause.json")
    #: The questions that the worker's commands have asked at the head, and for which its clock stands still.
    asked = _Entry("asked.json")
    #: Exists once the worker has a slot, if it was submitted before.
    go = _Entry("go")
    answers = _Place("answers")
    inbox = _Place("inbox")
    #: What the worker has reported by way of the head, each as in an outbox: its files are written on the node alone.
    reports = _Place("reports")
    #: A folder for each command that is carried out at the head.
    replies = _Place("replies")


class ProbeDir(_Folder):
    """What `doctor` and a probe on a node exchange; each file has one writer, as in a launch."""

    #: Begins its name; the launch's id follows.
    PREFIX = ".agentctl-probe-"
    #: Written at the head: what is to be looked at; the liveness lock of whoever waits for it; the answer to `begun`.
    order = _Entry("order.json")
    asker = _Entry("asker")
    answer = _Entry("answer.json")
    #: Written on the node: its first nonce; what it says once it has seen the answer; what it is doing; what it found.
    begun = _Entry("begun.json")
    seen = _Entry("seen.json")
    step = _Entry("step.json")
    found = _Entry("found.json")
    #: Where it tries what the file system can do.
    trial = _Place("trial")
    engine_log = _Entry("engine.log")

    @property
    def id(self) -> str:
        """The id of its launch."""
        return self.path.name.removeprefix(self.PREFIX)
