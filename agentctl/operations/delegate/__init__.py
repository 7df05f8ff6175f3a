"""Work handed to other agents and what came of it: sub-agents, sub-tasks, continued agents.

Doors: `delegating`, `subtasks`, `resuming`.
"""
