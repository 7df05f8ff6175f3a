"""When the workers of a task were at work, and which of them determined its end.

Doors: `critical_path`, `timeline`, `timescale`.
"""
