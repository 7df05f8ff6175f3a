"""The keys that act on workers, the same in the list and on the screen of a worker: answers, cancel, pause, send."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence

from rich.text import Text
from textual.binding import Binding, BindingType
from textual.dom import DOMNode
from textual.screen import Screen
from textual.timer import Timer
from textual.widgets import Static

from agentctl.adapters.taskdir import Root
from agentctl.domain.answers import check_answer
from agentctl.domain.names import WorkerId, first_of
from agentctl.domain.question import Question
from agentctl.domain.states import TERMINAL
from agentctl.domain.text.plaintext import plain
from agentctl.interfaces.screen.acting import commands
from agentctl.interfaces.screen.acting.peek import Peek
from agentctl.interfaces.screen.acting.prompts import WritingLine, YesOrNo
from agentctl.interfaces.screen.fleet.lines import workers_below
from agentctl.interfaces.words.question_pieces import options_of, takes_words
from agentctl.operations.fleet.glance import FleetTask, FleetWorker, Glance
from agentctl.operations.fleet.reader import Reader
from agentctl.operations.show.further_runs import FurtherRuns, further_runs
from agentctl.operations.talk.interacting import what_became_of

#: How long a line that says what came of a key stays.
_SAID_S = 12.0
WORKER_BINDINGS: list[BindingType] = [
    Binding("i", "write_answer", "Answer"),
    Binding("D", "deny", "Deny", tooltip="Deny, with a reason"),
    Binding("x", "cancel", "Cancel"),
    Binding("p", "pause", "Pause"),
    Binding("s", "send", "Send"),
    Binding("r", "retry", "Retry"),
    Binding("R", "source", "Source", show=False, tooltip="As it was written, or drawn: Markdown, calls"),
    Binding("c", "copy_name", "Copy its name", show=False),
    Binding("C", "copy_folder", "Copy its folder", show=False),
    Binding("ctrl+d", "scroll_peek(1)", "Scroll the peek", show=False),
    Binding("ctrl+u", "scroll_peek(-1)", "Scroll the peek", show=False),
]


class SaidLine(Static):
    """The line that says for a while what came of a key."""

    DEFAULT_CSS = """
    SaidLine { height: auto; padding: 0 1; display: none; max-height: 4; }
    SaidLine.-said { display: block; }
    """

    _goes: Timer | None = None

    def say(self, text: str) -> None:
        """Show a text for a while, counted from the last time that it was said; an empty one takes it away."""
        self.update(Text(text))
        self.set_class(bool(text), "-said")
        if self._goes is not None:
            self._goes.stop()
        self._goes = self.set_timer(_SAID_S, lambda: self.say("")) if text else None


class WorkerKeys(DOMNode):
    """What an app and a screen need to act on a worker; whoever uses it sets the attributes and overrides the rest."""

    root: Root
    reader: Reader
    peek: Peek
    writing: WritingLine
    yes_or_no: YesOrNo
    said: SaidLine
    #: The questions that were answered here: what becomes of these is not news.
    answered: set[tuple[WorkerId, str]]
    #: By this every screen of an app does what is to be done once.
    once: commands.OnceOnly
    _keys: tuple[bool, ...] = ()
    #: Which further runs of ended workers are accepted: an end does not change.
    further: dict[tuple[WorkerId, str], FurtherRuns]

    # -- what is acted on ------------------------------------------------------------------------------------------

    def acted_on(self) -> FleetWorker | None:
        """Return the worker on which a key acts."""
        raise NotImplementedError

    def chosen(self) -> list[FleetWorker]:
        """Return the workers on which a key acts that may be about several: those that are marked, if any are."""
        worker = self.acted_on()
        return [] if worker is None else [worker]

    def unmark(self) -> None:
        """Take the marks away: what was chosen by them is done."""

    def ignore_keys(self, why: str) -> None:
        """Act on nothing that is typed at once behind a key that did nothing: it was meant as a text."""
        raise NotImplementedError

    def task_acted_on(self) -> FleetTask | None:
        """Return the task whose queue a key holds or lets go, where no worker is meant."""
        return None

    def last_glance(self) -> Glance:
        """Return what was seen last."""
        raise NotImplementedError

    @property
    def pressed_at(self) -> float:
        """Return when the last key was pressed, however much later it is carried out (monotonic)."""
        raise NotImplementedError

    def show_question(self) -> None:
        """Show the question, where it is hidden: nobody answers what they do not see."""

    def draw_peek(self) -> None:
        """Show in the peek what there is now."""
        raise NotImplementedError

    def mark_seen(self, worker: FleetWorker) -> None:
        """Note that a person has looked at the end of a worker."""
        raise NotImplementedError

    def was_answered(self, worker: FleetWorker) -> None:
        """Go on after an answer."""

    def take_focus(self) -> None:
        """Go back to where a person was before something was asked."""
        raise NotImplementedError

    # -- what is said ----------------------------------------------------------------------------------------------

    def say(self, text: str) -> None:
        """Show a line for a while."""
        self.said.say(text)

    def did_nothing(self, why: str) -> None:
        """Say why a key did nothing."""
        self.say(why)
        self.ignore_keys(why)

    def ignored(self, why: str) -> None:
        """Say why a key before this one did nothing, where that is gone by now; nothing newer is hidden by it."""
        if not self.said.has_class("-said"):
            self.say(why)
        self.ignore_keys(why)

    def in_thread(self, work: Callable[[], str], *, doing: str = "") -> None:
        """Carry something out beside the screen, and say what came of it."""
        if doing:
            self.say(doing)

        async def carry_out() -> None:
            try:
                said = await asyncio.to_thread(work)
            except Exception as error:  # noqa: BLE001 - whatever it is, the screen goes on and says it
                said = commands.error_line(error)
            self.say(said)
            self.reader.wake()

        self.app.run_worker(carry_out(), exit_on_error=False)

    def tell_of_others(self, was: tuple[WorkerId, str] | None, glance: Glance) -> None:
        """Say what became of the question in the peek, if it is no longer open and was not answered here."""
        if was is None or was in self.answered:
            return
        worker = glance.workers.get(was[0])
        if worker is not None and any(one.id == was[1] for one in worker.questions):
            return
        self.answered.add(was)
        self.in_thread(lambda: what_became_of(self.root, *was))

    def does_something(self, action: str) -> bool:
        """Return whether a key does anything for the worker; the footer shows only those."""
        is_needed = _NEEDS_WORKER.get(action)
        if is_needed is None or (action == "pause" and self.task_acted_on() is not None):
            return True
        workers = self.chosen() if action in _OF_SEVERAL else [*filter(None, [self.acted_on()])]
        return any(self._does(action, worker) for worker in workers)

    def _does(self, action: str, worker: FleetWorker) -> bool:
        return _NEEDS_WORKER[action](worker) and self._is_accepted(action, worker)

    def why_nothing(self, action: str) -> str:
        """Return why a key does nothing now."""
        workers = self.chosen() if action in _OF_SEVERAL else [*filter(None, [self.acted_on()])]
        if not workers:
            return "no worker is under the cursor"
        if len(workers) > 1:
            return f"none of the {len(workers)} marked workers {_LACKS_ALL[action]}"
        worker = workers[0]
        name, status = worker.row["agentInstance"], worker.row["status"]
        if worker.row.get("observed"):
            return f"{name} is only observed: its own program can stop it"
        if action in ("write_answer", "deny"):
            return f"{name} asks {'nothing' if action == 'write_answer' else 'for no permission'}"
        if action == "retry" and status in TERMINAL:
            return f"the work of {name} cannot be started again: y says why it ended"
        if action == "send" and worker.row["driver"] is not None:
            return f"{name} cannot be continued: y says why it ended"
        return f"{name} is {status}: there is nothing to {_VERBS[action]}"

    def renew_keys(self) -> None:
        """Draw the footer anew if other keys do something now: it makes all of its keys anew."""
        keys = tuple(self.does_something(action) for action in _NEEDS_WORKER)
        keys += (self.task_acted_on() is not None,)
        if keys != self._keys:
            self._keys = keys
            self.app.refresh_bindings()

    def _is_accepted(self, action: str, worker: FleetWorker) -> bool:
        """Return whether a further run of an ended worker is accepted, as far as that is known by now."""
        ended_at = worker.row["endedAt"]
        if action not in ("retry", "send") or ended_at is None:
            return True
        known = self.further.get((worker.id, ended_at))
        if known is None:
            self._learn(worker, ended_at)
            return True
        return known.retry if action == "retry" else known.resume

    def _learn(self, worker: FleetWorker, ended_at: str) -> None:
        """Look beside the screen which further runs of a worker are accepted, and draw the footer anew."""
        self.further[worker.id, ended_at] = FurtherRuns(retry=True, resume=True)  # Nobody else need look.

        async def look() -> None:
            folder = worker.task.worker(worker.row["agentInstance"])
            self.further[worker.id, ended_at] = await asyncio.to_thread(further_runs, folder)
            self.renew_keys()

        self.app.run_worker(look(), exit_on_error=False)

    # -- answers ---------------------------------------------------------------------------------------------------

    def action_answer(self, number: int) -> None:
        """Give the answer with this number, or choose it where several may be chosen."""
        asked = self.asked()
        if asked is None:
            if not self._asks():
                self.did_nothing(self.why_nothing("write_answer"))
            return
        worker, question = asked
        options = options_of(question)
        if number > len(options):
            has = f"{len(options)} options" if options else "no options: i writes an answer"
            self.did_nothing(f"there is no answer {number}: the question has {has}")
            return
        if not self.peek.has_settled_at(self.pressed_at):
            self.say("this question has only just come up: press the digit again")
            return
        id_ = options[number - 1].id
        if question.multiple:
            self.peek.chosen ^= {id_}
            self.draw_peek()
            return
        self.give_answer(worker, question, id_)

    def _asks(self) -> bool:
        worker = self.acted_on()
        return worker is not None and bool(worker.questions)

    def answer_with_chosen(self) -> bool:
        """Give the chosen options as the answer; return False where none are chosen."""
        asked = self.asked() if self.peek.display and self.peek.chosen else None
        if asked is None or not asked[1].multiple:
            return False
        ids = [one.id for one in options_of(asked[1]) if one.id in self.peek.chosen]
        self.give_answer(*asked, ",".join(ids))
        return True

    def asked(self) -> tuple[FleetWorker, Question] | None:
        """Return the worker and its first question, as the peek shows it."""
        worker = self.acted_on()
        if worker is None or not worker.questions:
            return None
        if not self.peek.display:
            self.show_question()
            return None
        question = worker.questions[0]
        is_shown = self.peek.question_key == (worker.id, question.id)
        return (worker, question) if is_shown else None

    def give_answer(
        self, worker: FleetWorker, question: Question, text: str, reason: str | None = None, *, is_written: bool = False
    ) -> None:
        """Answer a question, and go on to the next one."""
        problem = self.peek.why_not(worker, question, text, is_written=is_written)
        if problem is not None:
            self.say(problem)
            return
        self.answered.add((worker.id, question.id))
        self.in_thread(lambda: commands.answer(self.root, worker, question, text, reason))
        self.was_answered(worker)

    def action_write_answer(self) -> None:
        """Write an answer."""
        asked = self.asked()
        if asked is None:
            return
        worker, question = asked
        if not takes_words(question) and not options_of(question):
            return
        self.write(
            f"answer to {worker.row['agentInstance']}",
            lambda text: self.give_answer(worker, question, text, is_written=True),
            check=lambda text: check_answer(question, text),
        )

    def action_deny(self) -> None:
        """Deny a permission and say why."""
        asked = self.asked()
        denial = asked[1].denial if asked is not None else None
        if asked is None or denial is None:
            return
        worker, question = asked
        self.write(
            f"deny {worker.row['agentInstance']}, because",
            lambda reason: self.give_answer(worker, question, denial, reason.strip() or None),
        )

    def action_source(self) -> None:
        """Show a question as it was written, or drawn again."""
        if self._asks() and self.peek.display:
            self.peek.change_source()
            self.draw_peek()

    def action_scroll_peek(self, by: int) -> None:
        """Scroll the peek by half a page."""
        self.peek.scroll_relative(y=by * max(1, self.peek.size.height // 2), animate=False)

    # -- workers ---------------------------------------------------------------------------------------------------

    def _applying(self, action: str) -> list[FleetWorker]:
        """Return those of the chosen workers for which a key does something."""
        return [worker for worker in self.chosen() if self._does(action, worker)]

    def _for_all(self, work: Callable[[], str], *, doing: str = "") -> None:
        self.unmark()
        self.in_thread(work, doing=doing)

    def action_cancel(self) -> None:
        """Cancel workers, after a question."""
        if workers := self._applying("cancel"):
            glance = self.last_glance()
            below = {key for one in workers for key in workers_below(glance, one.id)} - {one.id for one in workers}
            more = f" and the {len(below)} below {'them' if len(workers) > 1 else 'it'}" if below else ""
            names = _names(workers)
            self.yes_or_no.open(
                f"Cancel {_counted(workers)}{more}?",
                lambda: self._for_all(
                    lambda: commands.cancel_all_of(workers),
                    doing=f"{names} {'is' if len(workers) == 1 else 'are'} being cancelled…",
                ),
            )

    def action_pause(self) -> None:
        """Pause workers, or let them continue where all are paused; of a task hold the queue, or let it go."""
        workers, task = self._applying("pause"), self.task_acted_on()
        if workers:
            pauses = self.once.pauses(workers)  # As it is asked, whatever is seen until it is answered.

            def turn() -> None:
                self._for_all(lambda: self.once.turn_pauses(workers, pauses=pauses))

            if len(workers) > 1:
                self.yes_or_no.open(f"{'Pause' if pauses else 'Continue'} {_counted(workers)}?", turn)
            else:
                turn()
        elif task is not None:
            holds = self.once.holds(task)
            self.in_thread(lambda: self.once.turn_hold(task, holds=holds))

    def action_send(self) -> None:
        """Write a message to workers."""
        if workers := self._applying("send"):
            self.write(
                f"message to {_counted(workers)}",
                lambda text: self._for_all(lambda: self.once.send(workers, text)),
            )

    def action_retry(self) -> None:
        """Start the work of ended workers once more, after a question."""
        if workers := self._applying("retry"):
            self.yes_or_no.open(
                f"Start the work of {_counted(workers)} again?",
                lambda: self._for_all(lambda: self.once.start_again(workers)),
            )

    def action_copy_name(self) -> None:
        """Copy the names of workers with their task, as any command takes them; a line for each task."""
        if workers := self.chosen():
            lines = (f"{' '.join(names)} --task {task}" for task, names in commands.by_task(workers).items())
            self.copy("\n".join(lines))

    def action_copy_folder(self) -> None:
        """Copy the folders in which everything about workers is."""
        if workers := self.chosen():
            self.copy("\n".join(str(one.task.worker(one.row["agentInstance"]).path) for one in workers))

    def copy(self, text: str) -> None:
        """Copy a text, and say so."""
        self.app.copy_to_clipboard(text)
        self.say(f"copied: {plain(text)}")

    # -- what is asked back ----------------------------------------------------------------------------------------

    def write(
        self,
        label: str,
        send: Callable[[str], None],
        *,
        value: str | None = None,
        typed: Callable[[str], None] | None = None,
        check: Callable[[str], object] = lambda _: None,
    ) -> None:
        """Let a person write; see `WritingLine.open`."""
        self.writing.open(label, self._then_back(send), value=value, typed=typed, check=check)

    def _then_back(self, send: Callable[[str], None]) -> Callable[[str], None]:
        def sent(text: str) -> None:
            self.take_focus()
            send(text)

        return sent

    def on_writing_line_left(self) -> None:
        """Go back."""
        self.take_focus()

    def on_yes_or_no_answered(self) -> None:
        """Go back."""
        self.take_focus()


class WorkerKeysScreen(WorkerKeys, Screen[None]):
    """A screen above the list that acts on a worker. The list knows it by this, and imports it where it is opened."""

    #: Whether it shows something: before that, its keys are not yet known.
    is_drawn: bool

    def take(self, glance: Glance) -> None:
        """Take up a new glance."""
        raise NotImplementedError


def _names(workers: Sequence[FleetWorker]) -> str:
    return plain(first_of([one.row["agentInstance"] for one in workers], _MOST_NAMED))


def _counted(workers: Sequence[FleetWorker]) -> str:
    """Return who is meant: `build`, or `3 marked workers (a, b, c)`."""
    return _names(workers) if len(workers) == 1 else f"{len(workers)} marked workers ({_names(workers)})"


#: The keys that need a worker, and whether they do anything for it.
_NEEDS_WORKER: Mapping[str, Callable[[FleetWorker], bool]] = {
    "write_answer": lambda worker: bool(worker.questions),
    "deny": lambda worker: bool(worker.questions) and worker.questions[0].denial is not None,
    "cancel": lambda worker: worker.row["status"] not in TERMINAL and not worker.row.get("observed"),
    "pause": lambda worker: worker.row["status"] in ("running", "blocked") and not worker.row.get("observed"),
    "retry": lambda worker: worker.row["status"] in TERMINAL and not worker.row.get("observed"),
    "send": lambda worker: (
        (worker.row["status"] not in TERMINAL or worker.row["driver"] is not None) and not worker.row.get("observed")
    ),
}
#: Those that act on all marked workers; and what none of these has where such a key does nothing.
_LACKS_ALL = {
    "cancel": "is at work or in the queue", "pause": "is at work", "retry": "can be started again",
    "send": "takes a message",
}  # fmt: skip
_OF_SEVERAL = frozenset(_LACKS_ALL)
_VERBS = {"cancel": "cancel", "pause": "pause", "retry": "start again", "send": "send to"}
#: So many workers are named in a question.
_MOST_NAMED = 6
