"""The canonical form in the SQL of each database."""

from __future__ import annotations

import re
from collections.abc import Sequence
from hashlib import sha256

from reconcile_jobs.jdbc.mysql import MySQL as MySQLDatabase
from reconcile_jobs.jdbc.oracle import Oracle as OracleDatabase
from reconcile_jobs.jdbc.postgresql import PostgreSQL as PostgreSQLDatabase
from reconcile_jobs.jdbc.sqlserver import SQLServer as SQLServerDatabase
from reconcile_jobs.proofs.canonical_form import NULL_ELEMENT, Field, Unprovable
from reconcile_jobs.proofs.dialect import Dialect
from reconcile_jobs.staging import quoted

__all__ = ["MySQL", "Oracle", "PostgreSQL", "SQLServer", "Spanner", "SpannerPostgreSQL", "Spark"]

# The bits of NaN, of which there are many, and of the infinities.
_NAN, _INFINITY, _MINUS_INFINITY = "7ff8000000000000", "7ff0000000000000", "fff0000000000000"

# The least double with a leading one: those below it have the same power of two.
_LEAST = "2.2250738585072014e-308"

_OF_NOTHING = sha256(b"").hexdigest()


def _places(declared: str) -> int:
    """Return the digits behind the point that a type like decimal(38,10) has, 0 where it says none."""
    found = re.search(r"\(\s*\d+\s*,\s*(\d+)\s*\)", declared)
    return int(found[1]) if found else 0


def _bits(a: str, *, floor_of_log2: str, power_of_two: str, least: str, greatest: str) -> tuple[str, str]:
    """Return two expressions of an absolute value `a`, not NaN and finite, whose sum is the bits of the double.

    A double is a whole number below 2 ** 53 times a power of two, and to divide by that power is exact. The first is
    the exponent's part, to be multiplied by 2 ** 52; the second is the whole number. The logarithm may be off by one.
    """
    guess = f"{least}({greatest}({floor_of_log2.format(f'{greatest}({a}, {_LEAST})')}, -1022), 1023)"
    # No power is beyond the greatest, even where an optimizer computes both sides of an AND.
    power, twice = power_of_two.format(guess), power_of_two.format(f"{least}({guess} + 1, 1023)")
    exponent = (
        f"({guess} + CASE WHEN {guess} > -1022 AND {power} > {a} THEN -1 "
        f"WHEN {guess} < 1023 AND {twice} <= {a} THEN 1 ELSE 0 END)"
    )
    return f"({exponent} + 1022)", f"{a} / {power_of_two.format(exponent)} * 4503599627370496"


class _LikePostgreSQL(Dialect):
    """What PostgreSQL and Spanner's PostgreSQL write alike. The sum of a bigint is a numeric."""

    text = "{}::text"
    database = PostgreSQLDatabase()

    def concatenated(self, parts: Sequence[str]) -> str:
        """None of them is NULL."""
        return f"({' || '.join(parts)})"

    def _array(self, field: Field, x: str) -> str:
        (element,) = field.elements
        texts = (
            f"SELECT CASE WHEN e IS NULL THEN NULL ELSE {self.value(element, 'e')} END AS t, n "
            f"FROM unnest({x}) WITH ORDINALITY AS a(e, n)"
        )
        elements = f"SELECT coalesce(length(t)::text || ':' || t, '{NULL_ELEMENT}') FROM ({texts}) b ORDER BY n"
        return f"array_to_string(ARRAY({elements}), '')"


