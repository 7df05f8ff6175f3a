"""Tells a person what happens in a tree of tasks: each notice once to each target, and never in the way of the work.

Words:

- `book`: which notice was told to which target: `notices.jsonl` of the root task
- `switch`: the file in memory that exists while a person is to be told of a tree of tasks

Doors: `armed`, `book`, `delivery`, `gaze`, `sender`, `switch`, `tree_notices`.
"""
