"""`f.improve`: candidates are tried on one part of the cases, and the best of them is tested on another.

`improved` is what the view of a decorated function calls.
"""

from SimpleLLMFunc.improve.gepa import Gepa
from SimpleLLMFunc.improve.proposals import Proposer, Reflective, Seen, Task, Wording
from SimpleLLMFunc.improve.search import improved
from SimpleLLMFunc.llm_decorator.improving import Change, Improved

__all__ = ["Change", "Gepa", "Improved", "Proposer", "Reflective", "Seen", "Task", "Wording", "improved"]
