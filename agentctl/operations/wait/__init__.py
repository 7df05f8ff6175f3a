"""How a command or a tool waits for workers, and to whom a waiting worker lends its place.

Doors: `waiting`, `keys`, `live_view`, `rounds`.
"""
