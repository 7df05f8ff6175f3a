"""The command that follows workers for a person, as lines, as a table, as a screen.

Doors: `watch`.
"""
