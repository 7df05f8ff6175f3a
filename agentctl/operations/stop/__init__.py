"""How workers are cancelled or paused, and how that is proven.

Doors: `cancelling`, `pausing`.
"""
