"""The output of workers as it is shown: rows, in pages from any place, and what is found in them.

Doors: `row_pages`, `finding`.
"""
