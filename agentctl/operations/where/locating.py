"""Which root, which task and which worker a command means."""

from __future__ import annotations

import contextlib
import os

from agentctl.adapters.files import make_folders
from agentctl.adapters.mounts import network_mount
from agentctl.adapters.paths import FilePath
from agentctl.adapters.taskdir import ROOT_NAME, Root, TaskDir, WorkerDir
from agentctl.domain.names import check_name, is_name
from agentctl.errors import AgentctlError, Argument, AtTerminal, Next, NotFound, Refused, WithArguments
from agentctl.lean import TYPE_CHECKING, NamedTuple
from agentctl.operations.where.chosen_task import ENVIRONMENT, OPTION, check_choice, none_chosen
from agentctl.operations.where.names_in_log import accepted_in
from agentctl.supervision.worker.environment import ROOT_VARIABLE, TASK_VARIABLE

if TYPE_CHECKING:
    from agentctl.errors import Hint, Step

#: Of tasks that have a worker of a name that is not in the one that was meant.
_MOST_NAMED = 3


class RootAbove(NotFound):
    """The nearest root lies above the repository in which somebody works, and so is that of something else."""


def find_root(
    explicit: str | None, *, create: bool = False, absent: bool = False, apart: bool = False, force: bool = False
) -> Root:
    """Return the root: `explicit`, else AGENTCTL_ROOT, else `.agentctl` of the nearest folder above that has one.

    Args:
        create: Make it (in the working folder, where nothing names another place) if there is none.
        absent: Where there is none, and `explicit` names none, return the one that a start would make here.
        apart: A root above the repository does not count: it is as if there were none.
        force: Use a root that belongs to somebody else or lies on a network file system all the same.

    Raises:
        RootAbove: The nearest one lies above the repository of the working folder, and nothing names it.
    """
    path, is_named = _place_of(explicit, apart=apart)
    if not path.is_dir():
        if absent and not explicit:
            return Root(path)
        if not create:
            raise NotFound(
                f"there is no {path}",
                hint=(Next("new", does="starts a task here"), WithArguments("or choose another ", Argument("root"))),
            )
        make_folders(path / "tasks")
    elif not is_named:
        _refuse_link(path)
    root = Root(path)
    if not force:
        _refuse_others(path)
        _refuse_network(path)
    return root


def make_root(root: Root, *, force: bool) -> None:
    """Make a root that was not there when it was found; one that somebody has put there since has to be in order.

    Raises:
        Refused: It is a link; or, without `force`, it belongs to somebody else or lies on a network file system.
    """
    _refuse_link(root.path)
    make_folders(root.tasks)
    if not force:
        _refuse_others(root.path)
        _refuse_network(root.path)


def find_root_to_test(explicit: str | None) -> Root:
    """Return the root that is to be tested; it may lie on a network file system, or not be there yet.

    Raises:
        Refused: It belongs to somebody else, or is a link that was not named.
    """
    path, is_named = _place_of(explicit)
    if path.is_dir():
        if not is_named:
            _refuse_link(path)
        _refuse_others(path)
    return Root(path)


def root_above(explicit: str | None) -> RootAbove | None:
    """Return why the nearest root is not used; None if it is used, or one is named, or there is none."""
    named = explicit or os.environ.get(ROOT_VARIABLE)
    found = None if named else _nearest()
    return None if found is None else _outside(found)


def _place_of(explicit: str | None, *, apart: bool = False) -> tuple[FilePath, bool]:
    """Return where the root is or would be made, and whether somebody has named that place."""
    named = explicit or os.environ.get(ROOT_VARIABLE)
    if named:
        return FilePath(_absolute(named)), True
    found = _nearest()
    outside = None if found is None else _outside(found)
    if outside is not None and not apart:
        raise outside
    return (working_folder() / ROOT_NAME if found is None or outside is not None else found), False


def _outside(found: FilePath) -> RootAbove | None:
    """Return why a root above the working folder is not used; None if it is the one of the project there."""
    here = working_folder()
    if found.parent == here:  # Mostly.
        return None
    from agentctl.operations.where.project_top import top_below

    top = top_below(found, here)
    if top is None:
        return None
    import shlex

    return RootAbove(
        f"{found} lies above the repository {top}, so it is used only if you name it",
        hint=(
            Next("new", does="starts a task here"),
            WithArguments(Argument("root", shlex.quote(found)), " names that one"),
        ),
    )


def _absolute(named: str) -> str:
    return os.path.normpath(named if os.path.isabs(named) else working_folder() / named)


def working_folder() -> FilePath:
    """Return the working folder; it may have been removed meanwhile."""
    try:
        return FilePath(os.getcwd())
    except FileNotFoundError:
        raise NotFound(
            "the working folder was removed", hint=WithArguments("cd to one that exists, or give ", Argument("root"))
        ) from None


def _nearest() -> FilePath | None:
    folder = working_folder()
    while not (folder / ROOT_NAME).is_dir():
        if folder.parent == folder:
            return None
        folder = folder.parent
    return folder / ROOT_NAME


