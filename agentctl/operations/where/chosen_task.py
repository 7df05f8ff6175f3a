"""Which task is meant where none is named: the one that was chosen in this terminal, else what the folder says.

Who chooses a task chooses it for their seat, which is a terminal or a script without one; the root keeps that in a file
of each seat's own. What was chosen last, wherever that was, is also what the folder says: at seats where none was
chosen. In either case it counts only if the task is this person's own: a repository of somebody else may bring such
files.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection

from agentctl.adapters.files import create_whole, file_text, make_folder, storage_errors, write_whole
from agentctl.adapters.opening import read_bytes
from agentctl.adapters.paths import FilePath
from agentctl.adapters.seats import is_left, is_seat, own_seat
from agentctl.adapters.taskdir import Root
from agentctl.domain.names import is_name
from agentctl.errors import AgentctlError, Argument, AtTerminal, Damaged, Next, NotFound, Refused, WithArguments
from agentctl.lean import NamedTuple
from agentctl.operations.where.calling import BY_SEAT
from agentctl.supervision import failpoints

#: Who says which task is meant: an option, `AGENTCTL_TASK`, this terminal, or the folder.
OPTION, ENVIRONMENT, TERMINAL, FOLDER = "option", "environment", "terminal", "folder"


class TaskChoice(NamedTuple):
    """A task that was chosen."""

    task_id: str
    #: TERMINAL or FOLDER.
    by: str
    file: FilePath


def chosen_task(root: Root) -> str | None:
    """Return the id of the chosen task; None where none is, or it is gone, or it is not this person's own."""
    try:
        choice = _choice(root)
    except Damaged:  # Commands that need a task tell it.
        return None
    return choice.task_id if choice is not None and _is_there(root, choice) and _is_own(root, choice) else None


def check_choice(root: Root) -> TaskChoice | None:
    """Return what is chosen; None where nothing is, or it is not this person's own.

    Raises:
        NotFound: The task that was chosen at this seat is gone: no other one is taken for it.
        Damaged: It is not known which one was chosen there.
    """
    choice = _choice(root)
    if choice is None or (not _is_there(root, choice) and choice.by == FOLDER):
        return None
    if not _is_there(root, choice):
        is_archived = os.path.isdir(root.archived(choice.task_id).task(choice.task_id).path)
        back = AtTerminal(f"agentctl archive --bring-back {choice.task_id} brings it back")
        raise NotFound(
            f"the task that was chosen in this terminal is gone: {choice.task_id} in {root.path}",
            hint=(
                *([back] if is_archived else ()),
                AtTerminal("agentctl use TASK chooses another one (agentctl tasks lists them)"),
                AtTerminal('or agentctl new "TITLE"'),
            ),
        )
    return choice if _is_own(root, choice) else None


def refuse_foreign_choice(root: Root) -> None:
    """Raise `Refused` where a task is chosen that is there, but is not this person's own."""
    choice = _foreign_choice(root)
    if choice is not None:
        raise Refused(
            _foreign(choice),
            hint=(
                _taking_over(root, choice),
                AtTerminal('or agentctl new "TITLE", which chooses a new one'),
            ),
        )


def none_chosen(root: Root) -> NotFound:
    """Return the error of a command that needs a task, where none is chosen that counts."""
    choice, why = _foreign_choice(root), f"no task is chosen in {root.path}"
    if choice is None:
        return NotFound(why, hint=Next("name a task"))
    looks = WithArguments(Argument("task", choice.task_id), " looks at it")
    return NotFound(why, hint=(_foreign(choice), _taking_over(root, choice), looks))


def write_choice(root: Root, task_id: str) -> None:
    """Choose a task for this seat, and for those where none was chosen; the caller holds the lock of the root.

    If this is killed in between, it is chosen at this seat, and nothing has changed at any other.
    """
    seat, text = seat_here(), task_id.encode() + b"\n"
    if seat is None:
        write_whole(root.current, text)
        return
    own = root.chosen / seat
    before = file_text(own)
    _make_place(root)
    write_whole(own, text, durable=False)  # No seat outlives a power cut.
    failpoints.reached("use.after-seat")
    try:
        write_whole(root.current, text)
    except BaseException:
        _put_back(own, before)
        raise
    _remove_left(root, seat)


def choose_none_of(root: Root, tasks: Collection[str]) -> None:
    """Choose none of these tasks any more, at this seat and in the folder; the caller holds the lock of the root.

    Where another seat has chosen one of them, its next command says what became of it.
    """
    seat = seat_here()
    for file in [root.current] if seat is None else [root.current, root.chosen / seat]:
        if file_text(file).strip() in tasks:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(file)


def seat_here() -> str | None:
    """Return the seat of this process, or the one on another host from which this was ordered."""
    ordered = os.environ.get(BY_SEAT, "")
    return ordered if is_seat(ordered) else own_seat()


def _make_place(root: Root) -> None:
    """Make the folder of the choices; git takes none of them, whatever the `.gitignore` of the root says."""
    make_folder(root.chosen)
    if not (root.chosen / ".gitignore").exists():
        create_whole(root.chosen / ".gitignore", b"*\n", durable=False)


def _put_back(own: FilePath, before: str) -> None:
    with contextlib.suppress(AgentctlError, OSError):
        if before:
            write_whole(own, before.encode(), durable=False)
        else:
            os.unlink(own)


def _remove_left(root: Root, seat: str) -> None:
    """Remove the choices of seats that were left, and what killed writers have begun: one that stays does no harm."""
    with contextlib.suppress(AgentctlError, OSError):
        for name in os.listdir(root.chosen):
            if name.endswith(".tmp") or is_left(name, seat):
                os.unlink(root.chosen / name)


def _choice(root: Root) -> TaskChoice | None:
    seat = seat_here()
    if seat is not None and (task_id := _named_in(root.chosen / seat)) is not None:
        return TaskChoice(task_id, TERMINAL, root.chosen / seat)
    task_id = file_text(root.current).strip()
    return TaskChoice(task_id, FOLDER, root.current) if is_name(task_id) else None


def _named_in(own: FilePath) -> str | None:
    """Return the id in the file of this seat; None where there is none.

    Raises:
        Damaged: It names none, so it is not known which one was chosen.
    """
    with storage_errors(own, "read"):
        try:
            text = os.fsdecode(read_bytes(own)).strip()
        except (FileNotFoundError, NotADirectoryError):
            return None
    if not is_name(text):
        raise Damaged(f"{own} names no task", hint=AtTerminal("agentctl use TASK writes it anew"))
    return text


def _is_there(root: Root, choice: TaskChoice) -> bool:
    return root.task(choice.task_id).exists


def _is_own(root: Root, choice: TaskChoice) -> bool:
    from agentctl.operations.where.ownership import may_be_stopped  # 2 ms, and many commands name the task.

    return may_be_stopped(root.task(choice.task_id))


def _foreign_choice(root: Root) -> TaskChoice | None:
    choice = _choice(root)
    return choice if choice is not None and _is_there(root, choice) and not _is_own(root, choice) else None


def _foreign(choice: TaskChoice) -> str:
    return f"{choice.file} names {choice.task_id}, which was not made here by you, or was moved"


def _taking_over(root: Root, choice: TaskChoice) -> Next:
    from agentctl.operations.where.ownership import taking_over  # As above.

    return taking_over(root.task(choice.task_id).path)
