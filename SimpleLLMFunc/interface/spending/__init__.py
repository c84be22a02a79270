"""What a request may take and has taken: budgets, prices, token estimates, and the deadline that a whole call shares."""
