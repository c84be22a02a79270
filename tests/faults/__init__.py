"""Servers that misbehave byte by byte, and what the library must make of them."""
