"""What every command is given: the task or root it is about, the form in which it shows, and where notes go.

Nothing here loads typer or rich: plain command lines do without them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from agentctl.adapters.taskdir import Root, TaskDir
from agentctl.domain.text.plaintext import plain
from agentctl.errors import AtTerminal, ExitCode, NotFound, Refused, at_terminal
from agentctl.interfaces.words.outline import warning
from agentctl.lean import TYPE_CHECKING
from agentctl.operations.where.chosen_task import FOLDER, OPTION
from agentctl.operations.where.locating import MeantTask, RootAbove, find_meant_task, find_root

if TYPE_CHECKING:
    from agentctl.errors import AgentctlError, Step, StorageError
    from agentctl.interfaces.commands.model.command_model import Shown
    from agentctl.interfaces.commands.model.surface import Surface, TypedLines


class Invocation:
    """One call of a command.

    Args:
        surface: Where it is carried out.
    """

    def __init__(
        self,
        surface: Surface,
        *,
        task: str | None = None,
        root: str | None = None,
        force: bool = False,
        json: bool = False,
    ) -> None:
        self.task_named, self.root_named, self.force, self.json = task, root, force, json
        self._surface = surface
        self._meant: MeantTask | None = None

    # -- what it is about

    def root(self, *, create: bool = False, absent: bool = False, apart: bool = False) -> Root:
        """Return the root.

        Args:
            create: Make it if there is none.
            absent: If there is none, and --root names none, return the one that a start would make here.
            apart: Do not take one that lies above the repository, unless it is named.
        """
        return find_root(self.root_named, create=create, absent=absent, apart=apart, force=self.force)

    def root_if_any(self) -> Root | None:
        """Return the root; None if none was named and there is none, or only one above the repository."""
        try:
            return self.root()
        except RootAbove as error:
            self.note(f"{error.message} with --root")
            return None
        except NotFound:
            if self.root_named is not None:
                raise
            return None

    def task(self) -> TaskDir:
        """Return the task: the same one throughout the call, whatever is chosen meanwhile."""
        return self.meant_task().task

    def meant_task(self) -> MeantTask:
        """Return the task, and who says that it is this one."""
        if self._meant is None:
            self._meant = self._find_task()
            self._meant.task.is_meant = self._meant.by != OPTION
        return self._meant

    def task_found(self) -> TaskDir | None:
        """Return the task that the command was about; None if it has not looked for any."""
        return None if self._meant is None else self._meant.task

    def _find_task(self) -> MeantTask:
        found = find_meant_task(self.task_named, root=self.root_named, force=self.force)
        if not found.task.put_away.exists():
            return found
        from agentctl.operations.where.put_away import finish_put_away  # Hardly ever: a command was killed.

        finish_put_away(found.task)
        if found.task.exists:
            return found
        return find_meant_task(self.task_named, root=self.root_named, force=self.force)

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
            self.note(f"{plain(task.id)} was not made here by you: it is shown as its files describe it")
        return task

    def place_words(self) -> list[str]:
        """Return the options of the command line that name its root; its task, if any, is that of each line's own."""
        return [] if self.root_named is None else ["--root", self.root_named]

    def worker_meant(self, name: str) -> str:
        """Return the worker that a name means: at a command line that of a work means its newest try."""
        if not self._surface.names_works:
            return name
        from agentctl.operations.where.tries_in_log import worker_meant  # Many commands name no worker.

        return worker_meant(self.task(), name)

    # -- how it shows

    @property
    def draws(self) -> bool:
        """Whether a person sees at a terminal what it shows."""
        return not self.json and self.is_terminal("stdout")

    def is_terminal(self, stream: str) -> bool:
        """Return whether `stdin`, `stdout` or `stderr` is a terminal at which somebody has typed this command."""
        return self._surface.is_terminal(stream)

    def show(self, shown: Shown) -> None:
        """Show a result at once, where other code calls the command back; elsewhere a command returns or yields it."""
        self._surface.show(shown)

    def note(self, line: str) -> None:
        """Tell a person something at once, beside what is shown."""
        self._surface.note(line)

    def is_confirmed(self, question: str) -> bool:
        """Ask a person at the terminal, and return whether the answer is yes."""
        return self.typed(f"{question} [y/N]").strip().lower() in {"y", "yes"}

    def typed(self, prompt: str) -> str:
        """Ask a person at the terminal, and return the line that they type; empty where nobody does."""
        return self._surface.typed(prompt)

    def confirm_for_all(self, question: str) -> None:
        """Ask, before all workers of a task are stopped that is only what the folder says; where nobody can, say so.

        A task that was named, or that this terminal has chosen, is the one that is meant.

        Args:
            question: Names the task.

        Raises:
            Refused: They do not say yes.
        """
        task, by = self.meant_task()
        if by != FOLDER:
            return
        self.note(
            f"no task was chosen in this terminal; {plain(task.id)} is the one last chosen in {plain(task.root.path)}"
        )
        if self.json or not (self.is_terminal("stdin") and self.is_terminal("stderr")):
            return
        if not self.is_confirmed(question):
            raise Refused("nothing was changed", hint=AtTerminal(f"--task {task.id} names it, and --yes asks nothing"))

    def typed_lines(self) -> TypedLines | None:
        """Return what a person types at the terminal while this goes on; None where nobody does, and with --json."""
        return None if self.json else self._surface.typed_lines()

    def note_all(self, lines: Iterable[str]) -> None:
        """Tell a person each of these."""
        for line in lines:
            self.note(line)

    def warn(self, lines: Iterable[Step]) -> None:
        """Warn a person at a terminal."""
        for line in filter(None, map(at_terminal, lines)):
            self.note(warning(line))

    def note_error(self, error: AgentctlError, more: str = "") -> None:
        """Tell of an error that does not end the command, and its hint.

        Args:
            more: Goes behind its message.
        """
        self.note(f"error: {plain(error.message)}{more}")
        if error.hint:
            self.note(f"hint: {plain(error.hint)}")

    def report_unreadable(self, problems: Sequence[StorageError]) -> ExitCode:
        """Report, after all that could be read was shown, what could not be; return the exit code."""
        if not problems:
            return ExitCode.DONE
        self.note_error(problems[0], f" (and {len(problems) - 1} more)" if len(problems) > 1 else "")
        return ExitCode.REFUSED
