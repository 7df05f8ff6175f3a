"""The keys that act on one worker, the same in the list and on the screen of a worker: answers, cancel, pause, send."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from rich.text import Text
from textual.binding import Binding, BindingType
from textual.dom import DOMNode
from textual.widgets import Static

from agentctl.adapters.taskdir import Root
from agentctl.domain.answers import check_answer
from agentctl.domain.names import WorkerId
from agentctl.domain.question import Question
from agentctl.domain.states import TERMINAL
from agentctl.domain.text.plaintext import plain
from agentctl.interfaces.screen.acting import commands
from agentctl.interfaces.screen.acting.peek import Peek, options_of, takes_words
from agentctl.interfaces.screen.acting.prompts import WritingLine, YesOrNo
from agentctl.interfaces.screen.fleet.lines import workers_below
from agentctl.operations.fleet.glance import FleetTask, FleetWorker, Glance
from agentctl.operations.fleet.reader import Reader
from agentctl.operations.show.further_runs import FurtherRuns, further_runs

#: How long a line that says what came of a key stays.
_SAID_S = 12.0
WORKER_BINDINGS: list[BindingType] = [
    Binding("i", "write_answer", "Answer"),
    Binding("D", "deny", "Deny", tooltip="Deny, with a reason"),
    Binding("x", "cancel", "Cancel"),
    Binding("p", "pause", "Pause"),
    Binding("s", "send", "Send"),
    Binding("r", "retry", "Retry"),
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

    def say(self, text: str) -> None:
        """Show a text for a while; an empty one takes away what is shown."""
        self.update(Text(text))
        self.set_class(bool(text), "-said")
        if text:
            self.set_timer(_SAID_S, lambda: self._unsay(text))

    def _unsay(self, text: str) -> None:
        if str(self.content) == text:
            self.say("")


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
    _keys: tuple[bool, ...] = ()
    #: Which further runs of ended workers are accepted: an end does not change.
    further: dict[tuple[WorkerId, str], FurtherRuns]

    # -- what is acted on ------------------------------------------------------------------------------------------

    def acted_on(self) -> FleetWorker | None:
        """Return the worker on which a key acts."""
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
        self.in_thread(lambda: commands.what_became_of(self.root, *was))

    def does_something(self, action: str) -> bool:
        """Return whether a key does anything for the worker; the footer shows only those."""
        is_needed = _NEEDS_WORKER.get(action)
        if is_needed is None or (action == "pause" and self.task_acted_on() is not None):
            return True
        worker = self.acted_on()
        return worker is not None and is_needed(worker) and self._is_accepted(action, worker)

    def renew_keys(self) -> None:
        """Draw the footer anew if other keys do something now: it makes all of its keys anew."""
        worker = self.acted_on()
        keys = tuple(worker is not None and self.does_something(action) for action in _NEEDS_WORKER)
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
            return
        worker, question = asked
        options = options_of(question)
        if number > len(options):
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

    def action_scroll_peek(self, by: int) -> None:
        """Scroll the peek by half a page."""
        self.peek.scroll_relative(y=by * max(1, self.peek.size.height // 2), animate=False)

    # -- workers ---------------------------------------------------------------------------------------------------

    def action_cancel(self) -> None:
        """Cancel a worker, after a question."""
        worker = self.acted_on()
        if worker is None:
            return
        name, below = worker.row["agentInstance"], workers_below(self.last_glance(), worker.id)
        more = f" and the {len(below)} below it" if below else ""
        self.yes_or_no.open(
            f"Cancel {name}{more}?",
            lambda: self.in_thread(lambda: commands.cancel_worker(worker), doing=f"{name} is being cancelled…"),
        )

    def action_pause(self) -> None:
        """Pause a worker, or let it continue; of a task hold the queue, or let it go."""
        worker, task = self.acted_on(), self.task_acted_on()
        if worker is not None:
            self.in_thread(lambda: commands.turn_pause(worker))
        elif task is not None:
            self.in_thread(lambda: commands.turn_hold(task))

    def action_send(self) -> None:
        """Write a message to a worker."""
        worker = self.acted_on()
        if worker is not None:
            self.write(
                f"message to {worker.row['agentInstance']}",
                lambda text: self.in_thread(lambda: commands.message_worker(self.root, worker, text)),
            )

    def action_retry(self) -> None:
        """Start the work of an ended worker once more, after a question."""
        worker = self.acted_on()
        if worker is not None:
            name = worker.row["agentInstance"]
            self.yes_or_no.open(
                f"Start the work of {name} again?", lambda: self.in_thread(lambda: commands.start_again(worker))
            )

    def action_copy_name(self) -> None:
        """Copy a worker's name and task, as any command takes them."""
        worker = self.acted_on()
        if worker is not None:
            self.copy(f"{worker.row['agentInstance']} --task {worker.task.id}")

    def action_copy_folder(self) -> None:
        """Copy the folder in which everything about a worker is."""
        worker = self.acted_on()
        if worker is not None:
            self.copy(str(worker.task.worker(worker.row["agentInstance"]).path))

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
