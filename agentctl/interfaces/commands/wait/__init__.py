"""The commands that wait for workers, and print their ends.

Doors: `wait`, `wait_any`.
"""
