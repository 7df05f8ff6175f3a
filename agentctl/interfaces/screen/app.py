"""The screen as a whole: which parts it has, which key does what, and what happens as things change.

It is a face over operations and files, and has no state of its own but which ends were looked at. Killing it changes
nothing. What only a key shows is imported with that key: the list is there so much earlier.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from contextvars import copy_context
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from rich.text import Text
from textual import events
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.widgets import Input, Static

from agentctl.adapters.clock import monotonic
from agentctl.adapters.taskdir import Root
from agentctl.domain.names import WorkerId
from agentctl.domain.text.plaintext import plain
from agentctl.domain.worker.need import Need
from agentctl.errors import AgentctlError, Next
from agentctl.interfaces.screen.acting import commands
from agentctl.interfaces.screen.acting.peek import Peek
from agentctl.interfaces.screen.acting.prompts import WritingLine, YesOrNo
from agentctl.interfaces.screen.acting.worker_keys import WORKER_BINDINGS, SaidLine, WorkerKeys, WorkerKeysScreen
from agentctl.interfaces.screen.fleet.drawing import counted_words
from agentctl.interfaces.screen.fleet.filtering import filter_of, scope_of
from agentctl.interfaces.screen.fleet.fleet_list import FleetList
from agentctl.interfaces.screen.fleet.lines import Arrangement, Mode, counts, rows_looked_at
from agentctl.interfaces.screen.help import Help
from agentctl.interfaces.screen.keys_footer import KeysFooter
from agentctl.interfaces.screen.own_terminal import OwnTerminal
from agentctl.interfaces.screen.screen_bell import LOOKS_S, Gaze, ScreenBell
from agentctl.interfaces.screen.start.dispatch_line import DispatchLine
from agentctl.operations.fleet.glance import FleetTask, FleetWorker, Glance
from agentctl.operations.fleet.reader import Reader
from agentctl.operations.fleet.seen import SeenEnds
from agentctl.operations.show.further_runs import FurtherRuns
from agentctl.operations.where.locating import make_root

if TYPE_CHECKING:
    from agentctl.interfaces.screen.worker.tab_row import Tab

#: Saves the terminal's title, sets one, and puts the saved one back (xterm's control sequences).
_SAVE_TITLE, _SET_TITLE, _PUT_TITLE_BACK = "\x1b[22;0t", "\x1b]0;{}\x07", "\x1b[23;0t"


#: A terminal with fewer rows has no room for the peek beside the list.
_LOWEST_WITH_PEEK = 12


class ListScreen(Screen[None]):
    """The screen with the list: below the others, where nobody sees what its peek shows meanwhile."""

    #: The app gives the focus to the list: by itself it could go to a hidden line.
    AUTO_FOCUS: ClassVar[str | None] = ""

    def on_screen_resume(self) -> None:
        """Take what comes up again for new."""
        for peek in self.query(Peek):
            peek.begin()


class WatchApp(WorkerKeys, App[int]):
    """`agentctl watch`.

    Args:
        root: Whose tasks are shown.
        task: Only this one and those below it are looked at; None is all.
        force: Make the root, where there is none, even on a network file system.
    """

    CSS = """
    Screen { background: $background; }
    #head { height: 1; padding: 0 1; }
    Footer { background: $background; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        # The first ones are there on the narrowest screen too.
        Binding("question_mark", "help", "Keys"),
        Binding("q", "quit", "Quit"),
        Binding("ctrl+c", "interrupt", "Quit", show=False),
        Binding("enter,o", "open", "Open"),
        Binding("space", "peek", "Peek"),
        *WORKER_BINDINGS,
        Binding("y", "why", "Why"),
        Binding("n", "dispatch", "New"),
        Binding("exclamation_mark", "dispatch('! ')", "New command", show=False),
        Binding("S", "search", "Search", show=False),
        Binding("v", "mark_seen", "Seen", show=False),
        Binding("m", "mark", "Mark", show=False),
        Binding("M", "mark_all", "Mark all that are shown", show=False),
        Binding("L", "logs", "Logs", show=False),
        Binding("t", "tree", "Tree"),
        Binding("slash", "filter", "Filter"),
        Binding("escape", "leave", "Back", show=False),
        *(Binding(str(number), f"answer({number})", f"Answer {number}", show=False) for number in range(1, 10)),
    ]
    ENABLE_COMMAND_PALETTE = False

    def __init__(self, root: Root, *, task: str | None = None, force: bool = False) -> None:
        # The colors from the start: NO_COLOR would leave shades of grey otherwise.
        super().__init__(OwnTerminal, ansi_color=True)
        self.root = root
        self.animation_level = "none"
        self.theme = "ansi-light" if _is_light(os.environ) else "ansi-dark"
        self.arrangement = Arrangement()
        self._filter = ""
        self.arrangement.has = scope_of(task) if task else None
        self._peeks = True
        self.answered: set[tuple[WorkerId, str]] = set()
        self.further: dict[tuple[WorkerId, str], FurtherRuns] = {}
        self.once = commands.OnceOnly()
        self._title = ""
        self._head_shown = Text()
        self._seen = SeenEnds(root)
        self._loop: asyncio.AbstractEventLoop | None = None
        #: Of the app: a timer that is set without it cannot be stopped.
        self._own_context = copy_context()
        self._trouble = ""
        self.fleet_list = FleetList(self.arrangement)
        self.peek = Peek()
        self.writing = WritingLine()
        self.yes_or_no = YesOrNo()
        #: Nothing was started here yet: the first start makes the root.
        self._is_new = not root.path.is_dir()
        prepare = partial(make_root, root, force=force) if self._is_new else lambda: None
        self.dispatch_line = DispatchLine(root, lambda: self.fleet_list.task_id, prepare)
        self._head = Static("", id="head")
        self.said = SaidLine("", id="said")
        self._gaze, self._last_key = Gaze(), monotonic()
        self._deaf_until, self._deaf_because = 0.0, ""
        bell = ScreenBell(self._ring_from_thread)
        self.reader = Reader(root, self._take_from_thread, self._fail_from_thread, bell.look, again_s=_AGAIN_S)

    def get_default_screen(self) -> ListScreen:
        """Return the screen with the list."""
        return ListScreen(id="_default")

    def compose(self) -> ComposeResult:
        yield self._head
        yield self.fleet_list
        yield self.peek
        yield self.writing
        yield self.dispatch_line
        yield self.yes_or_no
        yield self.said
        yield KeysFooter()

    def on_mount(self) -> None:
        """Begin to read."""
        self._loop, self._own_context = asyncio.get_running_loop(), copy_context()
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGHUP):
                self._loop.add_signal_handler(number, self._end_by, number)
        self._write_raw(_SAVE_TITLE)
        if self._is_new:
            self.dispatch_line.open()
        else:
            self.dispatch_line.display = False
            self.fleet_list.focus()
        self.draw_peek()
        self.reader.start()
        self.set_interval(1.0, self._tick)

    async def on_unmount(self) -> None:
        """Stop reading; meanwhile the loop goes on, since the reader may be waiting for it in order to ring."""
        self._write_raw(_PUT_TITLE_BACK)
        await asyncio.to_thread(self.reader.close)
        self._gaze.close()

    def _end_by(self, number: int) -> None:
        """Leave the terminal as it was, and end as this signal would have ended it.

        A terminal that has hung up takes no farewell, and the driver would wait for it for ever: SIGALRM ends that.
        """
        signal.setitimer(signal.ITIMER_REAL, _LEAVES_S)
        self.exit(128 + number)

    @property
    def is_shown(self) -> bool:
        """Return whether there is a screen to draw on: messages still come while it is being left."""
        return self.fleet_list.is_attached and bool(self.screen_stack)

    # -- what the reader has seen --------------------------------------------------------------------------------------

    def _take_from_thread(self, glance: Glance) -> None:
        self._call_from_reader(self.take, glance)

    def _fail_from_thread(self, error: BaseException) -> None:
        self._call_from_reader(self._show_trouble, commands.error_line(error))

    def _call_from_reader(self, function: Callable[..., object], *arguments: object) -> None:
        if self._loop is not None:
            self._loop.call_soon_threadsafe(function, *arguments, context=self._own_context)

    def _ring_from_thread(self, text: str) -> None:
        self.call_from_thread(self._write_raw, text)

    async def on_event(self, event: events.Event) -> None:
        """Note when a person was last there."""
        if isinstance(event, events.Key | events.MouseEvent):
            self._last_key = event.time
        if isinstance(event, events.Key) and self._is_in_vain(event):
            return
        await super().on_event(event)

    def _is_in_vain(self, event: events.Key) -> bool:
        """Return whether a key does nothing, and say why; so do those that are typed at once behind one."""
        screen = self.screen
        if not isinstance(screen, ListScreen | WorkerKeysScreen) or isinstance(self.focused, Input | YesOrNo):
            return False
        if isinstance(screen, WorkerKeysScreen) and not screen.is_drawn:
            return False
        if not event.is_printable:
            self._deaf_until = 0.0
            return False
        keys: WorkerKeys = screen if isinstance(screen, WorkerKeysScreen) else self
        if event.time < self._deaf_until:
            keys.ignored(self._deaf_because)
            return True
        found = screen.active_bindings.get(event.key)
        if found is not None and found.enabled:
            return False
        action = _WORKER_ACTIONS.get(event.key)
        shown = event.character or event.key
        keys.did_nothing(keys.why_nothing(action) if action else f"{shown} does nothing here: ? shows the keys")
        return True

    def _note_gaze(self) -> None:
        """Say at which worker the person looks, if they do: of that they need not be told."""
        above, worker = self.screen, self.fleet_list.worker
        if isinstance(above, WorkerKeysScreen):
            worker = above.acted_on()
        elif above is not self.screen_stack[0] or not self.peek.display:
            worker = None
        is_there = self.app_focus and monotonic() - self._last_key < LOOKS_S
        self._gaze.rest_on((worker.task, worker.row["agentInstance"]) if worker is not None and is_there else None)

    def take(self, glance: Glance) -> None:
        """Show a new glance."""
        if not self.is_shown:
            return
        was = self.peek.question_key
        self._trouble = ""
        self.fleet_list.show(glance)
        above = [screen for screen in self.screen_stack if isinstance(screen, WorkerKeysScreen)]
        for screen in above:
            screen.take(glance)
        if not above:
            self.tell_of_others(was, glance)
        self._show_head()
        self.reader.want(self.fleet_list.wanted())

    def _show_trouble(self, error: str) -> None:
        """Say that what is shown is of before, until it is of now again."""
        if self.is_shown:
            self._trouble = error
            self._show_head()

    def _show_head(self) -> None:
        glance = self.fleet_list.glance
        workers = rows_looked_at(glance, self.arrangement).values()
        head = Text(no_wrap=True, overflow="ellipsis")
        head.append("agentctl  ", "bold")
        for text, style in counted_words(workers):
            head.append(text, style)
        if self._trouble:
            head.append(f"  out of date: {self._trouble}", "bold red")
        elif glance.is_partial:
            head.append("  reading…", "dim")
        if self._filter:
            head.append(f"  / {plain(self._filter)}", "cyan")
        if self.fleet_list.marked:
            hidden = len(self.fleet_list.marked) - len(self.fleet_list.marked_workers())
            head.append(f"  {len(self.fleet_list.marked)} marked" + (f", {hidden} hidden" if hidden else ""), "cyan")
        head.append(f"  {plain(self.root.path.parent)}", "dim")
        if head != self._head_shown:
            self._head_shown = head
            self._head.update(head)
        waiting = counts(workers)[Need.NEEDS_YOU]
        self._set_title(f"({waiting}) agentctl" if waiting else "agentctl")

    def _set_title(self, title: str) -> None:
        if title != self._title:
            self._title = title
            self._write_raw(_SET_TITLE.format(title))

    def _write_raw(self, text: str) -> None:
        if self._driver is not None:
            self._driver.write(text)

    def _tick(self) -> None:
        """Draw the times anew, if any of them runs."""
        if not self.is_shown:
            return
        self._note_gaze()
        if any(worker.need in _TICKING for worker in self.fleet_list.glance.workers.values()):
            self.fleet_list.tick()
            self.draw_peek()

    def on_resize(self) -> None:
        """Give the peek its part of the rows that there are now."""
        if self.is_shown:
            self.draw_peek()

    def on_fleet_list_moved(self) -> None:
        """Show what is under the cursor now."""
        if not self.is_shown:
            return
        self.draw_peek()
        self.reader.want(self.fleet_list.wanted())

    def on_fleet_list_scrolled(self) -> None:
        """Read what the lines that are visible now are about."""
        if self.is_shown:
            self.reader.want(self.fleet_list.wanted())

    def show_question(self) -> None:
        """Show the peek, in which the question stands."""
        self._peeks = True
        self.draw_peek()

    def draw_peek(self) -> None:
        """Show what is under the cursor."""
        worker = self.fleet_list.worker
        is_shown = self._peeks and worker is not None and self.size.height >= _LOWEST_WITH_PEEK
        self.peek.display = is_shown
        if is_shown and worker is not None:
            self.peek.styles.max_height = max(
                int(self.size.height * _PEEK_PART), self.size.height - _BESIDE_PEEK - len(self.fleet_list.lines)
            )
            line = self.fleet_list.line
            self.peek.show(self.fleet_list.glance, worker, line.node if line is not None else None)
        else:
            self.peek.show_nothing()
        self._note_gaze()
        self.renew_keys()

    # -- the worker under the cursor ---------------------------------------------------------------------------------

    def acted_on(self) -> FleetWorker | None:
        """Return the worker under the cursor."""
        return self.fleet_list.worker

    def chosen(self) -> list[FleetWorker]:
        """Return the marked workers that the filter shows, or the one under the cursor if there is no mark."""
        return self.fleet_list.marked_workers() if self.fleet_list.marked else super().chosen()

    def why_nothing(self, action: str) -> str:
        """Return why a key does nothing now."""
        if self.fleet_list.marked and not self.chosen():
            return "the filter hides all marked workers: Esc takes the marks away"
        return super().why_nothing(action)

    def unmark(self) -> None:
        """Take all marks away."""
        self.fleet_list.unmark()
        self._show_head()

    def ignore_keys(self, why: str) -> None:
        """Act on nothing that is typed within a second."""
        self._deaf_until, self._deaf_because = self._last_key + _DEAF_S, why

    def task_acted_on(self) -> FleetTask | None:
        """Return the task on the line under the cursor, if it is this person's own."""
        line = self.fleet_list.line
        task = self.fleet_list.glance.tasks.get(line.key) if line is not None and type(line.key) is str else None
        return task if task is not None and task.is_own else None

    def last_glance(self) -> Glance:
        """Return what was seen last."""
        return self.fleet_list.glance

    def was_answered(self, worker: FleetWorker) -> None:
        """Go to the next worker that needs a person."""
        if len(worker.questions) == 1:
            self._go_to_need(besides=worker.id)

    def take_focus(self) -> None:
        """Go back to the list."""
        self.fleet_list.focus()

    @property
    def pressed_at(self) -> float:
        """Return when the last key was pressed (monotonic)."""
        return self._last_key

    # -- which keys there are now --------------------------------------------------------------------------------------

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002
        """Return whether a key does anything for the line under the cursor; the footer shows only those."""
        is_writing = isinstance(self.focused, Input) and action != "interrupt"
        if is_writing or (len(self.screen_stack) > 1 and action in _OF_LIST):  # Another screen is above the list.
            return False
        return self.does_something(action)

    def action_next_need(self) -> None:
        """Go to the next worker that needs a person."""
        if not self._go_to_need():
            self.say("nobody needs you")

    def _go_to_need(self, besides: WorkerId | None = None) -> bool:
        lines, start = self.fleet_list.lines, self.fleet_list.line
        glance = self.fleet_list.glance
        keys = [line.key for line in lines if isinstance(line.key, WorkerId)]
        asking = [key for key in keys if glance.workers[key].need is Need.NEEDS_YOU and key != besides]
        if not asking:
            return False
        at = keys.index(start.key) if start is not None and start.key in keys else -1
        after = next((key for key in asking if keys.index(key) > at), asking[0])
        return self.fleet_list.go_to_key(after)

    # -- workers -------------------------------------------------------------------------------------------------------

    def action_open(self) -> None:
        """Open a worker; of another line, what is below it."""
        worker, line = self.fleet_list.worker, self.fleet_list.line
        if line is None:
            return
        if self.answer_with_chosen():
            return
        if worker is not None and line.key == worker.id:
            self.open_worker(worker)
        else:
            self.fleet_list.toggle()

    def open_worker(self, worker: FleetWorker, tab: Tab | None = None) -> None:
        """Show everything about a worker, a certain tab first."""
        from agentctl.interfaces.screen.worker.worker_screen import WorkerScreen

        self.push_screen(WorkerScreen(self, worker, tab))

    def action_why(self) -> None:
        """Show why a worker is in its state."""
        from agentctl.interfaces.screen.worker.tab_row import Tab

        if self.fleet_list.worker is not None:
            self.open_worker(self.fleet_list.worker, Tab.WHY)

    # -- starts --------------------------------------------------------------------------------------------------------

    def action_dispatch(self, beginning: str = "") -> None:
        """Let a person write what to start."""
        self.dispatch_line.open(beginning)

    def on_dispatch_line_started(self, event: DispatchLine.Started) -> None:
        """Say what was started."""
        one = event.spawned
        self.say(plain(f"{one.agent_instance} of {one.task_id}: {one.message or one.status}"))
        self.reader.wake()

    def on_dispatch_line_closed(self) -> None:
        """Go back to the list."""
        self.take_focus()

    # -- search --------------------------------------------------------------------------------------------------------

    def action_search(self) -> None:
        """Write what is to be found in the titles, prompts and transcripts of all tasks."""
        from agentctl.interfaces.screen.search_screen import SearchScreen, query_of

        def search(text: str) -> None:
            self.push_screen(SearchScreen(self.root, text, query_of(text), self._open_found))

        self.write("search all tasks", search, check=query_of)

    def _open_found(self, worker: WorkerId) -> str | None:
        found = self.last_glance().workers.get(worker)
        if found is None:
            return f"{worker} is not there any more"
        self.open_worker(found)
        return None

    def action_logs(self) -> None:
        """Show the logs of the marked workers, or of the one under the cursor."""
        from agentctl.interfaces.screen.worker.logs_screen import MOST_PAGERS, LogsScreen

        chosen = self.chosen()
        if len(chosen) > MOST_PAGERS:
            self.say(f"{len(chosen)} workers are marked: the logs of the first {MOST_PAGERS} are shown")
        if chosen:
            self.push_screen(LogsScreen(chosen))

    def on_fleet_list_chosen(self) -> None:
        """Open what was clicked twice."""
        self.action_open()

    def action_mark_seen(self) -> None:
        """Note that ends were looked at."""
        for worker in self.chosen():
            self.mark_seen(worker)
        self.unmark()

    def mark_seen(self, worker: FleetWorker) -> None:
        """Note that somebody has looked at a worker's end."""
        if worker.end is not None and not self._seen.has(worker.id, worker.end):
            end = worker.end
            self.in_thread(lambda: self._note_seen({worker.id: end}))

    def _note_seen(self, ends: Mapping[WorkerId, str]) -> str:
        self._seen.note(ends)
        return ""

    def action_mark(self) -> None:
        """Mark a worker: what a key does then, it does to all that are marked."""
        self.fleet_list.toggle_mark()
        self._show_head()
        self.renew_keys()

    def action_mark_all(self) -> None:
        """Mark all workers that are shown; if they are, take the marks away."""
        self.fleet_list.toggle_all_marks()
        self._show_head()
        self.renew_keys()

    # -- the view ------------------------------------------------------------------------------------------------------

    def action_peek(self) -> None:
        """Show the peek, or hide it."""
        self._peeks = not self._peeks
        self.draw_peek()

    def action_tree(self) -> None:
        """Show the whole tree, or the workers by need."""
        self.arrangement.mode = Mode.TREE if self.arrangement.mode is Mode.BY_NEED else Mode.BY_NEED
        self.arrangement.held = None
        worker = self.fleet_list.worker
        if worker is not None and self.arrangement.mode is Mode.TREE:
            self.arrangement.opened[worker.task.id] = True
        self.fleet_list.rearrange()

    def action_filter(self) -> None:
        """Write a filter."""
        self.write("filter", self._set_filter, value=self._filter, typed=self._set_filter)

    def _set_filter(self, text: str) -> None:
        self._filter = text.strip()
        self.arrangement.shows = filter_of(self._filter)
        self.fleet_list.rearrange()
        self._show_head()

    def action_leave(self) -> None:
        """Take the marks away; close the peek; then take the filter away."""
        if self.fleet_list.marked:
            self.unmark()
        elif self.peek.display:
            self.action_peek()
        elif self._filter:
            self._set_filter("")

    def action_help(self) -> None:
        """Show all keys of what is on the screen."""
        from agentctl.interfaces.screen.search_screen import SearchScreen
        from agentctl.interfaces.screen.texts.pager import Pager
        from agentctl.interfaces.screen.worker.logs_screen import LogsScreen
        from agentctl.interfaces.screen.worker.worker_screen import WorkerScreen

        of_texts = ("Texts", Pager.BINDINGS)
        parts = {
            WorkerScreen: [("One worker", WorkerScreen.BINDINGS), of_texts],
            LogsScreen: [("Output of several workers", LogsScreen.BINDINGS), of_texts],
            SearchScreen: [("Search", SearchScreen.BINDINGS)],
        }.get(type(self.screen), [("Workers", self.BINDINGS), ("The list", FleetList.BINDINGS)])
        if not isinstance(self.screen, Help):
            self.push_screen(Help(parts))

    def on_fleet_list_focused(self) -> None:
        """Close the line in which something was being written: what was written is kept."""
        self.writing.close()

    async def action_interrupt(self) -> None:
        """Leave, from wherever."""
        await self.action_quit()

    async def action_quit(self) -> None:
        """Leave. Everything goes on without the screen."""
        self.exit(0)