class PostgreSQL(_LikePostgreSQL):
    """PostgreSQL 13 and later."""

    name = "postgresql"
    fence = " OFFSET 0"

    def value(self, field: Field, x: str) -> str:
        """Bits of floats are there to be had; years are AD, and no infinities."""
        given = field.expression.replace("{}", x)
        match field.kind:
            case "number" | "boolean" if field.source_type == "boolean":
                return f"CASE WHEN {x} THEN '1' ELSE '0' END"
            case "number" | "boolean":
                if field.source_type in ("smallint", "integer", "bigint", "oid"):
                    return f"{x}::text"
                return f"trim_scale(({given})::numeric)::text"
            case "float":
                return f"CASE WHEN {x} = 'NaN' THEN '{_NAN}' ELSE encode(float8send({x}::float8), 'hex') END"
            case "date":
                return self.exact_if(f"{x} BETWEEN '0001-01-01' AND '9999-12-31'", f"to_char({x}, 'YYYY-MM-DD')")
            case "timestamp":
                years = f"{x} >= '0001-01-01 00:00:00+00' AND {x} < '10000-01-01 00:00:00+00'"
                return self.exact_if(years, self._moment(f"{x} AT TIME ZONE 'UTC'"))
            case "timestamp_ntz":
                years = f"{x} >= '0001-01-01 00:00:00' AND {x} < '10000-01-01 00:00:00'"
                return self.exact_if(years, self._moment(x))
            case "text":
                return f"encode(convert_to({given}, 'UTF8'), 'hex')"
            case "text_digest":
                return f"encode(sha256(convert_to({given}, 'UTF8')), 'hex')"
            case "bytes":
                return f"encode({x}, 'hex')"
            case "bytes_digest":
                return f"encode(sha256({x}), 'hex')"
            case "array":
                # The type says nothing of dimensions, and all elements of all of them come one after the other.
                return self.exact_if(f"coalesce(array_ndims({x}), 1) = 1", self._array(field, x))
            case "map":
                raise self.unwritten(field)

    def _moment(self, x: str) -> str:
        return f"to_char({x}, 'YYYY-MM-DD\"T\"HH24:MI:SS.US')"

    def hashed(self, text: str) -> str:
        """Of ASCII, whatever the database's encoding is."""
        return f"encode(sha256(convert_to({text}, 'UTF8')), 'hex')"

    def number(self, digits: str) -> str:
        """As bits."""
        return f"('x' || {digits})::bit(60)::bigint"


class MySQL(Dialect):
    """MySQL 8.0.22 and later, MariaDB 10.5 and later."""

    name = "mysql"
    session = ("SET SESSION time_zone = '+00:00'",)
    database = MySQLDatabase()

    def value(self, field: Field, x: str) -> str:
        """Bits of floats are computed; dates with zeros have no canonical form."""
        given = field.expression.replace("{}", x)
        match field.kind:
            case "number" | "boolean":
                if not _places(field.source_type):
                    return given
                return f"TRIM(TRAILING '.' FROM TRIM(TRAILING '0' FROM {given}))"
            case "float":
                return self._float(x)
            case "date":
                return self.exact_if(self._is_whole(x), f"DATE_FORMAT({x}, '%Y-%m-%d')")
            case "timestamp" | "timestamp_ntz":
                return self.exact_if(self._is_whole(x), f"DATE_FORMAT({x}, '%Y-%m-%dT%H:%i:%s.%f')")
            case "text":
                return f"LOWER(HEX(CONVERT({given} USING utf8mb4)))"
            case "text_digest":
                return f"SHA2(CONVERT({given} USING utf8mb4), 256)"
            case "bytes":
                return f"LOWER(HEX({x}))"
            case "bytes_digest":
                return f"SHA2({x}, 256)"
            case "array" | "map":
                raise self.unwritten(field)

    def _is_whole(self, x: str) -> str:
        return f"YEAR({x}) > 0 AND MONTH({x}) > 0 AND DAYOFMONTH({x}) > 0"

    def _float(self, x: str) -> str:
        exponent, digits = _bits(
            f"ABS({x} + 0e0)",
            floor_of_log2="FLOOR(LOG2({}))",
            power_of_two="POW(2, {})",
            least="LEAST",
            greatest="GREATEST",
        )
        # Only the angle tells zero from minus zero.
        sign = f"CASE WHEN ATAN2({x}, -1) < 0 THEN 9223372036854775808 ELSE 0 END"
        bits = (
            f"CAST({exponent} AS UNSIGNED) * 4503599627370496 + CAST({digits} AS UNSIGNED) + CAST({sign} AS UNSIGNED)"
        )
        return f"LOWER(LPAD(HEX({bits}), 16, '0'))"

    def hashed(self, text: str) -> str:
        """Of ASCII, whatever the connection's character set is."""
        return f"SHA2({text}, 256)"

    def number(self, digits: str) -> str:
        """Through decimal digits."""
        return f"CAST(CONV({digits}, 16, 10) AS UNSIGNED)"


