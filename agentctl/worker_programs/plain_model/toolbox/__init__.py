"""The tools of a plain model, and how each call of them is carried out.

Doors: `own_delegation`, `reachable_paths`, `tool_calls`, `tool_errors`, `toolset`.
"""
