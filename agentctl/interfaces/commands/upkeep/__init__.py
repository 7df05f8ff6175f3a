"""The commands for agentctl itself: damage, notices, trust, what is over.

Doors: `archive`, `doctor`, `notify`, `rm`, `trust`.
"""