class Oracle(Dialect):
    """Oracle 12.2 and later."""

    name = "oracle"
    session = ("ALTER SESSION SET NLS_NUMERIC_CHARACTERS = '.,' NLS_CALENDAR = 'GREGORIAN'",)
    digests = True
    hint = "/*+ NO_MERGE */ "
    text = "TO_CHAR({}, 'TM9')"
    database = OracleDatabase()

    def value(self, field: Field, x: str) -> str:
        """Bits of floats are there to be had; a text of no characters is NULL, but a CLOB of none is not."""
        given = field.expression.replace("{}", x)
        kind = re.sub(r"\(\d+\)", "", field.source_type)
        match field.kind:
            case "number" | "boolean" if kind == "BOOLEAN":
                return f"CASE WHEN {x} THEN '1' ELSE '0' END"
            case "number" | "boolean":
                # A half is .5 here.
                return (
                    f"CASE WHEN {x} > 0 AND {x} < 1 THEN '0' || {given} "
                    f"WHEN {x} < 0 AND {x} > -1 THEN '-0' || SUBSTR({given}, 2) ELSE {given} END"
                )
            case "float":
                bits = f"LOWER(RAWTOHEX(UTL_RAW.CAST_FROM_BINARY_DOUBLE(TO_BINARY_DOUBLE({x}), 1)))"
                return f"CASE WHEN {x} IS NAN THEN '{_NAN}' ELSE {bits} END"
            case "date":
                raise Unprovable(f"the column {field.name} is a date, which Oracle does not have")
            case "timestamp_ntz" if kind == "DATE":
                return self.exact_if(self._is_ad(x), f'TO_CHAR({x}, \'YYYY-MM-DD"T"HH24:MI:SS".000000"\')')
            case "timestamp_ntz":
                return self._moment(x)
            case "timestamp":
                return self._moment(f"SYS_EXTRACT_UTC({x})")
            case "text" if kind in ("CLOB", "NCLOB", "XMLTYPE"):
                raise Unprovable(f"the column {field.name} is {kind} at the source, which can be hashed only")
            case "text":
                return f"LOWER(RAWTOHEX(UTL_I18N.STRING_TO_RAW({given}, 'AL32UTF8')))"
            case "text_digest":
                # Hashing a CLOB converts it to UTF-8; 4 is SHA-256.
                lob = {"CLOB": given, "NCLOB": given, "XMLTYPE": given}.get(
                    kind, f"TO_NCLOB({given})" if kind.startswith("N") else f"TO_CLOB({given})"
                )
                return self._hashed_lob(lob, kind in ("CLOB", "NCLOB"))
            case "bytes" if kind == "BLOB":
                raise Unprovable(f"the column {field.name} is BLOB at the source, which can be hashed only")
            case "bytes":
                return f"LOWER(RAWTOHEX({x}))"
            case "bytes_digest":
                return self._hashed_lob(x if kind == "BLOB" else f"TO_BLOB({x})", kind == "BLOB")
            case "array" | "map":
                raise self.unwritten(field)

    def _hashed_lob(self, lob: str, may_be_empty: bool) -> str:
        digest = f"LOWER(RAWTOHEX(DBMS_CRYPTO.HASH({lob}, 4)))"
        if not may_be_empty:
            return digest
        return f"CASE WHEN DBMS_LOB.GETLENGTH({lob}) = 0 THEN '{_OF_NOTHING}' ELSE {digest} END"

    def _is_ad(self, x: str) -> str:
        return f"TO_CHAR({x}, 'SYYYY') NOT LIKE '-%'"

    def _moment(self, x: str) -> str:
        exact = f"{self._is_ad(x)} AND TO_CHAR({x}, 'FF9') LIKE '%000'"
        return self.exact_if(exact, f"TO_CHAR({x}, 'YYYY-MM-DD\"T\"HH24:MI:SS.FF6')")

    def concatenated(self, parts: Sequence[str]) -> str:
        """None of them is NULL."""
        return f"({' || '.join(parts)})"

    def hashed(self, text: str) -> str:
        """Of ASCII, whatever the database's character set is."""
        return f"LOWER(RAWTOHEX(STANDARD_HASH({text}, 'SHA256')))"

    def number(self, digits: str) -> str:
        """A NUMBER holds 38 digits."""
        return f"TO_NUMBER({digits}, '{'X' * 15}')"


