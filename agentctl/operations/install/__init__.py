"""How agent programs are taught to delegate: changes to their own files, shown first, and how they are undone.

Doors: `installing`.
"""
