"""Requests to a model and its answers, in the forms of several providers.

Doors: `answer`, `answering_model`, `provider_key`, `refusals`, `request`.
"""
