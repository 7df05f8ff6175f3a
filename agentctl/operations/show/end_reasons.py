"""Why a worker has ended as it has: the decision in its exit.json, what was seen of the exit, and who asked for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from agentctl.adapters.files import read_known
from agentctl.adapters.processes import identity_from
from agentctl.adapters.taskyaml.cache import known_limits
from agentctl.adapters.treedir import tree_of
from agentctl.domain import events as ev
from agentctl.domain.names import first_of
from agentctl.domain.states import Reason, Status
from agentctl.domain.worker.ends import HIDDEN, reason_in_words
from agentctl.operations.show.evidence import (
    Evidence,
    Part,
    Statement,
    TypedCommand,
    WayOut,
    evidence_fields,
    file_says,
    lock_says,
    process_says,
    shown,
)
from agentctl.operations.show.further_runs import awaited_in_vain, refusal_by_itself, refusal_of_resume
from agentctl.operations.show.sessions_by_hand import held_by
from agentctl.operations.show.worker_facts import WorkerFacts
from agentctl.operations.where.folding import fold
from agentctl.supervision.life.judging import is_unguarded
from agentctl.supervision.worker.endings import Decision, decision_of

_END_EVENTS = (ev.COMPLETED, ev.FAILED, ev.CANCELLED)
_TOLD = ("status", "reason", "by", "exitCode", "signal", "message", "endedAt", "attempt")
#: What a reason means, for a sentence that begins with "It failed: ".
_MEANS: Mapping[str, str] = {
    Reason.EXIT_CODE: "its program exited with {exit_code}",
    Reason.SIGNAL: "{signal}, which agentctl did not send, ended its program",
    Reason.TIMED_OUT: "its time limit passed",
    Reason.LOST: "it and its shim were found gone, so nobody saw how it exited",
    Reason.NOT_STARTED: "its work did not begin",
    Reason.DEPENDENCY: "a worker that it waited for did not complete",
    Reason.OUTPUT_LIMIT: "it wrote more than it may (maxOutputBytes)",
    Reason.MAX_TURNS: "it used up its turns",
    Reason.BUDGET: "it used up its money or tokens",
    Reason.REFUSED: "the model declined to answer",
    Reason.AUTH: "a key or login is missing or was refused",
    Reason.BILLING: "its account has no credit left, or no plan that includes the model",
    Reason.RATE_LIMITED: "the provider refuses further requests from its account for now",
    Reason.OVERLOADED: "the provider is overloaded",
    Reason.CONTEXT: "its conversation is longer than the model can read",
    Reason.MODEL_ERROR: "the provider or its model failed",
    Reason.TRUNCATED: "its answer or its stream was cut off",
    Reason.PERMISSION_DENIED: "a permission that was denied ended it",
    Reason.NOT_INSTALLED: "its agent program is not installed",
    Reason.SCHEMA: "its final answer does not fit the requested schema",
}


def end_part(facts: WorkerFacts) -> Part:
    """Return why a worker has ended, and what can still be done."""
    decision = decision_of(facts.worker_dir)
    statements = [_end(facts, decision)]
    if facts.view.reason == Reason.LOST:
        worker = facts.worker_dir
        gone = [lock_says(worker.shim), *process_says(identity_from(read_known(worker.shim)), "its shim")]
        gone += process_says(facts.leader(), "its first process")
        statements.append(Statement("Neither its shim nor its first process is alive.", gone))
    statements += _by_request(facts)
    if decision is not None:
        statements += _left_behind(facts, decision)
    statements += _attempts(facts)
    barred, ways = _breaker(facts)
    return [*statements, *barred], [*_ways(facts), *ways]


def _end(facts: WorkerFacts, decision: Decision | None) -> Statement:
    view = facts.view
    message = shown(view.message) if view.message else ""
    after = f": {message}" if message else ""
    if view.status is Status.COMPLETED:
        text = "It has ended by itself, successfully"
    elif view.status is Status.CANCELLED:
        text = f"It was cancelled by {decision.by if decision else 'a caller that is not known'}"
    else:
        text = f"It failed: {_meaning(facts)}"
    return Statement(f"{text}{after}.", [_of_decision(facts, decision), *_of_log(facts)])


def _meaning(facts: WorkerFacts) -> str:
    """Return what the reason of a failure means; a newer version may have written one that is not known here."""
    view = facts.view
    if view.reason is not None and view.reason in _MEANS:
        return _MEANS[view.reason].format(exit_code=view.exit_code, signal=view.signal or "a signal")
    return reason_in_words(view.reason, view.exit_code, view.signal) or "why is unknown"


def _of_decision(facts: WorkerFacts, decision: Decision | None) -> Evidence:
    if decision is None:
        return file_says(facts.worker_dir.exit, "it is missing, or does not describe an end: only the log says how")
    return file_says(facts.worker_dir.exit, evidence_fields(decision.to_json(), *_TOLD))


def _of_log(facts: WorkerFacts) -> list[Evidence]:
    return [one for kind in _END_EVENTS for one in facts.event(kind, "reason", "exitCode", "signal")]


def _by_request(facts: WorkerFacts) -> list[Statement]:
    """Return who had asked for its end, also where it ended in another way."""
    path = facts.worker_dir.cancel
    if not path.exists():
        return []
    request = read_known(path)
    by = shown(request.get("by") or "an unknown caller")
    was = "" if facts.view.status is Status.CANCELLED else ", but too late, or something else ended it"
    evidence = [file_says(path, evidence_fields(request, "by", "at")), *facts.event(ev.CANCEL_REQUESTED)]
    return [Statement(f"Its end was requested by {by}{was}.", evidence)]


def _left_behind(facts: WorkerFacts, decision: Decision) -> list[Statement]:
    found = []
    if is_unguarded(facts.worker_dir, decision):
        text = f"Its shim was gone when it ended: what was found of it has ended as well, and {HIDDEN}."
        found.append(Statement(text, [file_says(facts.worker_dir.exit, "unguarded")]))
    if decision.uncollected:
        names = first_of([shown(name) for name in decision.uncollected])
        text = f"Workers that it had started were still alive at its end: {names}."
        found.append(Statement(text, [file_says(facts.worker_dir.exit, "uncollected")]))
    for processes, what in (
        (decision.swept, "were stopped"),
        (decision.kept, "were left alive, as its start had asked"),
    ):
        if processes:
            text = f"{len(processes)} of its processes {what} when its first one had ended."
            found.append(Statement(text, [file_says(facts.worker_dir.exit, _commands(processes))]))
    return found


def _commands(processes: Sequence[object]) -> str:
    """Return the first command lines of some processes in a decision."""
    lines = [shown(one.get("command")) for one in processes if isinstance(one, dict)]
    return shown(first_of(lines, 3))


def _attempts(facts: WorkerFacts) -> list[Statement]:
    """Return how many attempts it had, if it may have had several."""
    retries, attempt = int(facts.number("retries") or 0), facts.view.attempt
    if not retries and attempt == 1:
        return []
    files = [facts.worker_dir.attempt_exit(number) for number in range(1, min(attempt, 20))]
    evidence = [file_says(one, evidence_fields(read_known(one), "reason", "exitCode", "signal")) for one in files]
    evidence.append(file_says(facts.worker_dir.spec, f"retries {retries}"))
    return [Statement(f"It ended in attempt {attempt}; {retries} more were allowed after the first.", evidence)]


def _breaker(facts: WorkerFacts) -> Part:
    """Return whether its agent is not started for a while, because of failures in a row."""
    tree = tree_of(facts.worker_dir.task)
    limits = known_limits(tree)
    if facts.view.status is not Status.FAILED or facts.view.driver is None or not limits.breaker_failures:
        return [], []
    from agentctl.domain.tree.breaker import breakers  # Few agents fail.
    from agentctl.supervision.account.ledger import Ledger
    from agentctl.supervision.worker.failures import failed_ago

    agent = facts.view.agent
    age = failed_ago(tree, agent)
    found = breakers(Ledger(tree).update().facts.ends()).get(agent) if age is not None else None
    left = found.left(limits, age) if found is not None else 0.0
    if found is None or not left:
        return [], []
    text = f"The agent {agent} has failed {found.failures} times in a row, and is not started for another {left:.0f} s."
    evidence = [file_says(tree.failures / agent, f"its last failure was {age or 0:.0f} s ago")]
    evidence.append(file_says(tree.task_file, f"breakerFailures {limits.breaker_failures}"))
    command = facts.command("doctor", "--close-breaker", agent)
    return [Statement(text, evidence)], [WayOut("once the cause is fixed, the agent may be started again", command)]


def _ways(facts: WorkerFacts) -> list[WayOut]:
    view, task = facts.view, facts.worker_dir.task
    if view.status is Status.COMPLETED:
        return [WayOut("nothing changes an end; its result", facts.command("result", facts.name))]
    ways = [WayOut("nothing changes an end; what it wrote", facts.command("logs", facts.name))]
    if view.driver is not None and refusal_of_resume(facts.worker_dir) is None:
        held = held_by(facts.worker_dir)
        if held is not None:
            ways.append(WayOut(f"it can be continued once nothing else holds it: {held.said}", TypedCommand(held.way)))
        ways.append(WayOut("an agent can be continued in its own session", facts.command("resume", facts.name)))
    awaited = awaited_in_vain(facts.worker_dir, fold(task)) if view.reason == Reason.DEPENDENCY else []
    if all(refusal_by_itself(task.worker(name)) is None for name in (*awaited, facts.name)):
        with_it = f" with {first_of(awaited)}, which it waited for" if awaited else ""
        way = f"the same work can be started once more{with_it}"
        ways.append(WayOut(way, facts.command("retry", *awaited, facts.name)))
    return ways
