"""Which modules a host loads only when it needs them: what it keeps open once its program is started.

`tests/unit/test_kept_code.py` compares this with what the code imports.
"""

from __future__ import annotations

#: Of a host, whatever its driver is.
HOST = {
    "agentctl.adapters": ("accepted", "definitions", "git", "known", "privaterows", "trust", "yamldoc"),
    "agentctl.adapters.taskyaml": ("hosts", "notifying", "running"),
    "agentctl.domain": ("hosts", "placement", "same_request", "worker_row"),
    "agentctl.domain.activity": ("rows",),
    "agentctl.domain.agent": ("agentspec", "granted_powers"),
    "agentctl.domain.markdown": ("inline_marks", "markdown_words", "text_blocks"),
    "agentctl.domain.notice": ("notices", "notice_text", "quiet", "targets"),
    "agentctl.domain.text": ("terminal_output",),
    "agentctl.domain.tree": ("breaker", "graph", "treefacts"),
    "agentctl.domain.worker": ("projection", "reports", "tries", "worktime"),
    "agentctl.drivers": ("values",),
    "agentctl.drivers.acp": ("denials", "known", "program"),
    "agentctl.drivers.codex": ("rules",),
    "agentctl.drivers.llm": ("dialogue", "opening", "providers"),
    "agentctl.operations.show": ("further_runs", "whole_texts"),
    "agentctl.operations.start": (
        "agent_server", "continuation", "inherited", "key_records", "obeyed", "options", "permissions", "prepared",
        "request_keys", "requests",
    ),
    "agentctl.operations.talk": ("outbox_entry", "reporting"),
    "agentctl.operations.trust": ("definitions",),
    "agentctl.operations.where": (
        "folding", "model_providers", "observed", "personal_config", "project_top", "removal_order",
        "shared_roots", "tries_in_log",
    ),
    "agentctl.operations.worktree": ("making", "remaking"),
    "agentctl.supervision.account": ("ledger",),
    "agentctl.supervision.dispatch": ("waking",),
    "agentctl.supervision.worker": ("failures", "output_at_end", "relative_paths", "worktimes"),
    "agentctl.supervision.worktree": ("aside", "record", "recorded", "turns"),
    "agentctl.worker_programs.agent_host.program": ("own_home", "program_query"),
}  # fmt: skip
