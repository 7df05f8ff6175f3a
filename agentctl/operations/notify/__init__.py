"""Where a person is told of what happens in a task, what was told, and what they are looking at.

Doors: `applied_targets`, `button_origins`, `senders`, `target_report`, `terminal_notices`.
"""
