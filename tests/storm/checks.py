"""What must hold once a storm is over, whatever it was."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any

import psutil

from tests.processes import has_ended, words_of
from tests.storm.pids import Pids
from tests.storm.world import Told, World
from tests.support import run

ENDS = ("agent.completed", "agent.failed", "agent.cancelled")
#: Codes of a command that has done what it can, or said why not; negative: it was killed.
_CODES = {0, 1, 3, 4, 5, 6, 7, -9}
_FRAME = re.compile(r'^  File "(.*)", line \d+, in ', re.MULTILINE)


def wrong(world: World, pids: Pids) -> list[str]:
    """Return all that does not hold."""
    return [
        *_commands(world.told), *_log(world), *_ends(world), *_ledger(world), *_tickets(world), *_doctor(),
        *(f"a stranger was signalled: {one}" for one in pids.signalled()),
    ]  # fmt: skip


def _commands(told: list[Told]) -> list[str]:
    bad = [one for one in told if one.code not in _CODES or "bug in agentctl" in one.err or is_unexplained(one.err)]
    return [f"a command: {one}" for one in bad]


def is_unexplained(err: str) -> bool:
    """Return whether a traceback is in this.

    One without a frame of ours is none: in an upgrade Python may find the folder of agentctl, and not the first file in
    it, and nothing of ours is there yet that could say so.
    """
    frames = _FRAME.findall(err)
    return "Traceback" in err and not (frames and all(frame.startswith("<frozen ") for frame in frames))


def _log(world: World) -> list[str]:
    found = []
    lines = (world.task.path / "events.jsonl").read_bytes().split(b"\n")
    if lines[-1]:
        found.append(f"the log ends in the middle of a line: {lines[-1]!r}")
    for number, line in enumerate(lines[:-1], 1):
        try:
            json.loads(line)
        except ValueError:
            found.append(f"line {number} of the log is no JSON: {line!r}")
    return found


def accepted(world: World) -> set[str]:
    """Return the workers whose start was promised."""
    found: set[str] = set()
    for one in world.told:
        if one.argv[0] == "spawn" and one.code == 0 and one.out:
            told = json.loads(one.out)
            found.update(row["agentInstance"] for row in (told if isinstance(told, list) else [told]))
    return found


def _ends(world: World) -> list[str]:
    rows: dict[str, dict[str, Any]] = {row["agentInstance"]: row for row in run("list", "--json").json}
    events: dict[str, list[dict[str, Any]]] = {}
    for event in world.task.events(*ENDS, "agent.started"):
        events.setdefault(event["agentInstance"], []).append(event)
    found = [f"{name} was accepted, and is not listed" for name in sorted(accepted(world) - rows.keys())]
    for name, row in rows.items():
        decision, mine = world.task.exit(name), events.get(name, [])
        ends = [one["type"] for one in mine if one["type"] != "agent.started"]
        if decision is None:
            found.append(f"{name} has no end: {row}")
        elif ends != [f"agent.{decision['status']}"] or row["status"] != decision["status"]:
            found.append(f"{name}: its file says {decision}, the log {ends}, list {row['status']}")
        elif decision["status"] == "cancelled" and name not in world.cancelled:
            found.append(f"{name} was cancelled by nobody: {decision}")
        if len(mine) - len(ends) > 1:
            found.append(f"{name} was started {len(mine) - len(ends)} times: {mine}")
    lost = [row["agentInstance"] for row in rows.values() if row["reason"] == "lost"]
    if len(lost) > world.kills["lost"]:
        found.append(f"{len(lost)} are lost, although only {world.kills['lost']} shims were killed: {lost}")
    return found


def _ledger(world: World) -> list[str]:
    """Check what the workers have written themselves."""
    file = world.ledger / "ledger"
    lines = [line.split() for line in file.read_text(encoding="ascii").splitlines()] if file.exists() else []
    found = [f"the cap was exceeded: {name}" for name, what, *_ in lines if what == "over"]
    starts = Counter(name for name, what, *_ in lines if what == "start")
    found += [f"{name} ran {times} times" for name, times in starts.items() if times > 1 and name[0] in "wb"]
    listed = {row["agentInstance"] for row in run("list", "--json").json}
    found += [f"{name} ran, and is not listed" for name in starts if name not in listed]
    for name, what, *code in lines:
        decision = world.task.exit(name) or {}
        if what == "exit" and decision.get("status") in ("completed", "failed"):
            if world.kills[decision.get("reason")]:  # It was killed on its last step.
                continue
            if decision.get("exitCode") != int(code[0]):
                found.append(f"{name} has ended with {code[0]}, and its end says {decision}")
    ended = {name for name, what, *_ in lines if what == "exit"}
    for name in listed:
        decision = world.task.exit(name) or {}
        if name[0] in "wb" and decision.get("status") == "completed" and name not in ended:
            found.append(f"{name} has not come to its end, which says {decision}")
        if name in starts and decision.get("reason") == "not_started":
            found.append(f"{name} was started, and its end says {decision}")
    return found


def _tickets(world: World) -> list[str]:
    return [f"tickets are left: {world.task.tickets()}"] if world.task.tickets() else []


def reported(world: World) -> list[str]:
    """Return what shims and commands have reported as a bug; `doctor --fix` puts aside what a shim has noted."""
    logs = [*world.task.path.glob("shim.log*"), *(world.folder / "home" / ".local/state/agentctl").glob("bugs.log*")]
    texts = {file.name: file.read_text(encoding="utf-8", errors="replace") for file in sorted(logs)}
    return [f"{name}: {text}" for name, text in texts.items() if "Traceback" in text]


def _doctor() -> list[str]:
    fixed = run("doctor", "--fix", check=False, timeout=120)
    again = run("doctor", check=False, timeout=60)
    return [] if again.code == 0 else [f"doctor is not clean after --fix, which said {fixed}\nthen: {again}"]


def left_processes(world: World) -> list[str]:
    """Return the processes that are left of the task."""
    lines = {process: words_of(process) for process in psutil.process_iter()}
    mine = {one: words for one, words in lines.items() if any(str(world.folder) in word for word in words)}
    return [f"{process.pid} {words}" for process, words in mine.items() if not has_ended(process)]


def freed_accounts() -> list[str]:
    """Return the accounts that somebody in the queue waits for."""
    waits = (row["awaitsAccount"] for row in run("list", "--json").json)
    return sorted({told["account"] for told in waits if told})


def unended() -> list[str]:
    """Return who has not ended yet, and what they do."""
    run("wait-all", "--timeout-seconds", "1", check=False)  # Who waits keeps a queue going whose shims are all dead.
    return [
        f"{row['agentInstance']} {row['status']} {row['health']}" for row in run("list", "--json").json
        if row["status"] not in ("completed", "failed", "cancelled")
    ]  # fmt: skip
