"""The dispatch line: what a person writes becomes a worker, with history, completion and their editor.

Doors: `dispatch_line`, `line_editor`.
"""
