"""`spawn`, `spawn-template`, `resume-queue`: start workers, one or many, now or when there is a slot."""

from __future__ import annotations

import contextlib
import io
import sys
from collections.abc import Iterable, Iterator

from agentctl.adapters.files import storage_errors
from agentctl.adapters.taskdir import TaskDir
from agentctl.domain.states import Status
from agentctl.domain.text.plaintext import plain
from agentctl.domain.worker.ends import end_in_words, said_at_end
from agentctl.errors import Argument, AtTerminal, ExitCode, Next, NoFreeSlot, UsageError, WithArguments
from agentctl.interfaces.commands.model.command_model import (
    COMMAND,
    FINDS,
    FLAG,
    PROMPT,
    TEXT,
    Carried,
    Command,
    Parameter,
    Showing,
    Shown,
)
from agentctl.interfaces.commands.model.far_line import far_line
from agentctl.interfaces.commands.model.invocation import Invocation
from agentctl.interfaces.commands.model.parameters import IN_TASK, KEY, QUEUE_UP, of_start, pairs_in
from agentctl.interfaces.commands.parts.foreground import in_foreground
from agentctl.interfaces.commands.parts.told_ends import because
from agentctl.interfaces.commands.parts.wait_notes import (
    AskedHere,
    HeldNotes,
    QuestionNotes,
    RefusedNotes,
    StrandedNotes,
    ends_shown,
)
from agentctl.interfaces.words.outline import warning
from agentctl.lean import TYPE_CHECKING, Any
from agentctl.operations.start.interruption import interrupted
from agentctl.operations.start.options import OPTIONS, OUTPUT, QUEUE, WORK, given_options
from agentctl.operations.start.requests import AgentWork, Spawned, SpawnRequest, argv_of_shell
from agentctl.operations.start.spawning import spawn_workers, task_for_spawn
from agentctl.operations.where.command_lines import command_line

if TYPE_CHECKING:
    from typing import TextIO

    from agentctl.domain.documents.workers.starts import AwaitedWorker, Spawns
    from agentctl.operations.wait.waiting import WaitedEnd

#: In characters: some 100,000 workers.
_LONGEST_BATCH = 64 << 20
#: What timeout(1) exits with.
_OUT_OF_TIME = 124


def spawn(
    call: Invocation,
    *,
    command: list[str] | None = None,
    prompt: str | None = None,
    shell: str | None = None,
    queue: bool | None = None,
    wait: bool = False,
    batch: str | None = None,
    each: str | None = None,
    roster: bool = False,
    resume_queue: bool = False,
    **options: Any,
) -> Carried[Spawns | list[str]]:
    """Start an agent or a command as a worker.

    It keeps running when this terminal is closed. Without a task, one is made.
    With --wait the exit code is the worker's own (128 + n for signal n; 124 if its time was up; 7 if it has none); at a
    terminal you answer its questions there and then, and Ctrl-C leaves the worker running.
    """
    if each is not None:
        _check_each(each, command, prompt)
    modes = (command, shell, batch, roster, resume_queue, prompt)
    if sum(mode not in (None, False) for mode in modes) != 1:
        raise UsageError(
            WithArguments("give one of PROMPT, -- CMD, ", Argument("shell"), ", ", Argument("batch")),
            hint=Next("help", "spawn"),
        )
    of_agent, of_worker = given_options(options)
    request = SpawnRequest(
        argv=(command or ()) if shell is None else argv_of_shell(shell),
        work=_work(prompt, of_agent),
        **{**of_worker, "env": pairs_in(Argument("env"), of_worker.get("env", ()))},
    )
    many = command is None and shell is None and prompt is None
    _check_together(request, queue=queue, many=many)
    if resume_queue:
        return requeue(call)
    if roster:
        return spawn_template(call, wait=wait)
    if batch is not None:
        requests, queue = _read_batch(batch, queue)
    else:
        requests = [request] if each is None else _read_each(each, request)
    task = task_for_spawn(call.task_named, root=call.root_named, force=call.force)
    with _naming_the_line(call, each, command, prompt, options):
        spawned = spawn_workers(task, requests, queue=queue)
    return _show(call, task, spawned, wait=wait, many=many or each is not None)


