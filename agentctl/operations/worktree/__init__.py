"""A worker's own git worktree: how it is made, what was changed in it, and when it may be removed.

Doors: `making`, `changes`, `diff`, `remaking`, `removing`.
"""
