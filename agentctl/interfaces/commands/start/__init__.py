"""The commands that make tasks and start workers.

Doors: `agents`, `demo`, `resume`, `retry`, `spawn`, `subtask`, `tasks`.
"""
