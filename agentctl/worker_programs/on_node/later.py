"""Which modules a stand-in and a post load only when they need them: what they keep open from their start.

`tests/unit/test_kept_code.py` compares this with what the code imports.
"""

from __future__ import annotations

#: Of a stand-in.
STAND_IN = {
    "agentctl": ("encoding",),
    "agentctl.adapters": ("detached", "document", "origin", "searchpath", "watch", "yamldoc"),
    "agentctl.adapters.taskyaml": ("notifying", "reader", "roster", "running"),
    "agentctl.domain": ("answers", "question"),
    "agentctl.domain.agent": ("permissions", "shell_line", "telling_argument"),
    "agentctl.domain.markdown": ("inline_marks", "markdown_words", "text_blocks"),
    "agentctl.domain.notice": ("notices", "notice_text", "quiet", "targets"),
    "agentctl.domain.text": ("containment", "nesting", "plaintext", "terminal_output"),
    "agentctl.domain.tree": ("breaker", "windows"),
    "agentctl.domain.worker": ("ends", "last_output", "removals", "tries"),
    "agentctl.operations.talk": ("asking", "outbox"),
    "agentctl.operations.where": ("calling", "lineage", "ownership", "task_config"),
    "agentctl.runners": ("loopback", "slurm"),
    "agentctl.supervision.account": ("accounts", "holds", "waiters"),
    "agentctl.supervision.dispatch": (
        "ahead_places", "dispatch", "eligibility", "handshake", "idle_places", "launching", "slots", "standby",
        "stop_order", "waking",
    ),
    "agentctl.supervision.life": ("judging", "process_tree"),
    "agentctl.supervision.queue": ("queue_hold", "tickets"),
    "agentctl.supervision.worker": ("driver_end", "failures", "mount_points", "output_at_end"),
}  # fmt: skip
#: Of a post.
POST = {
    "agentctl": ("parts",),
    "agentctl.adapters": (
        "accepted", "definitions", "extras", "mounts", "privaterows", "trust", "uvtool", "versions", "yamldoc",
    ),
    "agentctl.adapters.taskyaml": ("hosts", "notifying", "running"),
    "agentctl.domain": ("hosts", "worker_row"),
    "agentctl.domain.activity": ("rows",),
    "agentctl.domain.agent": ("agentspec", "driver_names", "granted_powers", "own_tools"),
    "agentctl.domain.markdown": ("inline_marks", "markdown_words", "text_blocks"),
    "agentctl.domain.notice": ("notices", "notice_text", "quiet", "targets"),
    "agentctl.domain.text": ("jsonschema", "terminal_output", "versions"),
    "agentctl.domain.tree": ("breaker", "graph", "windows"),
    "agentctl.domain.worker": ("last_output", "removals", "tries"),
    "agentctl.drivers": ("complaints", "dialogue", "marks", "order", "registry", "values"),
    "agentctl.drivers.acp": ("denials", "known", "program"),
    "agentctl.drivers.llm": ("dialogue", "opening", "providers"),
    "agentctl.operations.start": (
        "agent_order", "agent_server", "answer_schema", "inherited", "model_provider", "obeyed", "options",
        "own_program", "permissions", "prepared", "requests", "tested", "walls",
    ),
    "agentctl.operations.talk": ("outbox",),
    "agentctl.operations.trust": ("definitions",),
    "agentctl.operations.where": (
        "locating", "model_providers", "names_in_log", "observed", "project_top", "removal_order", "shared_roots",
    ),
    "agentctl.operations.worktree": ("making",),
    "agentctl.runners": ("loopback", "runner", "slurm"),
    "agentctl.supervision.account": ("holds",),
    "agentctl.supervision.dispatch": ("waking",),
    "agentctl.supervision.worker": ("failures", "mount_points", "output_at_end"),
}  # fmt: skip
