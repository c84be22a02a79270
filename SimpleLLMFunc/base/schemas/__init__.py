"""From a type to what a model is told of it: output modes, the strict subset of JSON Schema, an example."""
