"""Long texts: a pager that draws what is visible, over sources that read what was appended to a file.

Doors: `pager`, `sources`, `shown`, `needle`.
"""
