"""Which modules a shim, an undertaker and a waker load only when they need them: what they keep open from their start.

Most of them are never needed by most, and memory is what there is least of where thousands of shims run. A sender loads
all at its start. `tests/unit/test_kept_code.py` compares this with what the code imports.
"""

from __future__ import annotations

#: Of a shim, from before its first worker.
SHIM = {
    "agentctl": ("encoding",),
    "agentctl.adapters": ("descent", "detached", "git", "searchpath", "tails"),
    "agentctl.adapters.taskyaml": ("roster",),
    "agentctl.domain": ("placement",),
    "agentctl.domain.state_tables": ("attempt_state",),
    "agentctl.domain.text": ("nesting", "plaintext", "terminal_output"),
    "agentctl.domain.tree": ("breaker", "budget", "treefacts", "windows"),
    "agentctl.domain.worker": ("ends", "escalation", "last_output", "projection", "removals", "tries", "worktime"),
    "agentctl.shim": ("openquestions", "outcome", "parking", "patching", "placed", "waiting", "watching"),
    "agentctl.supervision.account": ("accounts", "holds", "ledger", "waiters"),
    "agentctl.supervision.dispatch": (
        "ahead_places", "dispatch", "eligibility", "idle_places", "launching", "slots", "standby", "stop_order",
        "succession", "taking_over", "waking",
    ),
    "agentctl.supervision.life": ("judging", "process_tree", "strangers"),
    "agentctl.supervision.notify": ("switch",),
    "agentctl.supervision.queue": ("queue_hold",),
    "agentctl.supervision.stop": ("burial", "escalating", "requesting"),
    "agentctl.supervision.worker": (
        "driver_end", "failures", "inboxes", "mount_points", "output_at_end", "questions", "worktimes",
    ),
    "agentctl.supervision.worktree": ("aside", "recorded"),
}  # fmt: skip
#: Of an undertaker.
UNDERTAKER = {
    "agentctl.adapters": ("searchpath", "tails"),
    "agentctl.domain.text": ("nesting", "terminal_output"),
    "agentctl.domain.tree": ("breaker", "windows"),
    "agentctl.domain.worker": ("last_output",),
    "agentctl.supervision.account": ("holds",),
    "agentctl.supervision.dispatch": ("standby", "taking_over", "waking"),
    "agentctl.supervision.stop": ("requesting",),
    "agentctl.supervision.worker": ("failures", "inboxes", "mount_points", "output_at_end", "questions"),
}  # fmt: skip
#: Of a waker.
WAKER = {
    "agentctl.adapters": ("searchpath", "tails"),
    "agentctl.domain.text": ("nesting", "terminal_output"),
    "agentctl.domain.tree": ("breaker", "windows"),
    "agentctl.domain.worker": ("last_output",),
    "agentctl.supervision.account": ("holds",),
    "agentctl.supervision.dispatch": ("waking",),
    "agentctl.supervision.worker": ("failures", "mount_points", "output_at_end"),
}  # fmt: skip
