"""Which targets apply to a tree of tasks: a person's config.yaml defines them; it, the root and the task name some.

Nothing that came with a repository or was written by a worker defines a target: a task.yaml of the person's own names
some at most, and what is chosen for a root is kept among the person's own files. The commands of the person resolve all
that, and put the result where shims and senders find it (`arm`).
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Mapping, Sequence

from agentctl.adapters.files import make_folders, read_known, to_json, write_whole
from agentctl.adapters.paths import FilePath
from agentctl.adapters.personal import config_folder, state_folder
from agentctl.adapters.taskdir import Root, TaskDir, TreeDir
from agentctl.adapters.treedir import tree_of
from agentctl.errors import AgentctlError, Argument, NotFound, Refused, UsageError, WithArguments
from agentctl.lean import TYPE_CHECKING, Any
from agentctl.operations.where.calling import caller, is_from_worker
from agentctl.operations.where.lineage import shown_caller
from agentctl.operations.where.ownership import check_own, is_own
from agentctl.operations.where.personal_config import NOTIFY, personal_file, section
from agentctl.operations.where.task_config import usable_config
from agentctl.supervision.worker.environment import store_folder, switch_of

if TYPE_CHECKING:
    from agentctl.adapters.taskyaml.notifying import PersonalNotify
    from agentctl.domain.documents.notices import TargetSwitch
    from agentctl.domain.notice.targets import Applied, Level, Naming

ALWAYS, ROOT, TASK_YAML, TASK = "always", "root", "task.yaml", "task"
_MOST_ROOTS = 1000


# -- what applies ------------------------------------------------------------------------------------------------------


def rearm(task: TaskDir) -> str | None:
    """Put what applies to the tree of a task where its shims find it, as the configuration is now.

    Only the person's own commands do this; nothing fails because of it. Where nothing is configured, it takes two looks
    at the disk.

    Returns:
        Why nobody is told as the person wants it; None where all is well.
    """
    if caller() is not None:
        return None
    try:
        if FilePath(personal_file()).exists():
            _arm(tree_of(task))
            return None
    except (AgentctlError, OSError) as error:
        return f"you are not told what happens: {error}"
    with contextlib.suppress(AgentctlError, OSError):
        os.unlink(switch_of(store_folder(), tree_of(task).nonce()))
    return None


def _arm(tree: TreeDir) -> Sequence[Applied]:
    """Resolve which targets apply, keep the result, and return it.

    Raises:
        UsageError: The configuration is not well-formed.
    """
    from agentctl.adapters.clock import now_iso
    from agentctl.supervision.notify.armed import KEPT_VARIABLES, Armed, write_armed

    personal = section(NOTIFY)
    found = _applied_to(tree, personal)
    now = now_iso()
    armed = Armed(
        targets=tuple(one.target._replace(since=now) for one in found),
        hosts=personal.hosts,
        quiet=personal.quiet,
        environ={name: os.environ[name] for name in KEPT_VARIABLES if name in os.environ},
        state=str(state_folder(os.environ)),
    )
    write_armed(tree, store_folder(), armed)
    return found


def applied_to(task: TaskDir) -> Sequence[Applied]:
    """Return the targets that apply to the tree of a task now; none where it is not the person's own.

    Raises:
        UsageError: The configuration is not well-formed.
    """
    tree = tree_of(task)
    return _arm(tree) if caller() is None else _applied_to(tree, section(NOTIFY))


def _applied_to(tree: TreeDir, personal: PersonalNotify) -> Sequence[Applied]:
    from agentctl.domain.notice.targets import applied

    if not personal.targets or not is_own(tree):
        return ()
    return applied(personal.targets, _levels(tree, personal.always))


def _levels(tree: TreeDir, always: Sequence[Naming]) -> Iterable[Level]:
    from agentctl.domain.notice.targets import parse_namings

    yield ALWAYS, always, frozenset()
    yield ROOT, *_choice(_roots().get(_place(tree.root)))
    yield TASK_YAML, parse_namings(usable_config(tree).notify), frozenset()
    yield TASK, *_choice(read_known(tree.notify))


def _choice(value: object) -> tuple[Sequence[Naming], frozenset[str]]:
    """Return what is named and what is switched off in a file; what is not well-formed says nothing."""
    from agentctl.domain.notice.targets import parse_namings

    if not isinstance(value, Mapping):
        return (), frozenset()
    try:
        on, off = parse_namings(value.get("on", [])), parse_namings(value.get("off", []))
    except ValueError:
        return (), frozenset()
    return on, frozenset(one.name for one in off)


# -- what is named -----------------------------------------------------------------------------------------------------


def check_named(texts: Sequence[str]) -> list[str]:
    """Return the targets that `--notify` names, checked.

    Raises:
        UsageError: One is not defined, or there is no such kind of notice.
        Refused: The caller is a worker: a person chooses where they are told.
    """
    if shown_caller() is not None or is_from_worker():
        raise Refused(
            "a worker may not choose where a person is told", hint=WithArguments("leave ", Argument("notify"), " out")
        )
    return [str(_defined(text)) for text in texts]


def _defined(text: str) -> Naming:
    from agentctl.domain.notice.targets import parse_naming

    try:
        naming = parse_naming(text)
    except ValueError as error:
        raise UsageError(str(error)) from error
    known = section(NOTIFY).targets
    if naming.name not in known:
        names = ", ".join(sorted(known)) or "none"
        hint = f"known: {names}; targets are defined under `notify` in {personal_file()}"
        raise NotFound(f"there is no target {naming.name!r}", hint=hint)
    return naming


def switch_target(where: TaskDir | Root, text: str, *, on: bool) -> TargetSwitch:
    """Let a target be told of a tree of tasks, or of all tasks of a root, or let it not be told.

    Raises:
        NotFound: There is no such target.
        Refused: The caller is a worker, or the task is not the person's own.
    """
    if shown_caller() is not None or is_from_worker():
        raise Refused("a worker may not choose where a person is told", hint="only a person can, in their own terminal")
    naming = _defined(text)
    if isinstance(where, Root):
        roots = _roots()
        roots[_place(where)] = _changed(roots.get(_place(where)), naming, on=on)
        file = _roots_file()
        make_folders(os.path.realpath(file.parent))
        write_whole(file, to_json({"roots": dict(list(roots.items())[-_MOST_ROOTS:])}))
        return {"target": naming.name, "on": on, "root": str(where.path)}
    tree = tree_of(where)
    check_own(tree)
    write_whole(tree.notify, to_json(_changed(read_known(tree.notify), naming, on=on)))
    _arm(tree)
    return {"target": naming.name, "on": on, "taskId": tree.id}


def _changed(value: object, naming: Naming, *, on: bool) -> dict[str, list[str]]:
    named, off = _choice(value)
    kept = [str(one) for one in named if one.name != naming.name]
    silent = [name for name in sorted(off) if name != naming.name]
    return {"on": [*kept, str(naming)], "off": silent} if on else {"on": kept, "off": [*silent, naming.name]}


def _roots() -> dict[str, Any]:
    found = read_known(_roots_file()).get("roots")
    return dict(found) if isinstance(found, dict) else {}


def _roots_file() -> FilePath:
    return config_folder(os.environ) / "notify.json"


def _place(root: Root) -> str:
    return os.path.realpath(root.path)
