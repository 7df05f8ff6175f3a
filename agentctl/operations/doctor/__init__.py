"""What is wrong with a root, its machine or the nodes of an engine, and the repair of what is safe to repair.

Doors: `examining`, `gates`, `nodes`, `conclusion`.
"""
