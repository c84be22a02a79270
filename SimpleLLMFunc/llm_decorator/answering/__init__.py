"""Around a pipeline: several votes, plain code before or after the model, a stronger model where the votes abstain."""

__all__ = ["answering", "plain_code", "votes", "voting"]
