"""`archive`: put tasks that are over away, list them, bring them back, or delete them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from agentctl.adapters.taskdir import Root
from agentctl.domain.names import check_name, first_of
from agentctl.domain.placement import seconds_of
from agentctl.domain.text.plaintext import plain
from agentctl.errors import AgentctlError, Argument, AtTerminal, ExitCode, Refused, UsageError, WithArguments
from agentctl.interfaces.commands.model.command_model import (
    ARCHIVED,
    FINDS,
    FLAG,
    TEXT,
    TEXTS,
    Command,
    Parameter,
    Shown,
    Table,
)
from agentctl.interfaces.commands.model.invocation import Invocation
from agentctl.interfaces.commands.model.parameters import IN_ROOT
from agentctl.interfaces.commands.parts.selection import left_out_lines
from agentctl.interfaces.words.outline import fields
from agentctl.interfaces.words.value_words import local_time
from agentctl.lean import TYPE_CHECKING
from agentctl.operations.discard.archiving import (
    Archived,
    archive_planned,
    bring_back,
    delete_archived,
    list_archived,
    plan_archiving,
    tasks_over,
)
from agentctl.operations.fleet.seen import SeenEnds
from agentctl.operations.where.locating import find_task
from agentctl.operations.where.put_away import finish_all

if TYPE_CHECKING:
    from agentctl.domain.documents.tasks import ArchiveDone

#: So many names are shown before somebody is asked.
_MOST_SHOWN = 20
_HEADS = ("name", "put away", "workers", "title")


def archive(
    call: Invocation,
    *,
    tasks: list[str] | None = None,
    older_than: str | None = None,
    shows: bool = False,
    back: bool = False,
    delete: bool = False,
    yes: bool = False,
) -> Shown[ArchiveDone]:
    """Put tasks away that are over, each with all tasks below it.

    No other command sees them any more, and their ids are free. Their reports (as `join` writes them), results and
    patches stay in `archive/` of the root: `search --archived` searches them, --bring-back brings a task back, and
    --delete ends that. A task stays where it is while anything in it is live or queued, and if a worktree of it holds
    work that is nowhere else; a worktree in which nothing is lost is removed.

    To a pipe, one line each: name, task, when it was put away, workers, folder, title.
    """
    chosen = [Argument(name) for name, given in (("list", shows), ("bring_back", back), ("delete", delete)) if given]
    if len(chosen) > 1:
        raise UsageError(
            WithArguments(*chosen[:1], " and ", *chosen[1:2], " exclude each other"),
            hint=AtTerminal("agentctl archive --list"),
        )
    if ((bool(tasks) + (older_than is not None) != 1) and not shows) or (shows and (tasks or older_than)):
        raise UsageError(
            "no task is named",
            hint=AtTerminal("its id, or --older-than 30d; agentctl archive --list shows what is there"),
        )
    if older_than is not None and chosen:
        raise UsageError(WithArguments(Argument("older_than"), " does not go with ", chosen[0]), hint="name the tasks")
    root, named = call.root(), tasks or []
    if shows:
        return _shown(list_archived(root), [])
    if back:
        done = bring_back(root, named)
        return _shown(done, [f"{plain(one.decision.task_id)} is back" for one in done])
    if delete:
        _ask(call, [*map(_named, named)], "Delete for good: ", yes=yes)
        done = delete_archived(root, named)
        _forget(root, done)
        return _shown(done, [f"{plain(one.decision.name)} is deleted" for one in done])
    return _put_away(call, root, named, older_than, yes=yes)


def _named(name: str) -> str:
    return check_name(name, "the task")


def _put_away(
    call: Invocation, root: Root, named: Sequence[str], older_than: str | None, *, yes: bool
) -> Shown[ArchiveDone]:
    if older_than is None:
        finish_all(root)
        tasks = [find_task(name, root=call.root_named, force=call.force) for name in dict.fromkeys(named)]
    else:
        tasks = tasks_over(root, _seconds(older_than))
        if not tasks:
            return _shown([], notes=[f"nothing to put away: no task has been over for {plain(older_than)}"])
        _ask(call, [task.id for task in tasks], "Put away: ", yes=yes)
    found = archive_planned(plan_archiving(tasks, as_far_as_possible=older_than is not None))
    lines = [f"{plain(one.decision.task_id)} is put away as {plain(one.decision.name)}" for one in found.done]
    return _shown(found.done, lines, found.left_out)


def _seconds(text: str) -> int:
    try:
        return seconds_of(text)
    except UsageError:
        raise UsageError(
            WithArguments(Argument("older_than"), f" takes a time such as 12h or 30d, not {text!r}")
        ) from None


def _ask(call: Invocation, names: Sequence[str], question: str, *, yes: bool) -> None:
    if not yes and call.is_terminal("stdin") and not call.is_confirmed(f"{question}{first_of(names, _MOST_SHOWN)}?"):
        raise Refused("nothing was changed", hint=AtTerminal("--yes does not ask"))


def _forget(root: Root, deleted: Sequence[Archived]) -> None:
    """Forget which ends of deleted tasks were looked at, unless another task has the id by now."""
    gone = [name for one in deleted for name in one.decision.tasks if not root.task(name).exists]
    SeenEnds(root).forget([], of_tasks=gone)


def _shown(
    done: Sequence[Archived], lines: Sequence[str] | None = None, left_out: Mapping[str, AgentctlError] = {},
    notes: Sequence[str] = (),
) -> Shown[ArchiveDone]:  # fmt: skip
    rows = [one.to_json() for one in done]
    value: ArchiveDone = {
        "tasks": rows,
        "leftOut": [{"taskId": name, "reason": why.message, "next": why.hint} for name, why in left_out.items()],
    }
    return Shown(
        value,
        lines or map(_line, done),
        None if lines else lambda: _table(done),
        notes=[*notes, *left_out_lines(left_out)],
        code=ExitCode.REFUSED if left_out else ExitCode.DONE,
    )


def _line(one: Archived) -> str:
    row = one.to_json()
    return fields(row["name"], row["taskId"], row["archivedAt"], row["workers"], row["path"], row["title"])


def _table(done: Sequence[Archived]) -> Table | list[str]:
    if not done:
        return ["nothing was put away"]
    return Table(_HEADS, map(_cells, done), wide="title", kept=("name",), gives_way=("workers", "put away", "title"))


def _cells(one: Archived) -> tuple[str, ...]:
    decision = one.decision
    return decision.name, local_time(decision.at), str(decision.workers), plain(decision.title)


COMMANDS = (
    Command(
        "archive",
        archive,
        IN_ROOT,
        """
agentctl archive survey-auth
agentctl archive --older-than 30d
agentctl archive --list
agentctl archive --bring-back survey-auth
""",
        (
            Parameter("tasks", TEXTS, "The tasks.", "[TASK]...", is_argument=True, completes=ARCHIVED),
            Parameter("older_than", TEXT, "All in which the last worker ended so long ago: 30d, 12h.", "TIME"),
            Parameter("shows", FLAG, "List what was put away.", typed="list"),
            Parameter("back", FLAG, "Bring the named ones back, by their names in the list.", typed="bring-back"),
            Parameter("delete", FLAG, "Delete the named ones, which were put away, for good."),
            Parameter("yes", FLAG, "Do not ask.", short="y"),
        ),
        exits=FINDS,
    ),
)
