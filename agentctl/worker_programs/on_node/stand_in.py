"""The stand-in of a worker on a node: its process at the head, which has the engine start it and follows it to the end.

Everything that it does can be done again: if it is killed, the shim starts another one, which takes up the same launch.
It ends only once it is proven how the worker has ended, and leaves that as the verdict of the launch.
"""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Callable, Mapping

from agentctl.adapters import processes
from agentctl.adapters.clock import monotonic, since_boot
from agentctl.adapters.files import to_json, write_whole
from agentctl.adapters.opening import OddFile
from agentctl.adapters.taskdir import LaunchDir, WorkerDir
from agentctl.adapters.treedir import tree_of
from agentctl.domain.state_tables.launch_state import LaunchNews, after_engine_answer, launch_after, taken_up
from agentctl.domain.states import Reason, Status
from agentctl.domain.worker.sightings import LaunchFinding
from agentctl.errors import AgentctlError
from agentctl.lean import Any
from agentctl.runners.program import POST, argv_of
from agentctl.runners.registry import load
from agentctl.runners.runner import LaunchOrder
from agentctl.shim.notes import Notes
from agentctl.supervision.worker import cancel_request
from agentctl.supervision.worker.control import poke
from agentctl.supervision.worker.endings import Decision
from agentctl.supervision.worker.environment import AGENT_DIR
from agentctl.worker_programs.on_node.calls.called_commands import CalledCommands
from agentctl.worker_programs.on_node.engine import Engine, Said
from agentctl.worker_programs.on_node.engine_questions import EngineBoard
from agentctl.worker_programs.on_node.exchange.file_mirror import Mirror
from agentctl.worker_programs.on_node.exchange.heartbeat import HeardFrom, pause_s
from agentctl.worker_programs.on_node.exchange.launch_record import (
    claimed_by_head,
    is_withdrawn,
    placement_of,
    take_up,
)
from agentctl.worker_programs.on_node.exchange.node_relay import Relay
from agentctl.worker_programs.on_node.exchange.seal import forget_key
from agentctl.worker_programs.on_node.exchange.to_node import Inbound
from agentctl.worker_programs.on_node.exchange.written_state import is_all_seen
from agentctl.worker_programs.on_node.launch_handle import LaunchHandle
from agentctl.worker_programs.on_node.verdicts import Verdicts, decided, end_on_node
from agentctl.worker_programs.on_node.wakes import Wakes

#: How often everything is looked at: while something happens here, at most while something is awaited, without a hint.
_LOOK_S, _AWAITING_LOOK_S, _UNASKED_LOOK_S = 0.1, 1.0, 300.0
_LAST_WORDS_S = 5.0
#: For how long, and how often, an engine that cannot be told is told again that a launch is not to begin.
_WITHDRAWAL_S, _WITHDRAWAL_PAUSE_S = 20.0, 1.0
_UNANSWERABLE = "it asks for a permission that cannot be given since this machine was restarted: cancel and resume it"


def main() -> int:
    """Follow this process's worker to its end; return an exit code that nobody needs: the verdict counts."""
    worker = WorkerDir(os.environ[AGENT_DIR])
    os.umask(0o077)
    launch = take_up(worker)
    if launch.verdict.exists():
        return 0
    try:
        stand_in = StandIn(worker, launch)
    except AgentctlError as error:  # A runner that is not installed any more, for example.
        if not claimed_by_head(launch):
            raise
        _write_verdict(launch, decided(Status.FAILED, Reason.NOT_STARTED, error.message))
        return 0
    stand_in.run()
    return 0


def _write_verdict(launch: LaunchDir, verdict: Decision) -> None:
    write_whole(launch.verdict, to_json(verdict.to_json()))


