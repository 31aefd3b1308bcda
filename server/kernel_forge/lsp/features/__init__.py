"""One module per family of requests; each has ``register(server)``."""
