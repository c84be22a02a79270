"""From a JSON value to a value of the wanted type, step by step, each with a receipt; never a guess between two readings."""
