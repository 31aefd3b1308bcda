"""Where the stages meet, and where work of the user's is run: in a worker process that can be killed.

Invariant: nothing here knows a concrete device; ``wiring`` hands it in. Cancel is one kill of a process group.
"""
