"""The screens of one worker, tab by tab, and of the output of several.

Doors: `worker_screen`, `logs_screen`, `tab_row`.
"""