class SQLServer(Dialect):
    """SQL Server 2019 and later, which can write UTF-8."""

    name = "sqlserver"
    database = SQLServerDatabase()

    def value(self, field: Field, x: str) -> str:
        """Bits of floats are there to be had; a time may be finer than a microsecond."""
        given = field.expression.replace("{}", x)
        match field.kind:
            case "number" | "boolean":
                places = 4 if field.source_type.endswith("money") else _places(field.source_type)
                if not places:
                    return given
                # Trailing zeros and then a trailing point: only blanks can be trimmed.
                zeros = f"REPLACE(RTRIM(REPLACE({given}, '0', ' ')), ' ', '0')"
                return f"REPLACE(RTRIM(REPLACE({zeros}, '.', ' ')), ' ', '.')"
            case "float":
                return f"LOWER(CONVERT(char(16), CONVERT(binary(8), CONVERT(float(53), {x})), 2))"
            case "date":
                return f"CONVERT(char(10), {x}, 23)"
            case "timestamp" | "timestamp_ntz" if field.source_type in ("datetime", "smalldatetime"):
                return f"REPLACE(CONVERT(varchar(23), {x}, 121), ' ', 'T') + '000'"
            case "timestamp":
                return self._moment(f"CONVERT(datetime2(7), SWITCHOFFSET({x}, '+00:00'))")
            case "timestamp_ntz":
                return self._moment(f"CONVERT(datetime2(7), {x})")
            case "text":
                return f"LOWER(CONVERT(varchar(max), {self._utf8(given)}, 2))"
            case "text_digest":
                return f"LOWER(CONVERT(char(64), HASHBYTES('SHA2_256', {self._utf8(given)}), 2))"
            case "bytes":
                return f"LOWER(CONVERT(varchar(max), CONVERT(varbinary(max), {x}), 2))"
            case "bytes_digest":
                return f"LOWER(CONVERT(char(64), HASHBYTES('SHA2_256', CONVERT(varbinary(max), {x})), 2))"
            case "array" | "map":
                raise self.unwritten(field)

    def _utf8(self, text: str) -> str:
        wide = f"CONVERT(nvarchar(max), {text}) COLLATE Latin1_General_100_BIN2_UTF8"
        return f"CONVERT(varbinary(max), CONVERT(varchar(max), {wide}))"

    def _moment(self, x: str) -> str:
        text = f"CONVERT(char(27), {x}, 121)"
        return self.exact_if(f"{text} LIKE '%0'", f"REPLACE(LEFT({text}, 26), ' ', 'T')")

    def concatenated(self, parts: Sequence[str]) -> str:
        """Of any length."""
        return f"(CONVERT(varchar(max), '') + {' + '.join(parts)})"

    def hashed(self, text: str) -> str:
        """Of ASCII in one byte each."""
        return f"LOWER(CONVERT(char(64), HASHBYTES('SHA2_256', {text}), 2))"

    def number(self, digits: str) -> str:
        """Through bytes."""
        return f"CONVERT(bigint, CONVERT(binary(8), '0' + {digits}, 2))"

    def total(self, number: str) -> str:
        """The sum of a bigint would be a bigint."""
        return f"CONVERT(varchar(40), SUM(CONVERT(decimal(38, 0), {number})))"

    def count(self) -> str:
        """As a text."""
        return "CONVERT(varchar(20), COUNT_BIG(*))"

    def part(self, text: str, first: int, length: int) -> str:
        """Under its own name."""
        return f"SUBSTRING({text}, {first}, {length})"