def _check_together(request: SpawnRequest, *, queue: bool | None, many: bool) -> None:
    if many and request != SpawnRequest():
        raise UsageError(
            "an option for one worker is given, but no command",
            hint="add -- CMD; the lines of a batch have options of their own",
        )
    if request.after and queue is False:
        raise UsageError(
            WithArguments(Argument("after"), " waits, and ", Argument("no_queue"), " does not: leave one of them out")
        )


_STDIN = "-"
_PROMPT_FIRST = AtTerminal('a prompt goes before --, as in agentctl spawn --agent explore "Where are the tests?"')


def _check_each(each: str, command: list[str] | None, prompt: str | None) -> None:
    if command is None and prompt is None:
        raise UsageError(
            WithArguments(Argument("each"), " goes with a command or a prompt"),
            hint="""add -- CMD {}; for a line of a shell: -- sh -c 'wc -l "$1"' sh {}""",
        )
    if each == prompt == _STDIN:
        raise UsageError("stdin cannot be both the lines and the prompt", hint=AtTerminal("give --each a FILE"))


@contextlib.contextmanager
def _naming_the_line(
    call: Invocation, each: str | None, command: list[str] | None, prompt: str | None, options: dict[str, Any]
) -> Iterator[None]:
    """Put the line that would work into the error where there are fewer slots than lines."""
    try:
        yield
    except NoFreeSlot as error:
        if each is None or _STDIN in (each, prompt):
            raise
        import shlex  # Only for a refusal.

        words = far_line("spawn", call, each=each, **options)[1:]
        words += ["--", *command] if command else [str(prompt)]
        others = (error.hint or "").partition("; ")[2]  # The first way is --queue.
        error.hint = f"each waits for its turn with agentctl spawn --queue {shlex.join(words)}"
        error.hint += f"; {others}" if others else ""
        raise


def _work(prompt: str | None, agent_options: dict[str, Any]) -> AgentWork | None:
    if prompt is None:
        if agent_options:
            option = Argument(min(agent_options))
            raise UsageError(WithArguments(option, " is for an agent, and there is no prompt"), hint=_PROMPT_FIRST)
        return None
    text = sys.stdin.read() if prompt == _STDIN else prompt
    return AgentWork(prompt=text, **agent_options)


def spawn_template(call: Invocation, *, wait: bool = False, key: str | None = None) -> Showing[Spawns]:
    """Start the workers of the template that the task was made from.

    They go to the queue, and can be started once.

    On a command line:
        `new --template NAME --start` does both steps. With --wait it exits with 0 only if all of them completed.
    """
    from agentctl.operations.start.from_template import start_template

    task = call.task()
    return _show(call, task, start_template(task, key), wait=wait, many=True)


def requeue(call: Invocation) -> Shown[list[str]]:
    """Give this command's environment to queued workers that have lost theirs.

    The environments of queued workers are kept in memory: a reboot or a logout takes them, and the workers stay
    queued.

    On a command line:
        It prints the workers that have one again; `doctor` names those that lack one.
    """
    from agentctl.operations.start.requeuing import requeue_workers  # Only after a reboot.

    resumed = requeue_workers(call.task())
    notes = [] if resumed else ["every queued worker has its environment"]
    return Shown(resumed, (f"{instance} has an environment again" for instance in resumed), notes=notes)


def _show(call: Invocation, task: TaskDir, spawned: list[Spawned], *, wait: bool, many: bool) -> Showing[Spawns]:
    try:
        return (yield from _shown(call, task, spawned, wait=wait, many=many))
    except KeyboardInterrupt:
        if not spawned:
            raise
        raise interrupted(task, [one.agent_instance for one in spawned]) from None


def _shown(call: Invocation, task: TaskDir, spawned: list[Spawned], *, wait: bool, many: bool) -> Showing[Spawns]:
    if wait:
        return (yield from _stay(call, task, spawned, many=many))
    if call.json:
        rows = [one.to_json() for one in spawned]
        yield Shown(rows if many else rows[0])
    else:
        yield from _started(spawned)
        _tell_where_to_look(call, task, spawned)
    failed = any(one.status == "failed" and not one.reused for one in spawned)
    return ExitCode.REFUSED if failed else ExitCode.DONE


