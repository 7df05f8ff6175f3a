"""The commands that other programs call, and those that serve or teach other programs.

Doors: `acp`, `hook`, `install`, `mcp`, `serve`.
"""
