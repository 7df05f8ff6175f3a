"""What a worker has changed in its git worktree, found out without running anything that lies there.

Doors: `aside`, `changes`, `record`, `recorded`, `submodules`, `turns`.
"""
