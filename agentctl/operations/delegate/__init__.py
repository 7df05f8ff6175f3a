"""Work handed to other agents, and its results: sub-agents, sub-tasks, continued agents.

Doors: `delegating`, `subtasks`, `resuming`, `recovering`, `telling`.
"""
