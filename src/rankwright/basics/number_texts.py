"""Numbers as text: measures, signed differences, intervals and p-values."""

from __future__ import annotations

from math import isfinite, isinf, isnan

MISSING = "\N{EN DASH}"
DIGITS = 4  # of a measure, behind the point


def format_number(value: float, digits: int = DIGITS) -> str:
    """Return a number as text with ``digits`` decimals, or a dash if it is NaN.

    >>> format_number(0.12345), format_number(float("nan")), format_number(float("-inf"))
    ('0.1235', '–', '-∞')
    """
    if isnan(value):
        return MISSING
    if isinf(value):
        return "∞" if value > 0 else "-∞"
    return f"{value:.{digits}f}"


def format_signed(value: float, digits: int = DIGITS) -> str:
    """Return a number as text with its sign, + or -; a number that rounds to zero has no sign.

    >>> format_signed(0.25, 2), format_signed(-0.25, 2), format_signed(-0.001, 2)
    ('+0.25', '-0.25', '0.00')
    """
    if not isfinite(value):
        return format_number(value)
    text = f"{value:+.{digits}f}"
    return text[1:] if float(text) == 0 else text


def format_interval(low: float, high: float, digits: int = DIGITS) -> str:
    """Return an interval as text, such as [0.10, 0.25], or a dash if an end is NaN.

    >>> format_interval(0.1, 0.25, 2), format_interval(float("nan"), float("nan"))
    ('[0.10, 0.25]', '–')
    """
    return MISSING if isnan(low) or isnan(high) else f"[{format_number(low, digits)}, {format_number(high, digits)}]"


def format_p(p: float) -> str:
    """Return a p-value as text: three decimals, four near 0.05, or "<0.001".

    >>> format_p(0.0214), format_p(0.0497), format_p(0.00002), format_p(0.9999), format_p(float("nan"))
    ('0.021', '0.0497', '<0.001', '1.000', '–')
    """
    return "<0.001" if p < 0.001 else format_number(p, 4 if 0.0495 <= p < 0.0505 else 3)


def format_p_equals(p: float) -> str:
    """Return a p-value as text for a sentence, such as "p = 0.021" or "p < 0.001".

    >>> format_p_equals(0.0214), format_p_equals(0.00002)
    ('p = 0.021', 'p < 0.001')
    """
    return f"p {format_p(p).replace('<', '< ')}" if p < 0.001 else f"p = {format_p(p)}"