class Spanner(Dialect):
    """Spanner's GoogleSQL."""

    name = "spanner"
    text = "CAST({} AS STRING)"

    def quoted(self, name: str) -> str:
        """In backticks, in which a backslash escapes."""
        return "`" + name.replace("\\", "\\\\").replace("`", "\\`") + "`"

    def value(self, field: Field, x: str) -> str:
        """Bits of floats are computed; a time may be finer than a microsecond."""
        match field.kind:
            case "number" | "boolean" if field.source_type == "BOOL":
                return f"IF({x}, '1', '0')"
            case "number" | "boolean" | "date":
                return f"CAST({x} AS STRING)"
            case "float":
                return self._float(f"CAST({x} AS FLOAT64)")
            case "timestamp":
                text = f"FORMAT_TIMESTAMP('%E4Y-%m-%dT%H:%M:%E6S', {x}, 'UTC')"
                return self.exact_if(f"{x} = TIMESTAMP_TRUNC({x}, MICROSECOND)", text)
            case "timestamp_ntz":
                raise Unprovable(f"the column {field.name} is a time without a zone, which Spanner does not have")
            case "text":
                return f"TO_HEX(CAST({x} AS BYTES))"
            case "text_digest":
                return f"TO_HEX(SHA256({x}))"
            case "bytes":
                return f"TO_HEX({x})"
            case "bytes_digest":
                return f"TO_HEX(SHA256({x}))"
            case "array":
                return self._array(field, x)
            case "map":
                raise self.unwritten(field)

    def _array(self, field: Field, x: str) -> str:
        (element,) = field.elements
        # No name of the steps of a float.
        value = f"IF(element IS NULL, NULL, {self.value(element, 'element')})"
        texts = f"SELECT {value} AS t, n FROM UNNEST({x}) AS element WITH OFFSET AS n"
        text = f"IFNULL(CONCAT(CAST(LENGTH(t) AS STRING), ':', t), '{NULL_ELEMENT}')"
        return f"ARRAY_TO_STRING(ARRAY(SELECT {text} FROM ({texts}) ORDER BY n), '')"

    def _float(self, x: str) -> str:
        """As in _bits, but each step once, in subqueries: Spanner refuses a query of more than 1,000 functions.

        The column stands in the innermost alone, where no name of a step can be taken for it.
        """
        # Spanner may compute what CASE leaves out, and has no whole number for infinity.
        value = f"IF(IS_NAN({x}) OR IS_INF({x}), 0.0, ABS({x})) AS a, IF(ATAN2({x}, -1.0) < 0, 2048, 0) AS s"
        guess = f"LEAST(GREATEST(CAST(FLOOR(LOG(GREATEST(a, {_LEAST}), 2)) AS INT64), -1022), 1023)"
        exponent = (
            "g + CASE WHEN g > -1022 AND POW(2.0, g) > a THEN -1 "
            "WHEN g < 1023 AND POW(2.0, LEAST(g + 1, 1023)) <= a THEN 1 ELSE 0 END"
        )
        bits = "(e + 1022) * 4503599627370496 + CAST(a / POW(2.0, e) * 4503599627370496 AS INT64)"
        exponents = f"SELECT a, s, {exponent} AS e FROM (SELECT a, s, {guess} AS g FROM (SELECT {value}))"
        steps = f"SELECT {bits} AS b, s FROM ({exponents})"
        # A negative number would be written with a minus: so the sign is put into the first three digits.
        text = f"(SELECT FORMAT('%03x%013x', DIV(b, 4503599627370496) + s, MOD(b, 4503599627370496)) FROM ({steps}))"
        return (
            f"CASE WHEN IS_NAN({x}) THEN '{_NAN}' WHEN IS_INF({x}) THEN IF({x} > 0, '{_INFINITY}', "
            f"'{_MINUS_INFINITY}') ELSE {text} END"
        )

    def hashed(self, text: str) -> str:
        """As text."""
        return f"TO_HEX(SHA256({text}))"

    def number(self, digits: str) -> str:
        """As a literal of hexadecimal digits."""
        return f"CAST(CONCAT('0x', {digits}) AS INT64)"

    def total(self, number: str) -> str:
        """The sum of an INT64 would be an INT64."""
        return super().total(f"CAST({number} AS NUMERIC)")


