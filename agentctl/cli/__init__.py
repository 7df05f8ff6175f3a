"""Parse, call one operation, draw."""