#: What the keys of the list do; leaving is always possible.
_OF_LIST = {binding.action.partition("(")[0] for binding in WatchApp.BINDINGS if isinstance(binding, Binding)} - {
    "quit",
    "help",
    "interrupt",
}
_WORKER_ACTIONS = {one.key: one.action for one in WORKER_BINDINGS if isinstance(one, Binding)}
#: The part of the screen that the peek takes of a list that needs all of it; of a shorter one it takes the empty rows.
_PEEK_PART = 0.45
#: The rows of the head, of what is said, and of the footer.
_BESIDE_PEEK = 3
#: So long after a key that did nothing, what is typed acts on nothing: it was meant as a text.
_DEAF_S = 1.0
#: The needs of workers for which a time runs.
_TICKING = (Need.NEEDS_YOU, Need.WORKING, Need.QUEUED)
#: How long it takes at most to leave the terminal at a signal.
_LEAVES_S = 1.0
#: So long after it could not be read, the fleet is read anew.
_AGAIN_S = 1.0
#: How soon the thread that draws gets its turn from the one that reads, at each system call. With the usual 5 ms
#: one key in ten takes 24 ms while a large activity is read, with this 10 ms.
_SWITCH_S = 0.001


def _is_light(environ: Mapping[str, str]) -> bool:
    """Return whether the terminal says that its background is light (`COLORFGBG`, set by rxvt, Konsole and others)."""
    return environ.get("COLORFGBG", "").rpartition(";")[2] in ("7", "15")


def run_screen(root: Root, *, task: str | None = None, force: bool = False) -> int:
    """Show the screen until it is left; return the exit code.

    Args:
        root: It need not be there: then the first start makes it.
        force: As for `WatchApp`.

    Raises:
        AgentctlError: There is no such task.
    """
    if task is not None and not root.task(task).exists:
        raise AgentctlError(f"there is no task {task!r} in {root.path}", hint=Next("tasks"))
    sys.setswitchinterval(_SWITCH_S)
    app = WatchApp(root, task=task, force=force)
    code = app.run(mouse=True)
    return (app.return_code or 0) if code is None else code  # None: it has failed, and textual has shown how.
