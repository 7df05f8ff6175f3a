"""The program: it takes its order, opens the conversation, and passes on what its host says while the agent works."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agentctl.adapters.taskdir import WorkerDir
from agentctl.domain.names import is_name
from agentctl.domain.states import Reason
from agentctl.drivers.values import list_in, object_in, parse_line, text_in
from agentctl.errors import AgentctlError
from agentctl.supervision.worker.environment import AGENT_DIR
from agentctl.worker_programs.on_node.calls.called_files import LAUNCH_VARIABLE
from agentctl.worker_programs.plain_model.break_off import BreakOff
from agentctl.worker_programs.plain_model.history import Conversation, Kept, read_conversation
from agentctl.worker_programs.plain_model.host_channel import HostChannel, Reply, SharedParts
from agentctl.worker_programs.plain_model.model.model_call import Model, Reports
from agentctl.worker_programs.plain_model.model.provider_key import Mask, key_of
from agentctl.worker_programs.plain_model.model.refusals import Failure
from agentctl.worker_programs.plain_model.model.request import ModelRequest
from agentctl.worker_programs.plain_model.model_turns import Prompt, RunBounds, TurnLoop
from agentctl.worker_programs.plain_model.role import system_prompt
from agentctl.worker_programs.plain_model.toolbox.own_delegation import DelegationTools
from agentctl.worker_programs.plain_model.toolbox.reachable_paths import Places
from agentctl.worker_programs.plain_model.toolbox.tool_calls import ToolCalls
from agentctl.worker_programs.plain_model.toolbox.toolset import SPECS, chosen_tools

#: How long the agent has to write down where it is, once it has to end.
_LAST_S = 3.0
#: How often a long answer is heard of.
_BEAT_S = 10.0
_NOT_OPENED = 2


class LlmProgram:
    """One run of the program."""

    def __init__(self, host: HostChannel) -> None:
        self.host = host
        self.breaker = BreakOff()
        self.loop: TurnLoop | None = None
        self._thread: threading.Thread | None = None

    def run(self, lines: Any) -> int:
        """Follow the host's lines to their end; return the exit code."""
        signal.signal(signal.SIGTERM, lambda *_: self._terminated())
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        for line in lines:
            said = parse_line(line)
            if said is None:
                continue
            if said.get("type") == "open" and self.loop is None:
                if not self._open(said):
                    return _NOT_OPENED
            elif self.loop is not None:
                self._hear(self.loop, said)
        self._end()
        return 0

    def _hear(self, loop: TurnLoop, said: Mapping[str, Any]) -> None:
        match said.get("type"):
            case "prompt":
                loop.tell(Prompt(text_in(said.get("text")), is_now=said.get("now") is True))
            case "answer":
                is_allowed = said.get("allow") is True
                self.host.answered(text_in(said.get("key")), Reply(is_allowed, text_in(said.get("text"))))
            case "interrupt":
                loop.cancel()

    def _end(self) -> None:
        """Let the agent write down where it is; a turn that is under way is broken off."""
        if self.loop is not None and self._thread is not None:
            self.loop.cancel()
            self._thread.join(_LAST_S)

    def _terminated(self) -> None:
        def leave() -> None:
            self._end()
            os._exit(128 + signal.SIGTERM)

        threading.Thread(target=leave, daemon=True).start()

    # -- the opening ---------------------------------------------------------------------------------------------

    def _open(self, order: Mapping[str, Any]) -> bool:
        try:
            self.loop = self._loop_of(order)
        except Failure as failure:
            self.host.say("failed", reason=failure.reason, message=failure.message)
            return False
        except (AgentctlError, OSError) as error:
            self.host.say("failed", reason=Reason.NOT_STARTED, message=f"the conversation cannot be opened: {error}")
            return False
        self._thread = threading.Thread(target=self._work, args=(self.loop,), daemon=True)
        self._thread.start()
        return True

    def _work(self, loop: TurnLoop) -> None:
        try:
            loop.run()
        except Exception as error:  # noqa: BLE001 - a mistake of ours ends the program, and is told
            self.host.say("failed", reason=Reason.EXIT_CODE, message=f"a mistake of agentctl: {error!r}"[:500])
            sys.stderr.write(f"{error!r}\n")
            sys.stderr.flush()
            os._exit(1)

    def _loop_of(self, order: Mapping[str, Any]) -> TurnLoop:
        provider = object_in(order.get("provider"))
        worker = WorkerDir(os.environ[AGENT_DIR])
        key = key_of(provider)
        mask = self.host.mask = Mask(key)
        kept = _continued(worker, order)
        is_reading = order.get("readOnly") is True
        has = chosen_tools(_names(order.get("tools")), read_only=is_reading)
        offer = text_in(order.get("offer"))
        delegation = DelegationTools(offer) if offer else None
        places = Places(os.getcwd(), object_in(order.get("walls")), worker.outputs)
        more = delegation.instructions if delegation is not None and delegation.specs else ""
        specs = [*(spec for spec in SPECS if spec.name in has), *(delegation.specs if delegation else ())]
        template = ModelRequest(
            model=text_in(provider.get("model")),
            system=system_prompt(places, text_in(order.get("instructions")), more, read_only=is_reading),
            records=(), tools=specs, effort=text_in(order.get("effort")) or text_in(provider.get("effort")) or None,
            output=provider.get("output"), keeps_thoughts=provider.get("keepsThoughts") is True,
        )  # fmt: skip
        conversation = Conversation(str(worker.conversation), mask.data)
        session = kept.session or text_in(order.get("session"))
        conversation.begin(session, template.model, text_in(order.get("resume")) or None, kept.records)
        self.host.say("session", session=session, model=f"{provider.get('name')}/{template.model}")
        rules = (list_in(order.get("permissions")), [list_in(one) for one in list_in(order.get("deniedAbove"))])
        shared = SharedParts(self.host, self.breaker, mask)
        tools = ToolCalls(shared, places, has, delegation, rules, str(worker.outputs))
        model = Model(provider, key, self.breaker, _reports(self.host))
        bounds = RunBounds(text_in(order.get("run")), order.get("maxTurns"), order.get("maxBudgetUsd"))
        return TurnLoop(shared, model, tools, conversation, template, provider, bounds)


