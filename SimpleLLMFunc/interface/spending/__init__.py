"""What a request may take and has taken: budgets, prices, token estimates, and the deadline that a whole call shares."""

from SimpleLLMFunc.interface.spending.budget import (
    Charge,
    Spent,
    budget,
    charge_fetch,
    charge_lost,
    charge_question,
    charge_try,
    charge_unkept,
    counting_tries,
    is_limited,
    paid_already,
    reserve,
    scopes_around,
    strictest_time_limit,
    time_limits,
)
from SimpleLLMFunc.interface.spending.cost import import_prices, price_of, unpriced
from SimpleLLMFunc.interface.spending.deadline import Deadline, current_deadline, deadline_scope
from SimpleLLMFunc.interface.spending.tokens import count_request, estimate_text_tokens, estimate_tokens

__all__ = [
    "Charge", "Deadline", "Spent", "budget", "charge_fetch", "charge_lost", "charge_question", "charge_try",
    "charge_unkept", "count_request", "counting_tries", "current_deadline", "deadline_scope", "estimate_text_tokens",
    "estimate_tokens", "import_prices", "is_limited", "paid_already", "price_of", "reserve",
    "scopes_around", "strictest_time_limit", "time_limits", "unpriced",
]  # fmt: skip
