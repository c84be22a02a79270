"""The attempts of one request: which failure is worth another one, when it leaves, with which key, at what rate.

`http_model` holds the loop; the others are its parts: the retry decision, the circuit breaker, keys, rate limits.
"""
