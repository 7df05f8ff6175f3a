"""What a worker has changed in its git worktree, found out without running what lies there.

Doors: `changes`, `recorded`.
"""
