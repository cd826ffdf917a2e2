"""One form of what is written in several: numbers, names of objects, and names of fields."""

from __future__ import annotations

import re
from decimal import Decimal

__all__ = ["plain_number", "plain_object", "spellings"]

# Possessive: of a long text that is none, a search would try each place at which it may be cut.
_NUMBER = re.compile(r"[-+]?(?:[0-9]++\.?[0-9]*+|\.[0-9]++)(?:[eE][-+]?[0-9]{1,3})?")


def plain_number(text: str) -> str:
    """Return a number in one form, so that 12.50 and 12.5 have one digest: no exponent, no zeros at its end."""
    if not _NUMBER.fullmatch(text):
        return text
    plain = format(Decimal(text), "f")
    if "." in plain:
        plain = plain.rstrip("0").rstrip(".")
    return "0" if plain == "-0" else plain


def plain_object(object_: str) -> str:
    """Return one name for an object: shop.orders, as models write it, is also SHOP_ORDERS and shop_orders."""
    return object_.replace(".", "_").casefold()


def spellings(name: str) -> tuple[str, ...]:
    """Return the forms of a field's name under which it may be known in lower case."""
    # Each of these is one that somebody may mean by it.
    return (name.lower(), name.casefold(), name.upper().lower())
