"""From the text of a model to a value, or to the reasons why not: finding JSON, reading it tolerantly, growing values, quotes."""