def _refuse_link(path: FilePath) -> None:
    if os.path.islink(path):
        import shlex  # Only for a refusal.

        raise Refused(
            f"{path} is a link: it is used only if you name it", hint=WithArguments(Argument("root", shlex.quote(path)))
        )


def _refuse_others(path: FilePath) -> None:
    owner = os.stat(path).st_uid
    if owner != os.geteuid():
        raise Refused(
            f"{path} belongs to somebody else (uid {owner})",
            hint=WithArguments(Argument("force"), " uses it all the same"),
        )


def _refuse_network(path: FilePath) -> None:
    """Refuse a root on a network file system, unless a self-test has accepted it."""
    mount = network_mount(path)
    if mount is not None:
        from agentctl.operations.where.shared_roots import check_accepted  # Few roots lie on one.

        check_accepted(path, mount)


class MeantTask(NamedTuple):
    """The task that a command is about."""

    task: TaskDir
    #: Who says so: OPTION, ENVIRONMENT, TERMINAL or FOLDER of `chosen_task`.
    by: str


def find_task(explicit: str | None, *, root: str | None = None, force: bool = False) -> TaskDir:
    """Return the task: `explicit`, else AGENTCTL_TASK, else the chosen one. It may be somebody else's.

    Raises:
        NotFound: There is no such task, or none is named and none is chosen.
    """
    return find_meant_task(explicit, root=root, force=force).task


def find_meant_task(explicit: str | None, *, root: str | None = None, force: bool = False) -> MeantTask:
    """Return the same, and who says that this one is meant."""
    found = find_root(root, force=force)
    name, by = explicit or os.environ.get(TASK_VARIABLE), OPTION if explicit else ENVIRONMENT
    if not name:
        choice = check_choice(found)
        if choice is None:
            raise none_chosen(found)
        name, by = choice.task_id, choice.by
    task = found.task(check_name(name, "the task"))
    if not task.exists:
        raise NotFound(f"no task {name!r} in {found.path}", hint=_other_tasks(found, name))
    if task.removal.exists():
        from agentctl.operations.where.removal_order import finish_removal  # Hardly ever: a command was killed.

        with contextlib.suppress(AgentctlError, OSError):  # Who only looks goes on; who starts something says why.
            finish_removal(task)
    return MeantTask(task, by)


def _other_tasks(root: Root, name: str) -> tuple[Step, ...]:
    """Return which tasks there are, for whoever names one that is not."""
    known = f"known: {', '.join(root.task_ids()[:10]) or 'none'}"
    if os.path.isdir(root.archived(name).task(name).path):
        return AtTerminal(f"it was put away: agentctl archive --bring-back {name}"), known
    return (known,)


def find_worker(task: TaskDir, instance: str) -> WorkerDir:
    """Return the folder of a worker that exists.

    Raises:
        UsageError: It is not a name.
        NotFound: There is no such worker; the hint names some that exist.
    """
    worker = task.worker(check_name(instance, "the instance"))
    if os.path.islink(worker.path):
        raise Refused(f"{worker.path} is a link, not a worker's folder", hint=AtTerminal("agentctl doctor looks at it"))
    if not worker.path.is_dir() and not is_in_log(worker):
        if task.observed.exists():
            _refuse_observed(task, instance)
        raise NotFound(f"no worker {instance!r} in task {task.id}", hint=_hint(task, instance))
    return worker


def _hint(task: TaskDir, instance: str) -> Hint:
    """Return which other tasks of this person have a worker of that name, and which workers this one has."""
    from agentctl.operations.where.ownership import is_own  # Only for a refusal.

    others = (task.sibling(name) for name in task.root.task_ids() if is_name(name) and name != task.id)
    found = [one.id for one in others if os.path.isdir(f"{one.path}/agents/{instance}") and is_own(one)]
    known = f"known: {', '.join(task.instances()[:10]) or 'none'}"
    named, more = found[:_MOST_NAMED], len(found[_MOST_NAMED:])
    rest = [f"{more} more {'has' if more == 1 else 'have'} one of that name"] if more else []
    return (*(Next("in another task", instance, task=one) for one in named), *rest, known)


def _refuse_observed(task: TaskDir, instance: str) -> None:
    """Refuse a sub-agent of a program that somebody runs by hand: agentctl cannot wait for it or stop it."""
    from agentctl.operations.where.observed import observed_row  # Few tasks have any.

    if observed_row(task, instance) is not None:
        raise Refused(
            f"{instance} is a sub-agent of a program that is run by hand: it is observed, not a worker",
            hint=(
                Next("show", instance, "prints what is known of it"),
                "only its own program can stop it or wait for it",
            ),
        )


def is_in_log(worker: WorkerDir) -> bool:
    """Return whether the log knows a worker: somebody may have removed its folder while it runs."""
    return worker.instance in accepted_in(worker.task.events)
