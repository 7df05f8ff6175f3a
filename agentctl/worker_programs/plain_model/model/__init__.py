"""Requests to a model and its answers, in the forms of several providers.

Doors: `answer`, `model_call`, `provider_key`, `refusals`, `request`.
"""
