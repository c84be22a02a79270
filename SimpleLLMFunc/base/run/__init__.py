"""One run: its state and its record, who observes it, what limits it, how its answers are reviewed, and what is left of it."""
