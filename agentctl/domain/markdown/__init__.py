"""What agents write as Markdown, in words: for places where nothing can be drawn, and without a library.

Doors: `markdown_words`.
"""
