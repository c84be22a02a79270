"""The parts of a JSON Schema: where they stand, which data they describe, copies of them with what they refer to."""
