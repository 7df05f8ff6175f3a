"""How a command or a tool waits for workers, and who works in its place meanwhile.

Doors: `waiting`, `keys`, `live_view`, `rounds`.
"""
