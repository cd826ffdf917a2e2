"""What the dialects have in common: a field, a row, its hash, and the queries of buckets."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from reconcile_jobs.jdbc.database import Database
from reconcile_jobs.proofs.canonical_form import GROUP, NULL, VALUE, Field, Unprovable, inexact

__all__ = ["HALF", "Dialect"]

# Hexadecimal digits of each of the two numbers that are summed for a row: 60 bits, which every dialect's whole numbers
# hold.
HALF = 15

# Oracle takes no longer list.
_LONGEST_LIST = 1000


class Dialect(ABC):
    """One database's SQL. Its expressions depend on the session only where `session` says what must be set."""

    name: str
    # Statements that a session must have run; without them another setting of the user's changes texts.
    session: tuple[str, ...] = ()
    # Whether texts and bytes beside the key are hashed by themselves, as a row of them would be too long.
    digests = False
    # What keeps a subquery from being merged, where its hashes would then be computed for each use of them.
    hint = ""
    fence = ""
    # What writes a whole number as a text, with {} in its place.
    text = "CAST({} AS CHAR)"
    # The database whose snapshots quote identifiers as its proofs do.
    database: Database

    def quoted(self, name: str) -> str:
        """Return an identifier as SQL, whatever it holds."""
        return self.database.quoted(name)

    @abstractmethod
    def value(self, field: Field, x: str) -> str:
        """Return the canonical text of a value that is not NULL, given the column as SQL. Raises Unprovable."""

    def concatenated(self, parts: Sequence[str]) -> str:
        """Return texts one after the other; none of them is NULL."""
        return f"CONCAT({', '.join(parts)})"

    @abstractmethod
    def hashed(self, text: str) -> str:
        """Return the SHA-256 of a text of ASCII, as 64 hexadecimal digits in lower case."""

    @abstractmethod
    def number(self, digits: str) -> str:
        """Return the whole number that so many (HALF) hexadecimal digits are."""

    def total(self, number: str) -> str:
        """Return the exact sum of such numbers, as a text."""
        return self.text.format(f"SUM({number})")

    def count(self) -> str:
        """Return the number of rows, as a text."""
        return self.text.format("COUNT(*)")

    def part(self, text: str, first: int, length: int) -> str:
        """Return some of a text's characters; the first is 1."""
        return f"SUBSTR({text}, {first}, {length})"

    def unwritten(self, field: Field) -> Unprovable:
        """Return why an array or a map has no canonical form here."""
        kind = "an array" if field.kind == "array" else "a map"
        return Unprovable(f"the column {field.name} is {kind}, which has no canonical form in {type(self).__name__}")

    def inexact(self) -> str:
        """Return what stands for a value that has no canonical form, as a literal."""
        return f"'{inexact(self.name)}'"

    def exact_if(self, condition: str, text: str) -> str:
        """Return a text where the condition holds, and otherwise what no other database has."""
        return f"CASE WHEN {condition} THEN {text} ELSE {self.inexact()} END"

    def field(self, field: Field) -> str:
        """Return a field's canonical form."""
        x = self.quoted(field.name)
        value = self.concatenated([f"'{VALUE}'", self.value(field, x)])
        return f"CASE WHEN {x} IS NULL THEN '{NULL}' ELSE {value} END"

    def row(self, fields: Sequence[Field]) -> str:
        """Return the canonical form of a row; of a row of many fields, the hashes of its groups."""
        if not fields:
            raise ValueError("A row without fields has no canonical form.")
        texts = [self.field(field) for field in fields]
        if len(texts) <= GROUP:
            return self.concatenated(texts)
        groups = [texts[first : first + GROUP] for first in range(0, len(texts), GROUP)]
        return self.concatenated([self.hashed(self.concatenated(group)) for group in groups])

    def buckets(
        self, relation: str, key: Sequence[Field], fields: Sequence[Field], digits: int, within: Sequence[str] = ()
    ) -> str:
        """Return the query of buckets: its number, its rows, and the sums of both halves of their hashes, as texts.

        A bucket's number is the first `digits` hexadecimal digits of the key's hash: 16 ** digits buckets. With
        `within`, numbers of fewer digits, only these buckets are split. `relation` is SQL and `fields` hold the key.
        """
        bucket = self.part("key_hash", 1, digits)
        hashes = self._hashes(
            relation, {"key_hash": self.hashed(self.row(key)), "row_hash": self.hashed(self.row(fields))}
        )
        halves = [self.total(self.number(self.part("row_hash", first, HALF))) for first in (1, HALF + 1)]
        return (
            f"SELECT {bucket} AS bucket, {self.count()} AS row_count, {halves[0]} AS first_sum, "
            f"{halves[1]} AS second_sum FROM ({hashes}) hashes{self._within(within)} GROUP BY {bucket}"
        )

    def rows(
        self,
        relation: str,
        key: Sequence[Field],
        fields: Sequence[Field],
        within: Sequence[str] = (),
        values: Sequence[str] = (),
    ) -> str:
        """Return the query of the rows of some buckets: the key's canonical form, the hash of the row, and values.

        `values` are SQL.
        """
        named = {f"c{place}": value for place, value in enumerate(values)}
        hashes = self._hashes(
            relation,
            {
                "key_text": self.row(key),
                "key_hash": self.hashed(self.row(key)),
                "row_hash": self.hashed(self.row(fields)),
                **named,
            },
        )
        return f"SELECT {', '.join(['key_text', 'row_hash', *named])} FROM ({hashes}) hashes{self._within(within)}"

    def _hashes(self, relation: str, values: dict[str, str]) -> str:
        shown = ", ".join(f"{value} AS {name}" for name, value in values.items())
        return f"SELECT {self.hint}{shown} FROM {relation}{self.fence}"

    def _within(self, within: Sequence[str]) -> str:
        """Return the WHERE of some buckets, whose numbers all have as many digits."""
        if not within:
            return ""
        (length,) = {len(number) for number in within}
        if not all(set(number) <= set("0123456789abcdef") for number in within):
            raise ValueError("A bucket's number is hexadecimal digits in lower case.")
        part = self.part("key_hash", 1, length)
        lists = [within[first : first + _LONGEST_LIST] for first in range(0, len(within), _LONGEST_LIST)]
        shown = (", ".join(f"'{number}'" for number in some) for some in lists)
        return f" WHERE {' OR '.join(f'{part} IN ({numbers})' for numbers in shown)}"
