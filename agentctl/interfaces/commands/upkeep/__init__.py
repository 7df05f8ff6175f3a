"""The commands for agentctl itself: damage, notices, trust.

Doors: `doctor`, `notify`, `trust`.
"""