class SpannerPostgreSQL(_LikePostgreSQL):
    """Spanner's PostgreSQL, which has few of PostgreSQL's functions."""

    name = "spanner"

    def value(self, field: Field, x: str) -> str:
        """JSON has bytes in hexadecimal digits, which nothing else gives."""
        match field.kind:
            case "number" | "boolean" if field.source_type == "BOOL":
                return f"CASE WHEN {x} THEN '1' ELSE '0' END"
            case "number" | "boolean" if field.source_type == "INT64":
                return f"{x}::text"
            case "number" | "boolean":
                text = f"{x}::text"
                return f"CASE WHEN strpos({text}, '.') > 0 THEN rtrim(rtrim({text}, '0'), '.') ELSE {text} END"
            case "float":
                raise Unprovable(
                    f"the column {field.name} is a floating-point number, whose digits and bits the PostgreSQL dialect "
                    "of Spanner does not give"
                )
            case "date":
                return f"to_char({x}, 'YYYY-MM-DD')"
            case "timestamp":
                return self._moment(x)
            case "timestamp_ntz":
                raise Unprovable(f"the column {field.name} is a time without a zone, which Spanner does not have")
            case "text":
                return self._hex(f"{x}::bytea")
            case "text_digest":
                return self._hex(f"sha256({x}::bytea)")
            case "bytes":
                return self._hex(x)
            case "bytes_digest":
                return self._hex(f"sha256({x})")
            case "array":
                return self._array(field, x)
            case "map":
                raise self.unwritten(field)

    def _hex(self, x: str) -> str:
        # "\\x00ff"
        return f"replace(substr(to_jsonb({x})::text, 5), '\"', '')"

    def _moment(self, x: str) -> str:
        """Texts of times are in the database's zone, and no function takes them elsewhere: so seconds are counted."""
        seconds = f"extract(epoch FROM {x})"
        day = f"floor({seconds} / 86400)::bigint"
        of_day = f"(floor({seconds})::bigint - {day} * 86400)"
        clock = " || ':' || ".join(
            f"lpad(({part})::text, 2, '0')"
            for part in (f"{of_day} / 3600", f"mod({of_day} / 60, 60)", f"mod({of_day}, 60)")
        )
        fraction = f"(({seconds} - floor({seconds})) * 1000000)"
        text = (
            f"to_char('1970-01-01'::date + {day}, 'YYYY-MM-DD') || 'T' || {clock} || '.' || "
            f"lpad(floor({fraction})::bigint::text, 6, '0')"
        )
        # Nanoseconds are cut from the seconds of an epoch.
        return self.exact_if(f"{x} = date_trunc('microsecond', {x})", text)

    def hashed(self, text: str) -> str:
        """Of its bytes."""
        return self._hex(f"sha256({text}::bytea)")

    def number(self, digits: str) -> str:
        """Digit by digit: it reads no hexadecimal number."""
        values = (
            f"(strpos('0123456789abcdef', substr({digits}, {place}, 1)) - 1) * {16 ** (15 - place)}"
            for place in range(1, 16)
        )
        return f"({' + '.join(values)})"


