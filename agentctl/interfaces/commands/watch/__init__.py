"""The commands that show a person all workers: once, or as they change, as lines, as a table, as a screen.

Doors: `status`, `watch`.
"""