def _names(value: Any) -> Sequence[str] | None:
    return None if value is None else [text_in(name) for name in list_in(value)]


def _continued(worker: WorkerDir, order: Mapping[str, Any]) -> Kept:
    """Return the conversation that is continued; an empty one where it begins.

    Raises:
        Failure: There is no such conversation.
    """
    resume = text_in(order.get("resume"))
    if not resume:
        return Kept("", [])
    task_id, _, instance = resume.partition("/")
    if is_name(task_id) and is_name(instance):
        for here in _seen_from(worker):
            kept = read_conversation(str(here.task.sibling(task_id).worker(instance).conversation))
            if kept is not None:
                return kept
    raise Failure(Reason.NOT_STARTED, f"the conversation {resume} is not there any more")


def _seen_from(worker: WorkerDir) -> Iterator[WorkerDir]:
    """Yield this worker's folder; on a node, where it is alone, also that at the head, if its launch lies in there."""
    yield worker
    if launch := os.environ.get(LAUNCH_VARIABLE):
        yield WorkerDir(os.path.dirname(os.path.dirname(launch)))


def _reports(host: HostChannel) -> Reports:
    """Return what tells the host how asking the model goes."""
    since = {"beat": time.monotonic(), "retries": 0.0}

    def retrying(failure: Failure, tries: int) -> None:
        since["retries"] = tries
        host.say("retrying", reason=failure.reason, message=failure.message, tries=tries)

    def progress() -> None:
        now = time.monotonic()
        if since["retries"] or now - since["beat"] > _BEAT_S:
            since.update(beat=now, retries=0)
            host.say("progress")

    def windows(found: Any) -> None:
        if found:
            host.say("windows", windows=[window.to_json() for window in found])

    def note(text: str) -> None:
        host.say("note", text=text)

    return Reports(retrying, progress, windows, note)


def main() -> int:
    """Run the program; return its exit code."""
    return LlmProgram(HostChannel()).run(sys.stdin.buffer)
