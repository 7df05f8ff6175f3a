"""How agent programs are taught to delegate, and a root to go on at boot: shown first, and how it is undone.

Doors: `installing`, `boot`.
"""
