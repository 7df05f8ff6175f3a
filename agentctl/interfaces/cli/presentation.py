"""Prints what a command shows, in one of three forms: JSON for programs, lines for pipes, tables for terminals.

Each thing is flushed before the command goes on: somebody may be waiting for it, and what was printed counts as given.
"""

from __future__ import annotations

import contextlib
import sys
import termios
from collections.abc import Callable, Iterable, Iterator

from agentctl.domain.text.plaintext import plain
from agentctl.interfaces.cli.json_output import print_json, print_json_rows
from agentctl.interfaces.commands.model.command_model import (
    INSTANCES,
    TEXTS,
    Picture,
    Raw,
    Screenful,
    Shown,
    Table,
    take_each,
)
from agentctl.interfaces.commands.model.surface import is_terminal
from agentctl.lean import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agentctl.interfaces.cli.terminal_lines import TerminalLines
    from agentctl.interfaces.commands.model.command_model import Command
    from agentctl.interfaces.commands.model.invocation import Invocation


def carry_out(command: Command, given: dict[str, Any]) -> int:
    """Carry out a command at this command line, and print what it shows; return the exit code.

    Args:
        given: The parameters that were given, those of its place and output too.
    """
    from agentctl.interfaces.commands.model.invocation import Invocation  # `agentctl --help` carries out nothing.

    names = {parameter.name for parameter in command.needs}
    own = {name: value for name, value in given.items() if name not in names}
    place = {name: value for name, value in given.items() if name in names}
    with contextlib.closing(CommandLine(is_json=bool(place.get("json")))) as here:
        call = Invocation(here, **place)
        code = take_each(command.carry_out(call, **_with_workers_meant(call, command, own)), here.take)
        task = call.task_found() if command.names_task and not call.json else None
        if task is not None and here.is_terminal("stderr"):
            here.note(f"in task {plain(task.id)}")
        return code


def _with_workers_meant(call: Invocation, command: Command, given: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters with each worker that is named in them as the one that is meant."""
    for one in command.parameters:
        names = given.get(one.name)
        if one.completes == INSTANCES and one.is_argument and names:
            given = {
                **given,
                one.name: [*map(call.worker_meant, names)] if one.kind == TEXTS else call.worker_meant(names),
            }
    return given


class CommandLine:
    """The standard streams of this process."""

    names_works = True

    def __init__(self, *, is_json: bool) -> None:
        self._is_json = is_json
        self._screenfuls = _Screenfuls()
        self._typed: TerminalLines | None = None

    def is_terminal(self, stream: str) -> bool:
        """Return whether that stream is a terminal."""
        return is_terminal(getattr(sys, stream))

    def note(self, line: str) -> None:
        """Print a line on stderr, after what was printed on stdout before, and above what a person is typing."""
        sys.stdout.flush()
        if self._typed is None:
            print(line, file=sys.stderr, flush=True)
        else:
            self._typed.print_above(line)

    def typed(self, prompt: str) -> str:
        """Ask on stderr; return the line that is typed then: what was typed before is the answer to nothing."""
        sys.stdout.flush()
        with contextlib.suppress(termios.error, OSError, ValueError):  # It is not a terminal, or that of another host.
            termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
        print(f"{prompt} ", end="", file=sys.stderr, flush=True)
        return sys.stdin.readline().removesuffix("\n")

    def typed_lines(self) -> TerminalLines | None:
        """Return what is typed at the terminal; None unless all of the standard streams are terminals."""
        if self._typed is None and all(map(self.is_terminal, ("stdin", "stdout", "stderr"))):
            from agentctl.interfaces.cli.terminal_lines import TerminalLines  # Mostly nobody asks.

            self._typed = TerminalLines()
        return self._typed

    def take(self, item: Shown | Raw | Screenful) -> None:
        """Print what a command has yielded."""
        if isinstance(item, Shown):
            self.show(item)
        elif isinstance(item, Screenful):
            self._screenfuls.show(item)
        else:
            _pass_on(item.data)

    def show(self, shown: Shown) -> None:
        """Print a result, and flush it."""
        if self._is_json:
            if isinstance(shown.value, Iterator):
                print_json_rows(shown.value)
            else:
                print_json(shown.value)
            return
        if shown.table is not None and is_terminal(sys.stdout):
            _draw(shown.table())
        else:
            _print_lines(shown.lines)
        sys.stdout.flush()
        for line in shown.notes:
            self.note(line)

    def close(self) -> None:
        """Leave what was drawn last where it is."""
        self._screenfuls.close()
        if self._typed is not None:
            self._typed.close()


def _print_lines(lines: Iterable[str]) -> None:
    for line in lines:
        print(line)


def _draw(made: Table | Picture | Iterable[str]) -> None:
    if not isinstance(made, Table | Picture):
        _print_lines(made)
        return
    from agentctl.interfaces.commands.parts import tables  # It loads rich.

    if isinstance(made, Table):
        tables.draw(made)
    else:
        tables.draw_looks(made.lines)


def _pass_on(data: bytes | str) -> None:
    if isinstance(data, bytes):
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    else:
        sys.stdout.write(data)
        sys.stdout.flush()


class _Screenfuls:
    """Shows screenfuls: on a terminal over the previous ones, to a pipe the lines that changed."""

    def __init__(self) -> None:
        self._stack = contextlib.ExitStack()
        self._draw: Callable[[list[str]], None] | None = None
        self._before: set[str] = set()

    def show(self, screenful: Screenful) -> None:
        """Show a screenful."""
        if self._draw is None and is_terminal(sys.stdout):
            from agentctl.interfaces.commands.parts.tables import LiveLines

            self._draw = self._stack.enter_context(LiveLines()).show
        if self._draw is not None:
            self._draw(screenful.lines)
            return
        now = {screenful.same(line): line for line in screenful.lines}
        for known, line in now.items():
            if known not in self._before:
                print(line, flush=True)
        self._before = set(now)

    def close(self) -> None:
        """Leave the last frame where it is."""
        self._stack.close()
