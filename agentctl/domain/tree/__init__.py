"""What holds for a whole tree of tasks: its limits, its use, its dependencies.

Doors: `breaker`, `budget`, `graph`, `limits`, `treefacts`, `windows`.
"""
