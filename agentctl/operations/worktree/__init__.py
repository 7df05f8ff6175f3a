"""A worker's own git worktree: how it is made, what was changed in it, and when it may go.

Doors: `making`, `changes`.
"""
