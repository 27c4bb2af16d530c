"""How numbers look on a page: rounded, never cut off."""

import pytest

from jobs.templatetags.pitwall import significant


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [
        (120.99, 3, "121"),
        (528.93, 3, "529"),
        (1999.6, 4, "2,000"),
        (1234567.8, 4, "1,234,568"),
        (0.5166, 3, "0.517"),
        (99.96, 3, "100.0"),
        (12.0, 4, "12"),
        (0.00001234, 4, "1.23e-05"),
        (float("nan"), 4, "NaN"),
        (float("inf"), 4, "∞"),
    ],
)
def test_a_number_keeps_the_digits_that_matter(value: float, digits: int, text: str) -> None:
    assert significant(value, digits) == text