def _tell_where_to_look(call: Invocation, task: TaskDir, spawned: list[Spawned]) -> None:
    """Tell a person at a terminal, with the first workers of a task, how to see what they do."""
    alive = [one.agent_instance for one in spawned if one.status in (Status.RUNNING, Status.QUEUED)]
    if not alive or not (call.draws and call.is_terminal("stderr")) or len(task.instances()) > len(spawned):
        return
    if len(spawned) > 1:
        call.note(f"hint: {command_line(task, 'watch')} shows what they do")
        return
    logs = command_line(task, "logs", alive[0], "-f")
    call.note(f"hint: {command_line(task, 'watch')} shows what it does; {logs} follows its output")


def _started(spawned: list[Spawned]) -> Iterator[Shown]:
    for one in spawned:
        yield Shown(None, [spawned_line(one)], notes=map(warning, one.warnings))


def spawned_line(one: Spawned) -> str:
    """Return the line that reports the outcome of a request."""
    pid = f" (pid {one.pid})" if one.pid and one.status == "running" else ""
    known = ", reused: it was started before" if one.reused else ""
    message = f": {plain(one.message)}" if one.message else ""
    place = f", worktree {plain(one.worktree['path'])}" if one.worktree else ""
    return f"{one.agent_instance} {one.status}{pid} in {one.task_id}{known}{place}{message}"


def _read_batch(batch: str, queue: bool | None) -> tuple[list[SpawnRequest], bool]:
    """Return the requests of a batch, and whether they wait for slots: as the command line says, else as they say."""
    from agentctl.operations.start.batch import batch_waits, read_batch  # Most spawns start one worker.

    lines, source = _lines_of(batch)
    requests = read_batch(lines, source)
    return requests, batch_waits(requests) if queue is None else queue


def _read_each(each: str, request: SpawnRequest) -> list[SpawnRequest]:
    from agentctl.operations.start.batch import read_each

    lines, source = _lines_of(each)
    return read_each(lines, source, request)


def _lines_of(path: str) -> tuple[Iterable[str], str]:
    """Return the lines of a file, or of stdin, and what it is called; only a newline ends a line, or all end as on DOS.

    A carriage return elsewhere may be part of a file's name: it would make two of it.
    """
    if path == _STDIN:
        if isinstance(sys.stdin, io.TextIOWrapper):
            sys.stdin.reconfigure(newline="\n")
        return _bounded(sys.stdin, "stdin"), "stdin"
    try:
        with (
            storage_errors(path, "read"),
            open(path, encoding="utf-8-sig", errors="surrogateescape", newline="\n") as file,
        ):
            return _bounded(file, path), path
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error


def _bounded(file: TextIO, name: str) -> Iterable[str]:
    """Return the lines of a file up to a size: it may be a pipe, or have no end."""
    text = file.read(_LONGEST_BATCH + 1)
    if len(text) > _LONGEST_BATCH:
        raise UsageError(f"{name} is too large", hint=f"at most {_LONGEST_BATCH} characters are read")
    if text.count("\r\n") == text.count("\n"):
        text = text.replace("\r\n", "\n")
    return io.StringIO(text.removeprefix("\ufeff"))


def _stay(
    call: Invocation, task: TaskDir, spawned: list[Spawned], *, many: bool
) -> Showing[AwaitedWorker | list[AwaitedWorker]]:
    """Wait until the workers have ended; the exit code of a single worker is passed on."""
    from agentctl.interfaces.commands.parts.bell import Bell
    from agentctl.operations.wait.waiting import wait_all

    names, bell = [one.agent_instance for one in spawned], Bell(call, task)
    on_stranded = StrandedNotes(call.note, command_line(task, "resume", "--lost"))
    if not call.json:
        yield from _started(spawned)
    with in_foreground(None) as limit_s:
        asked = AskedHere(call, task.root, QuestionNotes(call.note, task.root))
        ends = wait_all(
            task, names, timeout_s=limit_s, on_asked=bell.before(asked), on_stranded=on_stranded,
            on_refused=RefusedNotes(call.note), on_held=HeldNotes(call.note),
            on_change=ends_shown(call, asked), wakes=asked.wakes,
        )  # fmt: skip
    bell.ring(is_last=True)
    found: dict[str, WaitedEnd] = {end.agent_instance: end for end in ends}
    ends = [found[name] for name in names]
    rows = [_awaited(one, found[one.agent_instance]) for one in spawned]
    yield Shown(rows if many else rows[0], map(_end_line, ends))
    if len(ends) == 1:
        return _passed_on(ends[0])
    return ExitCode.DONE if all(end.status == "completed" for end in ends) else ExitCode.UNSUCCESSFUL


