"""What every command is given: the task or root it is about, and the form in which it prints.

Nothing here loads typer or rich: plain command lines of `spawn` and `list` do without them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator

from agentctl.adapters.taskdir import Root, TaskDir
from agentctl.cli.captured import taker
from agentctl.cli.render import is_terminal, note, out_json, out_json_rows, plain
from agentctl.errors import NotFound
from agentctl.lean import Any
from agentctl.operations.where.locating import RootAbove, find_root, find_task

#: The options of place and output, each with the annotation that it would have.
KINDS = {"task": "str | None", "root": "str | None", "force": "bool", "json": "bool"}


class Invocation:
    """One call of a command."""

    def __init__(
        self, *, task: str | None = None, root: str | None = None, force: bool = False, json: bool = False
    ) -> None:
        self.task_named, self.root_named, self.force, self.json = task, root, force, json

    @classmethod
    def taken_from(cls, given: dict[str, Any], names: Iterable[str] = KINDS) -> Invocation:
        """Return the invocation that some parameters of a command describe, and remove these from `given`."""
        return cls(**{name: given.pop(name) for name in names if name in given})

    def root(self, *, create: bool = False, apart: bool = False) -> Root:
        """Return the root.

        Args:
            create: Make it if there is none.
            apart: Do not take one that lies above the repository, unless it is named.
        """
        return find_root(self.root_named, create=create, apart=apart, force=self.force)

    def root_if_any(self) -> Root | None:
        """Return the root; None if none was named and there is none, or only one above the repository."""
        try:
            return self.root()
        except RootAbove as error:
            note(f"{error.message}: --root names it")
            return None
        except NotFound:
            if self.root_named is not None:
                raise
            return None

    def task(self) -> TaskDir:
        """Return the task."""
        return find_task(self.task_named, root=self.root_named, force=self.force)

    def task_if_any(self) -> TaskDir | None:
        """Return the task; None if none was named and none is chosen."""
        try:
            return self.task()
        except NotFound:
            if self.task_named is not None:
                raise
            return None

    def named_task(self) -> TaskDir | None:
        """Return the task if --task names one."""
        return None if self.task_named is None else self.task()

    def task_to_show(self) -> TaskDir:
        """Return the task; note on stderr if it is not this person's own."""
        from agentctl.operations.where.ownership import is_own  # The waits load this module too, and do not need it.

        task = self.task()
        if not is_own(task):
            note(f"{plain(task.id)} was not made here by you: it is shown as its files describe it")
        return task

    def place_words(self) -> list[str]:
        """Return the options of the command line that name its root; its task, if any, is that of each line's own."""
        return [] if self.root_named is None else ["--root", self.root_named]

    def show(
        self,
        value: Any,
        lines: Iterable[str],
        table: Callable[[], object] | None = None,
        notes: Iterable[str] = (),
    ) -> None:
        """Print a result in one of the three forms of output, and flush it: somebody may be waiting for it.

        Args:
            value: The JSON document; an iterator becomes a list without ever being in memory as a whole.
            lines: For pipes; and for terminals, unless there is a `table`.
            table: Prints the result on a terminal.
            notes: For stderr; left out with --json, whose document says the same.
        """
        if (take := taker()) is not None:
            take(list(value) if isinstance(value, Iterator) else value)
            return
        if self.json:
            (out_json_rows if isinstance(value, Iterator) else out_json)(value)
        elif table is not None and is_terminal(sys.stdout):
            table()
        else:
            for line in lines:
                print(line)
        sys.stdout.flush()
        for line in () if self.json else notes:
            note(line)
