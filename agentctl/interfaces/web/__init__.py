"""The server of `agentctl serve`: what the commands do, over HTTP, and a page on top of it. Needs the extra `serve`.

Words:

- `code`: what is behind the `#` of a link to the page: lets a page in once, within minutes
- `session`: a page that is let in, in the memory of one run of the server
- `start`: the name of one run of the server; it is not a secret
- `board`: what all clients of a server see: the fleet, and the stream of events, each encoded once
- `stream`: the events of all tasks, each once; for the page with the state of the fleet
- `cursor`, `positions`: how far a client has come, as a text; the number of the last event that it had of each task
"""