def _awaited(one: Spawned, end: WaitedEnd) -> AwaitedWorker:
    row: AwaitedWorker = {
        **one.to_json(), "status": end.status, "reason": end.reason, "exitCode": end.exit_code, "signal": end.signal,
        "lastLine": end.last_line or "", "uncollected": end.uncollected,
    }  # fmt: skip
    if not end.uncollected:
        del row["uncollected"]
    if not end.last_line:
        del row["lastLine"]
    if end.message:
        row["message"] = end.message
    return row


def _end_line(end: WaitedEnd) -> str:
    how = end_in_words(end.status, end.reason, end.exit_code, end.signal)
    return f"{end.agent_instance} {how}{because(*said_at_end(end.message, end.last_line))}"


def _passed_on(end: WaitedEnd) -> int:
    """Return the worker's own exit code, as a shell would; never 0 for one that did not complete.

    The signal that a time limit sends is the one of Ctrl-C, so that its code would say that this was pressed.
    """
    if end.status == "completed":
        return ExitCode.DONE
    if end.reason == "timed_out":
        return _OUT_OF_TIME
    if end.exit_code:
        return end.exit_code
    number = _signal_number(end.signal)
    return ExitCode.UNSUCCESSFUL if number is None else 128 + number


def _signal_number(name: str | int | None) -> int | None:
    import signal

    if name is None or isinstance(name, int):
        return name
    try:
        return signal.Signals[name].value
    except KeyError:
        digits = "".join(character for character in name if character.isdigit())
        return int(digits) if digits else None


COMMANDS = (
    Command(
        "spawn",
        spawn,
        IN_TASK,
        """
agentctl spawn -- make test
agentctl spawn --name lint --queue --retries 2 -- ruff check .
agentctl spawn --agent explore "Which modules read the configuration?"
agentctl spawn --after lint --shell "make build | tee build.log"
ls *.wav | agentctl spawn --queue --each - -- flac {}
""",
        (
            Parameter(
                "command",
                COMMAND,
                "Work for an agent (- reads stdin), or a command.",
                "[PROMPT | -- CMD ARGS...]",
            ),
            Parameter("prompt", PROMPT, is_hidden=True),
            Parameter("shell", TEXT, "A line for /bin/sh -c, instead of a command.", "LINE", group=WORK),
            Parameter(
                "batch",
                TEXT,
                "Many workers: JSON lines whose keys are the names of these options; - is stdin.",
                "FILE",
                group=WORK,
            ),
            Parameter(
                "each",
                TEXT,
                "A worker for each line, which is put in place of {}; --name n makes n-1, n-2, ...; - is stdin.",
                "FILE",
                group=WORK,
            ),
            QUEUE_UP._replace(group=QUEUE),
            Parameter("wait", FLAG, "Stay until it has ended; exit with its exit code.", group=OUTPUT),
            Parameter("roster", FLAG, is_hidden=True),
            Parameter("resume_queue", FLAG, is_hidden=True),
            *of_start(OPTIONS),
        ),
        exits=(*FINDS, ExitCode.NO_SLOT, ExitCode.UNSUCCESSFUL, ExitCode.CONFLICT),
    ),
    Command(
        "spawn-template",
        spawn_template,
        IN_TASK,
        """
agentctl new --template survey --set path=. && agentctl spawn-template
agentctl spawn-template --wait --json
""",
        (Parameter("wait", FLAG, "Stay until they have ended."), KEY),
        exits=(*FINDS, ExitCode.UNSUCCESSFUL, ExitCode.CONFLICT),
    ),
    Command(
        "resume-queue",
        requeue,
        IN_TASK,
        "agentctl resume-queue\nagentctl resume-queue --task survey-auth --json",
        names_task=True,
    ),
)
