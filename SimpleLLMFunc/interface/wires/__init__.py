"""What goes over the wire and how it is read, pure: no sockets, no clock, no retries.

A protocol is a module here; what protocols share stands beside them: server-sent events, the assembly of streamed deltas,
reasoning in the text, the errors of services.
"""
