"""Texts and values as strangers write them: checked, bounded, found in, and made safe to show.

Doors: `containment`, `jsonschema`, `jsontext`, `nesting`, `numbers`, `patchtext`, `plaintext`,
`terminal_output`, `terminal_rows`, `textquery`, `versions`, `words_diff`.
"""
