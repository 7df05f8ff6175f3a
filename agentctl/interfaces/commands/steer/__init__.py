"""The commands that speak with workers, pause them and stop them.

Doors: `cancel`, `interact`, `open_questions`, `pause`, `report`, `send`.
"""
