"""How a worker is made to end, whatever its condition, with the workers that it has started.

Doors: `requesting`, `undertaker`, `offspring`, `escalating`.
"""
