"""Words about time, in Chinese and English: which stretch of local time they mean, and the values that a slot takes for it."""
