"""Envelopes, for code that extends one. Those that the server puts around handlers are its own."""
