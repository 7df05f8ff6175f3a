"""How agent programs are taught to delegate: changes in their own files, shown first, and undone.

Doors: `installing`.
"""
