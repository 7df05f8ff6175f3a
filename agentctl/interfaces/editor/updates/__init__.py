"""What an editor is shown of a worker's activity, in the protocol's words and within bounds.

Doors: `client_bounds`, `contents`, `html_as_text`, `row_updates`, `tool_cards`.
"""
