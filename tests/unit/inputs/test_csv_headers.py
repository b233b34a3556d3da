"""The header of csv: a separator that is another one is named with the option that sets it."""

from __future__ import annotations

import pytest

from rankeval_spark.errors import InputError
from rankeval_spark.inputs.spark.opening import _checked_header


@pytest.mark.parametrize(
    ("header", "given", "option"),
    [("user_id;item_id", ",", '";"'), ("user_id\titem_id", ";", '"\\t"'), ("user_id,item_id", ";", '","')],
)
def test_one_column_with_a_separator_in_its_name(header: str, given: str, option: str) -> None:
    with pytest.raises(InputError) as caught:
        _checked_header([header], "recommendations.paths.als", "/logs", given)

    (fault,) = caught.value.faults
    assert fault.found == f"one column, {header!r}, in the header at /logs"
    assert fault.expected == f'columns separated by "{given}"'
    assert fault.fix == f"write inputs.recommendations.options: {{sep: {option}}}"


def test_other_headers_are_taken_as_they_are() -> None:
    assert _checked_header(["item_id"], "items", "/items", ",") == ("item_id",)
    assert _checked_header(["user_id", "a;b"], "segments", "/users", ",") == ("user_id", "a;b")
