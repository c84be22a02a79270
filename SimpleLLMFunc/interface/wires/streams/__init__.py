"""What the wires share to read a stream: server-sent events, the pieces put together, reasoning in the text; pure."""
