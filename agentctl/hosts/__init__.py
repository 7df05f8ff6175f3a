"""Other machines: the same commands there, over the user's own ssh, with nothing installed there but agentctl.

`relaying` carries out one command on a host, `asking` asks several at once; `far_end` is what ssh starts over there.
"""
