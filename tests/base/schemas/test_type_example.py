from datetime import date
from uuid import UUID

import pytest
from pydantic import TypeAdapter

from SimpleLLMFunc.base.type_resolve import generate_example_object


@pytest.mark.parametrize("kind", [dict[date, int], dict[UUID, str], dict[str, int]])
def test_the_keys_of_a_mapping_have_their_format(kind):
    example = generate_example_object(kind)
    assert example
    TypeAdapter(kind).validate_python(example)
