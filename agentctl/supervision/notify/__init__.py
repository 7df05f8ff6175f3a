"""Tells a person what happens in a tree of tasks: each notice once to each target, and never in the way of the work.

Doors: `switch`, `armed`, `sender`, `book`, `gathering`, `delivering`, `looking`, `served`.
"""
