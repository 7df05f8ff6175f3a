"""What workers and people say to each other: questions and answers, messages, reports.

Doors: `asking`, `interacting`, `answerers`, `answering_link`, `messaging`, `reporting`, `outbox`, `outbox_entry`,
`hooking`.
"""
