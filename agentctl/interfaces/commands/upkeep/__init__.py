"""The commands for the house itself: damage, notices, trust.

Doors: `doctor`, `notify`, `trust`.
"""
