"""Long texts: a pager that draws what is visible, over sources that read what was appended to a file.

Words:

- `pager`: the widget that shows one long text of a worker, of which it draws only what is visible
- `source`: makes the paragraphs of such a text, one at a time, from a file that may grow
- `divider`: a line that a person draws across such a text: all that comes later is below it
- `needle`: what is searched for in it; a line with it is a hit

Doors: `pager`, `sources`, `shown`, `needle`.
"""
