"""Why a worker that has left the queue is as it is: its guardian, requests, questions, children, process and clock."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator

from agentctl.adapters import processes
from agentctl.adapters.clock import monotonic
from agentctl.adapters.files import read_known
from agentctl.adapters.processes import Life, identity_from
from agentctl.adapters.taskdir import WorkerDir
from agentctl.domain import events as ev
from agentctl.domain.answers import answers_in_words
from agentctl.domain.question import Question, in_one_line
from agentctl.domain.states import Status
from agentctl.domain.text.numbers import finite
from agentctl.domain.worker.worktime import covered_s, worked_from
from agentctl.errors import AgentctlError
from agentctl.operations.show.evidence import (
    PROCESS,
    Evidence,
    Part,
    Statement,
    TypedCommand,
    WayOut,
    changed_at,
    evidence_fields,
    file_says,
    lock_says,
    part_of,
    process_says,
    shown,
    typed,
)
from agentctl.operations.show.worker_facts import WorkerFacts
from agentctl.supervision.life.belonging import claim_of, record_in
from agentctl.supervision.life.judging import Condition, judge
from agentctl.supervision.life.process_tree import UnsupervisedTree
from agentctl.supervision.worker import cancel_request, pause_request
from agentctl.supervision.worker.kinship import children_of, worker_name
from agentctl.supervision.worker.questions import askers_of, open_questions, read_question, waiting_askers

#: So many questions, children and processes are shown one by one.
_MOST = 20


def live_part(facts: WorkerFacts) -> Part:
    """Return why a live worker is as it is, the most pressing first."""
    statements: list[Statement] = []
    ways: list[WayOut] = []
    is_guarded = facts.condition is Condition.SUPERVISED
    for side in _SIDES if is_guarded else (_guardian, *(one for one in _SIDES if one is not _guardian)):
        more, out = part_of(side, facts)
        statements += more
        ways += out
    return statements, ways


# -- who looks after it ------------------------------------------------------------------------------------------------


def _guardian(facts: WorkerFacts) -> Part:
    worker, condition = facts.worker_dir, facts.condition
    shim = identity_from(read_known(worker.shim))
    evidence = [lock_says(worker.shim), *process_says(shim, "its shim")]
    if condition is Condition.ELSEWHERE:
        text = "It is on another machine or in another pid namespace: what has become of it is unknown from here."
        return [Statement(text, list(_elsewhere(worker)))], [
            WayOut("look at it there, where it was started", facts.command("why", facts.name))
        ]
    if condition is Condition.UNSUPERVISED:
        text = (
            "Its shim is gone (it is unknown since when), but some of its processes are alive: its limits are no longer"
            " enforced, and nobody will see how it exits."
        )
        evidence += [*process_says(facts.leader(), "its first process"), *_living(facts)]
        return [Statement(text, evidence)], [
            WayOut("its own end, which a wait may see; otherwise it counts as lost", facts.command("wait", facts.name)),
            WayOut("a cancel stops all of it that can be found", facts.command("cancel", facts.name)),
        ]
    if condition is Condition.UNFOLLOWED:
        text = "It is on a node, and its shim here is gone: its state is unknown until another shim follows it."
        return [Statement(text, evidence)], [
            WayOut("any wait or cancel gives it another shim", facts.command("wait", facts.name))
        ]
    if shim is not None and (stat := processes.read_stat(shim.pid)) is not None and stat.state in "Tt":
        text = "A shim guards it, but somebody has stopped that shim: nothing is noticed until it continues."
        return [Statement(text, evidence)], [WayOut("continue the shim", TypedCommand(f"kill -CONT {shim.pid}"))]
    if condition is Condition.SUPERVISED:
        return [Statement("A live shim guards it.", evidence)], []
    return [Statement("It is unknown whether a shim guards it.", evidence)], []


def _elsewhere(worker: WorkerDir) -> Iterator[Evidence]:
    here = f"here: machine {processes.machine_id()}, pidNamespace {processes.pid_namespace()}"
    for path in (worker.process, worker.shim):
        value = read_known(path)
        identity = identity_from(value)
        if identity is not None and processes.life_of(identity) is Life.ELSEWHERE:
            yield file_says(path, f"{evidence_fields(value, 'machine', 'pidNamespace', 'pid')}; {here}")


def _living(facts: WorkerFacts) -> Iterator[Evidence]:
    claim = claim_of(facts.worker_dir, record_in(facts.process()))
    for member in UnsupervisedTree(claim).describe()[:_MOST]:
        yield Evidence(PROCESS, f"pid {member.get('pid')}", f"its own, alive: {member.get('command')}")


# -- what its disk refuses ---------------------------------------------------------------------------------------------


def _refused(facts: WorkerFacts) -> Part:
    """Return what waits in memory because the disk refuses it; its shim writes it down as soon as that is possible."""
    refused = facts.view.refused
    if not refused:
        return [], []
    problem, end = shown(refused.get("problem")), refused.get("end")
    text = f"Its disk refuses a request to it: {problem}."
    if isinstance(end, dict):
        how = evidence_fields(end, "status", "reason", "exitCode", "signal")
        text = f"It has ended ({how}), but its disk refuses that: {problem}."
    elif refused.get("start"):
        text = f"Its program has not begun, as its disk refuses its start: {problem}."
    evidence = [Evidence(PROCESS, "its shim", "holds in memory what the disk refuses, and writes it once it can")]
    return [Statement(text, evidence)], [WayOut("make the disk take files again; leave its shim alone until then")]


# -- a cancel, a pause -------------------------------------------------------------------------------------------------


def _cancel(facts: WorkerFacts) -> Part:
    worker = facts.worker_dir
    request = cancel_request.cancel_request_of(worker)
    if request is None:
        return [], []
    by = shown(request.get("by") or "an unknown caller")
    evidence = [file_says(worker.cancel, evidence_fields(request, "by", "at", "graceSeconds"))]
    evidence += facts.event(ev.CANCEL_REQUESTED)
    statements = [Statement(f"It is being cancelled, as {by} asked.", evidence)]
    children = _live_children(worker)
    if children:
        states = [one for child in children for one in _of_child(child)]
        statements.append(Statement("Its own stop begins when the workers that it started have ended.", states))
    if facts.view.survivors:
        pids = ", ".join(shown(one.get("pid")) for one in facts.view.survivors[:_MOST])
        text = f"Some of its processes have outlived SIGKILL: {pids}. The signal is sent again and again."
        statements.append(Statement(text, facts.event(ev.CANCEL_FAILED)))
    command = facts.command("cancel", facts.name, "--grace-seconds", "0")
    return statements, [WayOut("the end of its processes; a shorter pause between the signals", command)]


def _pause(facts: WorkerFacts) -> Part:
    if not facts.view.is_paused and not pause_request.is_wanted(facts.worker_dir):
        return [], []
    request = pause_request.pause_request_of(facts.worker_dir)
    by = shown(request.get("by") or "an unknown caller")
    says = evidence_fields(request, "by", "at") or "there is no such file: it is about to continue"
    evidence = [file_says(facts.worker_dir.pause, says), *facts.event(ev.PAUSED)]
    text = f"It is paused, by {by}: all of its processes are stopped, and its clock stands still."
    return [Statement(text, evidence)], [WayOut("let it continue", facts.command("unpause", facts.name))]


# -- questions ---------------------------------------------------------------------------------------------------------


def _questions(facts: WorkerFacts) -> Part:
    worker = facts.worker_dir
    names = open_questions(worker) if worker.interactions.exists() else []
    waiting = set(waiting_askers(worker, names))
    statements: list[Statement] = []
    ways: list[WayOut] = []
    for name in names[:_MOST]:
        question = read_question(worker, name)
        if question is not None:
            text, way = _of_question(facts, question, name in waiting)
            asker = process_says(next(iter(askers_of(worker, [name])), None), "its asker")
            place = file_says(worker.question(name), evidence_fields(question.to_json(), "kind", "askedAt"))
            statements.append(Statement(text, [place, lock_says(worker.asker_lock(name)), *asker]))
            ways.append(way)
    if waiting and statements and facts.view.status is Status.BLOCKED:
        statements[0] = statements[0]._replace(evidence=[*statements[0].evidence, *facts.event(ev.BLOCKED)])
    return statements, ways


def _of_question(facts: WorkerFacts, question: Question, is_waiting: bool) -> tuple[str, WayOut]:
    name, line = question.id, in_one_line(question)
    command = facts.command("answer", facts.name, "--id", name, "ANSWER")
    answers = answers_in_words(question, line)
    if question.idle:
        text = "It has answered, was kept, and waits for its next message."
        return text, WayOut("a message", facts.command("send", facts.name, "TEXT"))
    asked = shown(line.text)
    if is_waiting:
        text = f"It asks, and its asker waits for the answer to {name}: {asked}"
        return text, WayOut(f"an answer to {name} ({answers})", command)
    text = f"Its question {name} is open, but its asker has gone, so the worker is not blocked: {asked}"
    return text, WayOut(f"an answer to {name} ({answers}), for an asker that takes the question up again", command)


def _asked_below(facts: WorkerFacts) -> Part:
    statements, ways = [], []
    for asked in facts.asked_below[:_MOST]:
        task = facts.worker_dir.task.sibling(asked.task_id)
        file = task.worker(asked.instance).question(asked.id)
        text = f"Below it, {asked.instance} asks, and waits for the answer to {asked.id}: {shown(asked.text)}"
        statements.append(Statement(text, [file_says(file, evidence_fields(read_known(file), "kind", "askedAt"))]))
        command = typed(task, "answer", asked.instance, "--id", asked.id, "ANSWER", seen_from=task)
        ways.append(WayOut(f"an answer to {asked.id} of {asked.instance} ({asked.answers})", command))
    return statements, ways


# -- what it does ------------------------------------------------------------------------------------------------------


def _children(facts: WorkerFacts) -> Part:
    children = _live_children(facts.worker_dir)
    if not children or cancel_request.is_asked(facts.worker_dir):
        return [], []
    names = [worker_name(child, facts.worker_dir.task) for child in children]
    states = [one for child in children for one in _of_child(child)]
    if facts.view.awaits_children:
        text = f"Its own processes have ended, and it waits for the workers that it started: {', '.join(names)}."
        states = [*facts.event(ev.AWAITING_CHILDREN, "children"), *states]
    else:
        text = f"Workers that it started are alive: {', '.join(names)}."
    here = facts.worker_dir.task
    ways = [
        WayOut(f"the end of {child.instance}", typed(child.task, "why", child.instance, seen_from=here))
        for child in children[:3]
    ]
    return [Statement(text, states)], ways if facts.view.awaits_children else []


def _live_children(worker: WorkerDir) -> list[WorkerDir]:
    return [child for child in children_of(worker)[:_MOST] if not child.has_ended] if worker.children.exists() else []


def _of_child(child: WorkerDir) -> Iterator[Evidence]:
    try:
        yield file_says(child.path, f"{child.instance} is {judge(child).value}")
    except (AgentctlError, OSError) as error:
        yield file_says(child.path, f"it cannot be judged: {error}")


def _process(facts: WorkerFacts) -> Part:
    worker, view = facts.worker_dir, facts.view
    if view.runner is not None and not view.awaits_children:
        from agentctl.operations.show.node_reasons import node_part  # Few workers run on nodes.

        return node_part(facts)
    if facts.condition is not Condition.SUPERVISED or view.awaits_children or cancel_request.is_asked(worker):
        return [], []
    if view.pid is None and ev.RETRYING in facts.latest and view.status is not Status.QUEUED:
        aside = worker.attempt_exit(view.attempt - 1)
        evidence = [*facts.event(ev.RETRYING, "attempt", "reason", "exitCode", "delaySeconds")]
        evidence.append(file_says(aside, evidence_fields(read_known(aside), "status", "reason", "exitCode", "signal")))
        text = f"It has no process now: attempt {view.attempt - 1} has failed, and the next one begins after a pause."
        return [Statement(text, evidence)], [WayOut("the end of that pause, or a cancel", _cancelling(facts))]
    leader = facts.leader()
    evidence = process_says(leader, "its first process")
    evidence += facts.event(ev.RETRIED if view.attempt > 1 else ev.STARTED, "attempt", "pid")
    retries = int(facts.number("retries") or 0)
    which = f", in attempt {view.attempt} of at most {retries + 1}" if retries else ""
    is_alive = leader is not None and processes.life_of(leader) is Life.ALIVE
    runs = "Its program is stopped" if view.is_paused else "Its program runs"
    what = runs if is_alive else "Its first process has ended, and its shim finishes the rest"
    text = f"{what}{which}."
    return [Statement(text, evidence)], [
        WayOut("its own end", facts.command("wait", facts.name)),
        WayOut("a cancel", _cancelling(facts)),
    ]


def _cancelling(facts: WorkerFacts) -> TypedCommand:
    return facts.command("cancel", facts.name)


def _output(facts: WorkerFacts) -> Part:
    """Return when it last wrote something, which is what makes it stalled or not."""
    worker = facts.worker_dir
    evidence = [changed_at(path, "its output") for path in (worker.stdout, worker.stderr) if path.exists()]
    if facts.view.stall_seq is not None:  # These count against a stall as well.
        signs = ((worker.activity, "its activity"), (worker.progress, "its progress"), (worker.result, "its result"))
        evidence += [changed_at(path, what) for path, what in signs if path.exists()]
    last = max((one.at for one in evidence if one.at), default=None)
    limit = facts.number("stallSeconds")
    if facts.view.stall_seq is not None:
        since = last or "its start"
        text = (
            f"It is stalled: no output, activity or report of it for {limit or 0:.15g} s (stallSeconds), since {since}."
        )
        return [Statement(text, [*facts.event(ev.STALLED), *evidence])], [
            WayOut("any output or report; what it wrote last", facts.command("logs", facts.name))
        ]
    progress = facts.row["progress"]
    reported = "" if progress is None else evidence_fields(progress, "at", "percent", "text")
    evidence += [file_says(worker.progress, reported)] if reported else []
    text = f"It last wrote output at {last}." if last and _has_output(worker) else "It has written no output yet."
    return ([Statement(text, evidence)] if evidence else []), []


def _has_output(worker: WorkerDir) -> bool:
    with contextlib.suppress(OSError):
        return any(os.stat(path, follow_symlinks=False).st_size for path in (worker.stdout, worker.stderr))
    return False


def _time_left(facts: WorkerFacts) -> Part:
    """Return how much of its time limit is left."""
    limit = facts.number("timeoutSeconds")
    if limit is None or facts.condition is not Condition.SUPERVISED or facts.view.runner is not None:
        return [], []
    worker = facts.worker_dir
    since = finite(facts.process().get("since"))
    if since is None or facts.view.pid is None:
        return [], []
    with contextlib.suppress(AgentctlError, OSError):
        measured = read_known(worker.worked) or {key: facts.process().get(key) for key in ("boot", "since")}
        worked = worked_from(measured, processes.boot_id(), monotonic(), is_at_work=True)
        used = covered_s(span for span in worked.spans if span.end >= since and span.begin >= since - 1)
        path = worker.worked if worker.worked.exists() else worker.process
        left = max(0.0, limit - used)
        text = f"It has worked for {used:.0f} s of its time limit of {limit:.15g} s: {left:.0f} s are left."
        now = file_says(path, f"the clock of this attempt began at {since:.0f} (it is {monotonic():.0f} now)")
        return [Statement(text, [now, file_says(worker.spec, f"timeoutSeconds {limit:.15g}")])], []
    return [], []


_SIDES: tuple[Callable[[WorkerFacts], Part], ...] = (
    _refused, _cancel, _pause, _questions, _asked_below, _children, _guardian, _process, _output, _time_left,
)  # fmt: skip