class Spark(Dialect):
    """Spark SQL, for the tables and views of models."""

    name = "spark"
    session = ("SET TIME ZONE 'UTC'",)
    text = "CAST({} AS STRING)"

    def quoted(self, name: str) -> str:
        """As everywhere in the jobs."""
        return quoted(name)

    def value(self, field: Field, x: str) -> str:
        """Bits of floats are computed; small decimals have an exponent, which is written out."""
        match field.kind:
            case "number" | "boolean" if field.source_type == "boolean":
                return f"IF({x}, '1', '0')"
            case "number" | "boolean":
                return self._number(x, field.source_type)
            case "float":
                return self._float(f"CAST({x} AS DOUBLE)")
            case "date":
                return self.exact_if(self._years(x, "DATE"), f"date_format({x}, 'yyyy-MM-dd')")
            case "timestamp":
                return self._moment(x, "TIMESTAMP")
            case "timestamp_ntz":
                return self._moment(x, "TIMESTAMP_NTZ")
            case "text" | "bytes":
                return f"lower(hex({x}))"
            case "text_digest" | "bytes_digest":
                return f"sha2({x}, 256)"
            case "array":
                (element,) = field.elements
                return self._elements(f"transform({x}, e -> {self._element(element, 'e')})")
            case "map":
                # Keys differ, and no key's text begins another's: so the entries' texts are in the order of keys.
                entry = self._elements(
                    f"array({self._element(field.elements[0], 'e.key')}, {self._element(field.elements[1], 'e.value')})"
                )
                return f"array_join(array_sort(transform(map_entries({x}), e -> {entry})), '')"

    def _element(self, field: Field, x: str) -> str:
        return f"CASE WHEN {x} IS NULL THEN NULL ELSE {self.value(field, x)} END"

    def _elements(self, texts: str) -> str:
        """Return the text of an array, given those of its elements."""
        element = f"coalesce(concat(CAST(length(t) AS STRING), ':', t), '{NULL_ELEMENT}')"
        return f"array_join(transform({texts}, t -> {element}), '')"

    def _number(self, x: str, type_: str) -> str:
        text = f"CAST({x} AS STRING)"
        if not _places(type_):
            return text
        # Beside a whole number, Spark rounds decimal(38, 38) to fewer places before it compares.
        zero = f"CAST(0 AS {type_})"
        digits = f"replace(regexp_extract({text}, '^-?([0-9.]+)E', 1), '.', '')"
        zeros = f"repeat('0', CAST(regexp_extract({text}, 'E-([0-9]+)$', 1) AS INT) - 1)"
        small = f"concat(IF({x} < {zero}, '-0.', '0.'), {zeros}, {digits})"
        plain = f"CASE WHEN {text} LIKE '%E%' THEN {small} ELSE {text} END"
        return f"CASE WHEN {x} = {zero} THEN '0' ELSE trim(TRAILING '.' FROM trim(TRAILING '0' FROM {plain})) END"

    def _float(self, x: str) -> str:
        exponent, digits = _bits(
            f"abs({x})",
            floor_of_log2="floor(log2({}))",
            power_of_two="pow(2, {})",
            least="least",
            greatest="greatest",
        )
        sign = f"IF(CAST({x} AS STRING) LIKE '-%', shiftleft(1L, 63), 0L)"
        bits = f"CAST({exponent} AS BIGINT) * 4503599627370496 + CAST({digits} AS BIGINT) + {sign}"
        return (
            f"CASE WHEN isnan({x}) THEN '{_NAN}' WHEN {x} = double('infinity') THEN '{_INFINITY}' "
            f"WHEN {x} = double('-infinity') THEN '{_MINUS_INFINITY}' ELSE lower(lpad(hex({bits}), 16, '0')) END"
        )

    def _years(self, x: str, kind: str) -> str:
        clock = "" if kind == "DATE" else " 00:00:00"
        end = f"{x} <= DATE '9999-12-31'" if kind == "DATE" else f"{x} < {kind} '+10000-01-01 00:00:00'"
        return f"{x} >= {kind} '0001-01-01{clock}' AND {end}"

    def _moment(self, x: str, kind: str) -> str:
        text = f"replace(date_format({x}, 'yyyy-MM-dd HH:mm:ss.SSSSSS'), ' ', 'T')"
        return self.exact_if(self._years(x, kind), text)

    def hashed(self, text: str) -> str:
        """Of its bytes."""
        return f"sha2({text}, 256)"

    def number(self, digits: str) -> str:
        """With room for the sum of 10 ** 19 rows."""
        return f"CAST(conv({digits}, 16, 10) AS DECIMAL(28,0))"
