"""One HTTP exchange: bytes out, bytes in. The only room that knows the HTTP client.

It keeps connections for each event loop, holds time limits and a size cap, and turns every foreign exception into one of
ours. Nothing is tried again here.
"""
