"""A session of an editor: what was chosen for it, its worker, and how that gets a prompt and is followed.

Doors: `client_servers`, `editor_session`, `held_workers`, `prompt_delivery`, `prompt_keys`, `session_history`,
`session_options`, `session_view`, `worker_watch`.
"""
