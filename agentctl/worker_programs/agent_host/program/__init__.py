"""The agent program under its host: its environment, its settings, its start, its processes.

Doors: `own_home`, `program_process`, `program_start`.
"""
