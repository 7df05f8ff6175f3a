"""Other machines: the same commands there, over the user's own ssh, with nothing installed there but agentctl.

`remote_command` carries out one command on a host, `hosts_asked` asks several at once; `far_end` is what ssh starts
over there.

Words:

- `hello`: what a far end says first
- `frame`: a piece of what a far end and this side say to each other
- `beat`: a frame that says only that somebody is there
- `offer`: an end that a host's wait is about to give out
- `declined`: of an offer, that it will not be printed
"""
