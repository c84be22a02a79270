"""Step 1: arguments are bound as Python binds them."""

import inspect
import itertools

import pytest

from SimpleLLMFunc.errors import SignatureError
from SimpleLLMFunc.llm_decorator.steps.common.signature import bind_function_arguments, extract_function_metadata


def nothing(): ...
def ordinary(a, b=1, *, c=2): ...
def by_position(a, /, b=3, *, c): ...
def variadic(a, /, b, *args, c, **kwargs): ...
def rest_only(*args): ...


@pytest.mark.parametrize("function", [nothing, ordinary, by_position, variadic, rest_only])
def test_arguments_are_bound_as_python_binds_them(function):
    signature = inspect.signature(function)
    names = [named for size in range(4) for named in itertools.combinations("abcd", size)]
    for count, named in itertools.product(range(4), names):
        args, kwargs = tuple(range(count)), {name: name.upper() for name in reversed(named)}
        try:
            expected = signature.bind(*args, **kwargs)
        except TypeError as error:
            with pytest.raises(SignatureError) as caught:
                bind_function_arguments(signature, args, kwargs)
            assert str(error) in str(caught.value)
            continue
        expected.apply_defaults()
        bound = bind_function_arguments(signature, args, kwargs)
        assert list(bound.arguments.items()) == list(expected.arguments.items())
        assert (bound.args, bound.kwargs) == (expected.args, expected.kwargs)


@pytest.mark.parametrize("written", ["int.nope", "[][0]", "1 +", "nowhere.at_all", "int[str]"])
def test_an_annotation_that_cannot_be_read_is_an_error_of_ours(written):
    def strange(a): ...

    strange.__annotations__ = {"a": written}
    with pytest.raises(SignatureError, match=r"strange: an annotation"):
        extract_function_metadata(strange)
