"""The reusable core: the one loop, typed answers, messages; knows nothing of decorators."""