class StandIn:
    """Follows one launch."""

    def __init__(self, worker: WorkerDir, launch: LaunchDir) -> None:
        self.worker, self.launch = worker, launch
        self.note = Notes(tree_of(worker.task), worker)
        self.placement = placement_of(worker)
        self.runner = load(self.placement.runner)
        self.wakes = Wakes()
        self.engine = Engine(self.wakes.wakes)
        self.board = EngineBoard(self.runner, launch.id, self.placement.poll_s)
        self.mirror = Mirror(worker, launch.worker_on_node(worker))
        self.relay = Relay(worker, launch)
        self.inbound = Inbound(worker, launch)
        self.calls = CalledCommands(worker, launch)
        self.heard = HeardFrom(launch, self.wakes.woken, self.placement.silence_s)
        self.verdicts = Verdicts(worker, launch, self.placement)
        self.handle = LaunchHandle(launch, self.runner.name, self.board.name)
        is_held = self.placement.ahead > 0 and not launch.inbound.go.exists()
        self.state = taken_up(self.handle.submissions, is_held=is_held)
        #: Whether a step of this look has failed, and so the next look is not to wait for a hint.
        self._has_failed = False
        self._happened = monotonic()
        #: What the node has written by the worker's end.
        self._written: Mapping[str, Any] = {}

    def run(self) -> None:
        """Follow the launch until its verdict is on disk."""
        while True:
            self._has_failed = False
            if self._safely(self._is_over):
                break
            self._sleep()
        self.heard.close()

    def _is_over(self) -> bool:
        """Look at everything once; return whether the verdict is on disk."""
        verdict = self._look()
        return verdict is not None and self._end(verdict)

    def _sleep(self) -> None:
        """Sleep until the next look."""
        now, has_begun = monotonic(), self.state.has_begun
        if self._is_calm:
            longest_s = _UNASKED_LOOK_S if has_begun else self._apart_s
            self.heard.rest(self._happened, now + longest_s, self.board.due_in_s, has_begun=has_begun)
        else:
            longest_s = _LOOK_S if self.calls.is_lively else _AWAITING_LOOK_S if has_begun else math.inf
            self.wakes.wait(min(pause_s(now - self._happened), longest_s))
        self.wakes.clear()

    @property
    def _apart_s(self) -> float:
        """How far apart two answers of the engine lie that prove something."""
        return min(30.0, 2 * self.placement.poll_s)

    @property
    def _is_calm(self) -> bool:
        """Whether nothing is awaited here: its node tells if the worker begins or does something, and its shim here."""
        is_awaited = self.inbound.has_cancel or self.inbound.is_held_up or self.relay.has_open or self.calls.is_any
        return self.state.is_calm and not (self._has_failed or self.wakes.is_asked_to_end or is_awaited)

    @property
    def _is_cancelled(self) -> bool:
        """Whether its end was asked for here."""
        return self.wakes.is_asked_to_end or cancel_request.is_asked(self.worker)

    def _take(self, news: LaunchNews) -> None:
        self.state = launch_after(self.state, news, monotonic())

    # -- one look ----------------------------------------------------------------------------------------------------

    def _look(self) -> Decision | None:
        """Look at everything once; return the verdict if there is one."""
        for said in self.engine.take():
            self._hear(said)
        if not self.state.has_begun and self._is_claimed():
            if is_withdrawn(self.launch):
                return self.verdicts.withdrawn(is_cancelled=self._is_cancelled)
            self._take(LaunchNews.CLAIMED)
            self._happened = monotonic()
            poke(self.worker)  # Its shim counts its time from now on.
        return self._at_node() or (self._cancel() if self._is_cancelled else None) or self._ask_engine()

    def _is_claimed(self) -> bool:
        with contextlib.suppress(OSError):
            os.listdir(self.launch.path)  # Over NFS: a name that was missing at the last look is looked up again.
        return self.launch.claim.exists()

    def _at_node(self) -> Decision | None:
        """Bring both sides up to date; return the verdict if the node has written an end."""
        if self.state.has_begun:
            self._follow()
            return self._ended()
        self.inbound.step_early()
        self._let_go()
        return None

    def _let_go(self) -> None:
        """Let a launch that was submitted ahead begin once its worker has a slot."""
        if not self.state.is_held:
            return
        from agentctl.supervision.dispatch.slots import has_slot  # Few are submitted ahead: memory.

        if has_slot(tree_of(self.worker.task), self.worker.id):
            write_whole(self.launch.inbound.go, b"")
            self._take(LaunchNews.RELEASED)

    def _follow(self) -> None:
        """Bring the files here up to date with those of the node."""
        self.relay.tell_placed(self.placement.runner)
        is_relayed = self._safely(self.relay.step)
        if is_relayed:
            poke(self.worker)  # Its shim has a person told what happened.
        steps = (self.mirror.step, lambda: self.inbound.step(self.relay), self.calls.step)
        if any([is_relayed, *map(self._safely, steps)]):
            self._happened = monotonic()
        if self.relay.has_unanswerable:
            self._note_handle(problem=_UNANSWERABLE)

    def _safely(self, step: Callable[[], bool]) -> bool:
        """Take a step; whatever a worker has put into a file, the other steps are taken too."""
        try:
            return step()
        except (AgentctlError, OSError):  # A full disk, a file system that does not answer: the next look goes on.
            pass
        except Exception as error:  # noqa: BLE001 - the worker can have written anything; a cancel must work
            self.note(f"{type(error).__name__}: {error}")
        self._has_failed = True
        return False

    def _ended(self) -> Decision | None:
        """Return the verdict about the end that the node has written."""
        found = end_on_node(self.launch)
        if found is None:
            return None
        ended, self._written = found
        is_cancelled_there = ended.status is Status.CANCELLED and not self._is_cancelled
        return self.verdicts.cancelled_there(ended) if is_cancelled_there else ended

    def _end(self, verdict: Decision) -> bool:
        """Take over the last that the node has written, and write the verdict; return whether that is done."""
        is_whole = is_all_seen(self.mirror.there, self._written)  # Before it is copied.
        self._follow()
        if not is_whole and self._is_awaited():
            return False
        try:
            self.mirror.finish()
        except OddFile as error:  # Something else is in the place of one of its files: no later try would go better.
            self.note(error)
        self.relay.close("its worker has ended")
        self.calls.close()
        if not self.state.has_begun and self._is_cancelled and (problem := self._withdraw()):
            verdict = self.verdicts.left_behind(verdict, problem, self.handle.job)
        _write_verdict(self.launch, verdict)
        self._reap()
        self._tidy(is_over=is_whole and verdict.reason != Reason.LOST)
        return True

    def _is_awaited(self) -> bool:
        """Return whether to wait on for what the node has written and is not seen here: a file system may be late."""
        self._take(LaunchNews.UNSEEN)
        silence_s = self.placement.silence_s
        if monotonic() < self.state.unseen_since + silence_s:
            return True
        self.note(f"not everything that its node has written is seen here, {silence_s:g} s after its end")
        return False

    def _reap(self) -> None:
        """Have the engine forget the launch, and wait a while for that."""
        self.engine.do("reap", lambda: self.runner.reap(self.launch.id))
        until = monotonic() + _LAST_WORDS_S
        while self.engine.has("reap") or self.engine.has("interrupt"):
            self.engine.take()
            if monotonic() >= until:
                break
            self.wakes.wait(_LOOK_S)

    def _tidy(self, *, is_over: bool) -> None:
        """Remove what nobody needs any more; of a worker that is lost, its node may tell more yet."""
        with contextlib.suppress(OSError):
            os.unlink(self.launch.environment)
        if is_over:
            forget_key(self.launch.id)
            import shutil  # With it come three compressors; only now.

            for folder in (self.launch.node, self.launch.calls, self.launch.to_node):
                shutil.rmtree(folder, ignore_errors=True)

    # -- a cancel ----------------------------------------------------------------------------------------------------

    def _cancel(self) -> Decision | None:
        """Pass a cancel on; return the verdict if nothing has begun, and nothing will."""
        with contextlib.suppress(AgentctlError, OSError):  # The engine is told all the same; the next look tries again.
            self.inbound.cancel()
        if not self.state.is_interrupted:
            self._take(LaunchNews.INTERRUPTED)
            self._happened = monotonic()
            self.engine.do("interrupt", self._interrupt)
        if self.state.has_begun or not claimed_by_head(self.launch):
            return None  # Whoever claims it first decides: a node that begins now finds that it must not.
        return self.verdicts.withdrawn(is_cancelled=self._is_cancelled)

    def _withdraw(self) -> str:
        """Have the engine take a launch out of its queue that will never begin; return why it could not be told.

        Nobody else tells it, and a launch whose turn never comes would wait there for ever. It may be busy at first.
        """
        until, due, problem = monotonic() + _WITHDRAWAL_S, 0.0, "it has not answered"
        while problem and (now := monotonic()) < until:
            if now >= due:
                self.engine.do("interrupt", self._interrupt)
            self.wakes.wait(_LOOK_S)
            self.wakes.clear()
            for said in self.engine.take():
                self._hear(said)
                if said.what == "interrupt":
                    problem, due = said.problem, monotonic() + _WITHDRAWAL_PAUSE_S
        return problem

    def _interrupt(self) -> str | None:
        self.runner.interrupt(self.launch.id)
        return None

    # -- the engine --------------------------------------------------------------------------------------------------

    def _hear(self, said: Said) -> None:
        match said.what:
            case "submit" if said.problem:
                self._take(LaunchNews.REFUSED)
                self._note_handle(problem=said.problem, isFinal=said.is_final)
            case "submit":
                self._happened = monotonic()
                self._take(LaunchNews.SUBMITTED)
                self._note_handle(job=said.answer, at=since_boot(), boot=processes.boot_id(), problem=None, engine=None)
            case "interrupt" if said.problem:
                self._take(LaunchNews.UNREACHED)

    def _note_handle(self, **more: Any) -> None:
        self.handle.note(self.state.submissions, **more)

    def _ask_engine(self) -> Decision | None:
        """Return the verdict that follows from what the engine says, if one does."""
        if not self.state.submissions and not self.state.has_begun:
            return self._submit()
        if self.board.is_due:
            self.engine.do("ask", self._ask)
        answer = self.board.last()
        if answer.at <= self.handle.submitted_at:
            return None  # From before it was submitted.
        silent_s = self.heard.silent_s() if self.state.has_begun else 0.0
        seen = answer.seen
        self._note_handle(engine={"state": seen.state, "words": seen.words, "reason": seen.reason or answer.problem})
        self.state = after_engine_answer(
            self.state, seen, answer.at,
            silent_s=silent_s, apart_s=self._apart_s, silence_s=self.placement.silence_s,
        )  # fmt: skip
        return self._concluded(seen.words, seen.reason)

    def _ask(self) -> str | None:
        self.board.ask()
        return None

    def _concluded(self, words: str, reason: str) -> Decision | None:
        match self.state.watched.finding:
            case LaunchFinding.LOST:
                return self.verdicts.lost(words)
            case LaunchFinding.FORGOTTEN if self.state.may_be_submitted_again:
                self._take(LaunchNews.DROPPED)
                return self._submit()
            case LaunchFinding.FORGOTTEN | LaunchFinding.NEVER_BEGAN if claimed_by_head(self.launch):
                return self.verdicts.never_began(words, reason)
        return None

    def _submit(self) -> Decision | None:
        """Have the engine start it; return the verdict if the engine never will."""
        problem = self.handle.final_problem
        if problem is not None:
            is_ours = claimed_by_head(self.launch)
            return decided(Status.FAILED, Reason.NOT_STARTED, problem) if is_ours else None
        if monotonic() >= self.state.submission_due:
            order = self._order()
            self.engine.do("submit", lambda: self.runner.launch(order))
        return None

    def _order(self) -> LaunchOrder:
        """Return what the engine is given to start: the post of the launch."""
        return LaunchOrder(
            id=self.launch.id,
            argv=argv_of(POST, str(self.launch.path), self.placement.python),
            log=str(self.launch.engine_log),
            what=f"{self.worker.task.id}/{self.worker.instance}",
            placement=self.placement,
        )
