"""What the wires share to read a failure: the errors of services, what they refuse, and how long they want us to wait; pure."""

__all__ = ["refusals", "service_error"]  # for other rooms
