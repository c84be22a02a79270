"""What a request may take and has taken: budgets, prices, token estimates, and the deadline that a whole call shares."""

from SimpleLLMFunc.interface.spending.budget import (
    Charge,
    Spent,
    budget,
    charge_fetch,
    charge_lost,
    charge_question,
    charge_try,
    counting_tries,
    is_charged,
    is_limited,
    paid_already,
    reserve,
    scopes_around,
    strictest_time_limit,
)
from SimpleLLMFunc.interface.spending.cost import answering_models, load_prices, price_of, priced, require_prices
from SimpleLLMFunc.interface.spending.deadline import Deadline, current_deadline, deadline_scope
from SimpleLLMFunc.interface.spending.tokens import count_request, estimate_text_tokens, estimate_tokens

__all__ = [
    "Charge", "Deadline", "Spent", "answering_models", "budget", "charge_fetch", "charge_lost", "charge_question",
    "charge_try", "count_request", "counting_tries", "current_deadline", "deadline_scope", "estimate_text_tokens",
    "estimate_tokens", "is_charged", "is_limited", "load_prices", "paid_already", "price_of", "priced",
    "require_prices", "reserve", "scopes_around", "strictest_time_limit",
]  # fmt: skip
