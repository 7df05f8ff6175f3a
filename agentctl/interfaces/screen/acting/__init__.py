"""What a person does to a worker: the peek at its question, answers and commands, what is asked back, programs outside.

Doors: `worker_keys`, `peek`, `commands`, `prompts`, `outside`.
"""
