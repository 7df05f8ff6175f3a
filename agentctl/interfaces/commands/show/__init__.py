"""The commands that show what the workers do, have done and have left.

Doors: `activity`, `join`, `list`, `logs`, `result`, `search`, `timeline`, `tree`, `usage`, `why`, `worktrees`.
"""
