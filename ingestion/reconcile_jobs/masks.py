"""Masks: values of some fields are replaced by keyed digests, or left out, before a record or a row rests anywhere.

A record of an object with masks begins with what was done to it, so that a model can ask each record, and no copy,
purge or restore of a table makes it wrong:

    {"masked":{"by":"3f1c0a9be2d4","fields":{"email":"sha256","ssn":"drop"}},"uuid":...

`by` names the key. `fields` are all fields of the object that have a mask, in lower case, also those that this record
lacks. macros/change_records/masked_record.sql reads it. Nothing here raises a value, or writes one into a message.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from reconcile_jobs.long_records import LongRecord
from reconcile_jobs.plain_forms import plain_number, plain_object, spellings
from reconcile_jobs.process.errors import UsageError
from reconcile_jobs.process.secret_files import read_key
from reconcile_jobs.process.yaml_files import read_yaml

if TYPE_CHECKING:
    from reconcile_jobs.staging import Staging

__all__ = [
    "MARK",
    "ColumnMask",
    "Masks",
    "RowMasks",
    "keep_masks",
    "keep_masks_of_rows",
    "plain_number",
    "read_masks",
    "read_row_masks",
]

# The member of a record, and of what staging says of a snapshot.
MARK = "masked"

# Spark hides a property, such as spark.yarn.appMasterEnv.<variable>, only if its name has such a word.
_VARIABLE = "RECONCILE_MASK_SECRET"

_HOW = ("sha256", "drop")
_FORM = "write `shop.customers: {email: sha256, ssn: drop}`"

# What Datastream writes beside the payload, and the append job adds. Of an object with masks nothing else is staged: no
# model reads it, and nobody knows what it may hold.
_ENVELOPE = {
    *("uuid", "read_timestamp", "source_timestamp", "object", "read_method", "stream_name", "schema_key", "sort_keys"),
    *("source_metadata", "avro_types"),
}
_PAYLOAD = "payload"


@dataclass(frozen=True)
class Masks:
    """The masks of some objects, and the key; neither shows the key where it is printed.

    `objects`: for each object, by `plain_object` of its name, its fields in lower case, each `sha256` or `drop`.
    """

    objects: Mapping[str, Mapping[str, str]]
    key: bytes = field(repr=False)
    # What records of each object say of its masks: see `mark`.
    _marks: dict[str, str] = field(default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        for object_, fields in self.objects.items():
            self._marks[object_] = _mark(self.by, fields)

    @property
    def by(self) -> str:
        """The key's name: a short digest of it, which is no secret."""
        return self._digest(b"\0the name of this key")[:12]

    def of(self, object_: str) -> Mapping[str, str]:
        """Return the masks of an object's fields, none if it has none."""
        return self.objects.get(plain_object(object_), {})

    def digest(self, text: str) -> str:
        """Return what stands for a text: 64 hex digits, the same wherever the text and the key are the same."""
        return self._digest(text.encode("utf-8", "surrogatepass"))

    def _digest(self, content: bytes) -> str:
        return hmac.digest(self.key, content, "sha256").hex()

    def mark(self, object_: str) -> str:
        """Return what a record of the object says of its masks, as a member of JSON."""
        return self._marks[plain_object(object_)]

    def record(self, content: bytes) -> str:
        """Return what staging holds of a record of Datastream: masked, as it is, or without its text.

        A record of an object without masks stays as it is. Of one whose object cannot be told, or whose payload is no
        object, only the length and a keyed digest are staged.
        """
        try:
            text = content.decode()
            members = _members(text, 0)
            if members is None:
                return self._without_text(content, "it is not one whole JSON object")
            objects = [member.value for member in members if member.name == "object"]
            if len(objects) != 1 or type(objects[0]) is not str or not objects[0]:
                return self._without_text(content, "it does not name one object")
            (object_,) = objects
            if not (fields := self.of(object_)):
                if any(member.name == MARK for member in members):
                    return self._without_text(content, f"it has a member {MARK}, which only this job writes")
                return text
            parts = [self.mark(object_)]
            for member in members:
                if member.name == _PAYLOAD:
                    if (payload := self._payload(text, member, fields)) is None:
                        # A model that names a table finds its records by them.
                        kept = [text[one.begins : one.ends] for one in members if one.name == "source_metadata"]
                        return self._without_text(content, "its payload is not an object", object_, kept)
                    parts.append(f'"{_PAYLOAD}":{payload}')
                elif member.name == "avro_types":
                    parts.append('"avro_types":' + _types_without(member.value, fields))
                elif member.name in _ENVELOPE:
                    parts.append(text[member.begins : member.ends])
            return "{" + ",".join(parts) + "}"
        except Exception:
            # Whatever it was: its message may hold a part of the record.
            return self._without_text(content, "it cannot be read")

    def note_of_long(self, long: LongRecord, object_of_path: str | None = None) -> str:
        """Return the note of a record that is too long for staging, without what may hold a value.

        Of every object: a note shows the beginning of a record, which may name another object further on.
        """
        note = json.loads(long.note(object_of_path))
        object_ = note.get("object")
        details = dict(note.pop("long_record"))
        details["hmac"] = self.digest(details.pop("sha256"))
        said = {name: value for name, value in note.items() if name in _ENVELOPE and name != "avro_types"}
        is_masked = isinstance(object_, str) and self.of(object_)
        mark = json.loads("{" + self.mark(object_) + "}") if is_masked else {}
        return json.dumps({"long_record": details} | mark | said, separators=(",", ":"))

    def _payload(self, text: str, payload: _Member, fields: Mapping[str, str]) -> str | None:
        if payload.value is None:
            return "null"
        members = _members(text, payload.value_begins, payload.ends)
        if members is None:
            return None
        parts = []
        for member in members:
            how = _mask_of(fields, member.name)
            if how is None:
                parts.append(text[member.begins : member.ends])
            elif member.value is None:
                parts.append(f"{json.dumps(member.name)}:null")
            elif how == "sha256":
                digest = self.digest(_text_of(member.value, text[member.value_begins : member.ends]))
                parts.append(f'{json.dumps(member.name)}:"{digest}"')
        return "{" + ",".join(parts) + "}"

    def _without_text(self, content: bytes, why: str, object_: str | None = None, members: Iterable[str] = ()) -> str:
        details = {"why": why, "bytes": len(content), "hmac": self._digest(content)}
        parts = [f'"withheld_record":{json.dumps(details, separators=(",", ":"))}']
        if object_:
            parts = [self.mark(object_), *parts, f'"object":{json.dumps(object_)}', *members]
        return "{" + ",".join(parts) + "}"


@dataclass(frozen=True)
class ColumnMask:
    """The mask of a column of a snapshot: `sha256` gives texts of hex digits, `drop` NULL of the column's own type.

    `spark_type`: that of the source's values, by which their texts are those of records. `form`: what is made of a text
    before.
    """

    how: str
    masks: Masks
    spark_type: str = "string"
    form: Callable[[str], str] | None = None

    def of(self, value: str | bytes | None) -> str | None:
        """Return what stands for a value: its text, or its bytes, which records have in base64."""
        if value is None or self.how == "drop":
            return None
        text = value if isinstance(value, str) else base64.b64encode(value).decode()
        if self.form is not None:
            with suppress(Exception):  # its message would have the value
                text = self.form(text)
        return self.masks.digest(_text_of_type(self.spark_type, text))


_NUMBERS = ("tinyint", "smallint", "int", "bigint", "decimal", "float", "double")
_BOOLEANS = {**dict.fromkeys(("t", "true", "1"), "true"), **dict.fromkeys(("f", "false", "0"), "false")}


def _text_of_type(spark_type: str, text: str) -> str:
    """Return the text that a record has for a value of this type."""
    if spark_type.startswith(_NUMBERS):
        return plain_number(text)
    return _BOOLEANS.get(text.lower(), text) if spark_type == "boolean" else text


@dataclass(frozen=True)
class RowMasks:
    """The masks of the columns of one table, of which a snapshot is taken."""

    masks: Masks
    object: str

    def of(self, column: str) -> str | None:
        """Return sha256, drop, or None for a column without a mask."""
        return _mask_of(self.masks.of(self.object), column)

    def unmet(self, columns: Iterable[str]) -> str | None:
        """Return a sentence about fields with a mask that are no columns of the snapshot; None if there are none."""
        spelled = {spelling for name in columns for spelling in spellings(name)}
        if missing := sorted(self.masks.of(self.object).keys() - spelled):
            return (
                f"the snapshot has no column {', '.join(missing)}, which --masks names for {self.object}: if a name is "
                "misspelt there, its column is in clear"
            )
        return None

    def properties(self) -> dict[str, str]:
        """Return what the snapshot table says of its masks.

        The name of the key, and a digest of each field and its mask: Spark hides values with words such as password.
        macros/parity/comparison.sql reads the same.
        """
        digests = [_digest_of_field(name, how) for name, how in sorted(self.masks.of(self.object).items())]
        return {_OF_SNAPSHOT: f"{self.masks.by} {','.join(digests)}"}


def _digest_of_field(name: str, how: str) -> str:
    return hashlib.md5(f"{name} {how}".encode()).hexdigest()


def read_row_masks(file: str | None, key_file: str | None, object_: str | None) -> RowMasks | None:
    """Return the masks of one object's columns; None without a file. Raises UsageError."""
    if (masks := read_masks(file, key_file)) is None:
        return None
    if object_ is None:
        raise UsageError("--masks needs the name of the table in the file of masks: give it with --mask-object.")
    if not masks.of(object_):
        raise UsageError(
            f"--masks {file} has no masks of {object_}: name the table as the file has it with --mask-object, or "
            "remove --masks."
        )
    return RowMasks(masks, object_)


def read_masks(file: str | None, key_file: str | None) -> Masks | None:
    """Return the masks of a file and the key of the environment or of another file; None without both files.

    Raises UsageError, which does not show the key.
    """
    if file is None:
        if key_file is not None:
            raise UsageError("--mask-key-file works only with --masks: add --masks, or remove --mask-key-file.")
        return None
    read = read_yaml(file, "--masks")
    if not isinstance(read, dict) or not read:
        raise UsageError(f"--masks {file} names no objects: {_FORM}.")
    objects: dict[str, dict[str, str]] = {}
    for name, said in read.items():
        if not isinstance(name, str) or not isinstance(said, dict) or not said:
            raise UsageError(f"--masks {file}: what stands at {name} is no list of fields: {_FORM}.")
        if plain_object(name) in objects:
            raise UsageError(f"--masks {file} has {name} twice, as one object (shop.orders is shop_orders): join them.")
        objects[plain_object(name)] = _fields(file, name, said)
    return Masks(objects, read_key(key_file, "--mask-key-file", _VARIABLE, "--masks"))


def _fields(file: str, name: str, said: Mapping[Any, Any]) -> dict[str, str]:
    fields: dict[str, str] = {}
    for field_, how in said.items():
        if not isinstance(field_, str) or not field_:
            raise UsageError(f"--masks {file}: the field {field_!r} of {name} is no text: write it in quotes.")
        if field_ != field_.strip():
            # Nobody sees the blank, and without it the field would be in clear.
            raise UsageError(f"--masks {file}: the field {field_!r} of {name} begins or ends with a blank: remove it.")
        if "." in field_:
            # Else a nested field would look masked, and be in clear.
            raise UsageError(
                f"--masks {file}: {field_} of {name} has a dot. A mask is for a whole column, and not for a part of "
                f"it: mask the column, or leave it out with drop."
            )
        if how not in _HOW:
            raise UsageError(f"--masks {file}: {field_} of {name} is {how!r}; a mask is sha256 or drop.")
        if field_.lower() in fields:
            raise UsageError(f"--masks {file} has {field_} of {name} twice; upper and lower case are the same.")
        fields[field_.lower()] = how
    return fields


# --- what a table says of its masks ----------------------------------------------------------------------------------


_OF_SNAPSHOT = "reconcile.snapshot.masks"


def _property_of_masks(by: str, objects: Mapping[str, Mapping[str, str]]) -> str:
    """Return masks as the text of a table's property: hex, since Spark hides values with words such as password."""
    said = {"by": by, "objects": {name: dict(sorted(fields.items())) for name, fields in sorted(objects.items())}}
    return json.dumps(said, separators=(",", ":")).encode().hex()


def _masks_of_property(text: str) -> tuple[str, dict[str, dict[str, str]]]:
    """Return the key's name and the masks of objects. Raises ValueError, KeyError or TypeError for another text."""
    said = json.loads(bytes.fromhex(text))
    return str(said["by"]), {str(name): dict(fields) for name, fields in said["objects"].items()}


# Under which a staging table keeps its masks.
_KEPT = "masks"


def keep_masks(staging: Staging, masks: Masks | None) -> str | None:
    """Keep with a staging table what this run masks, and return a sentence about earlier records, if there are any.

    Raises UsageError where earlier runs masked what this one would append in clear, or had another key.
    """
    text = staging.kept(_KEPT)
    if text is None:
        if masks is None:
            return None
        staging.keep(_KEPT, _property_of_masks(masks.by, masks.objects))
        return _in_clear(staging) if staging.last_batch else None
    by, objects = _read_property(staging, text)
    if masks is None:
        raise UsageError(
            f"Earlier runs masked fields of {', '.join(sorted(objects))} in {staging.name}, and this run would append "
            "them in clear: give --masks and the same key."
        )
    if masks.by != by:
        raise UsageError(
            f"The values in {staging.name} are masked with the key {by}, and this run has the key {masks.by}: one "
            "value would become two. Give the key of before, or name a new table with --staging."
        )
    for name, fields in objects.items():
        for field_, how in fields.items():
            if (now := masks.objects.get(name, {}).get(field_)) != how:
                raise UsageError(
                    f"Earlier runs masked {field_} of {name} in {staging.name} by {how}, and --masks has "
                    f"{now or 'no mask for it'}: write {how} again, or name a new table with --staging."
                )
    if masks.objects == objects:
        return None
    staging.keep(_KEPT, _property_of_masks(masks.by, masks.objects))
    return _in_clear(staging)


def keep_masks_of_rows(
    staging: Staging,
    object_: str,
    properties: Mapping[str, str],
    columns: Iterable[str],
    key_before: Iterable[str] = (),
) -> str:
    """Keep with a staging table what a snapshot masks, and return the mark of its records, "" if it masks nothing.

    `properties`, `columns`: those of the snapshot table. `key_before`: the key of the snapshot before, if this one will
    stage deletes of its rows. Raises UsageError where what was masked before would be staged in clear, or with another
    key, and where what was in clear before would be staged so once more.
    """
    by, _, digests = properties.get(_OF_SNAPSHOT, "").partition(" ")
    names = [name.lower() for name in columns]
    found = {n: how for n in names for how in _HOW if _digest_of_field(n, how) in digests.split(",")}
    text, plain = staging.kept(_KEPT), plain_object(object_)
    kept_by, objects = _read_property(staging, text) if text is not None else (by, {})
    for name, how in objects.get(plain, {}).items():
        if name in names and found.get(name) != how:
            raise UsageError(
                f"{name} of {object_} is masked in {staging.name} by {how}, and the snapshot has "
                f"{found.get(name) or 'it in clear'}: take the snapshot with --masks."
            )
    if not found:
        return ""
    if by != kept_by:
        raise UsageError(
            f"The values in {staging.name} are masked with the key {kept_by}, and those of the snapshot with {by}: "
            "take the snapshot with the key of staging."
        )
    if in_clear := [name for name in key_before if name.lower() in found.keys() - objects.get(plain, {}).keys()]:
        raise UsageError(
            f"The snapshots of {object_} in {staging.name} have the key {', '.join(in_clear)} in clear, and this one "
            "masks it: the deletes of all rows would name them in clear. Name a new table with --staging."
        )
    known = dict(sorted((objects.get(plain, {}) | found).items()))
    if objects.get(plain) != known:
        staging.keep(_KEPT, _property_of_masks(by, {**objects, plain: known}))
    return _mark(by, found) + ","


def _read_property(staging: Staging, text: str) -> tuple[str, dict[str, dict[str, str]]]:
    try:
        return _masks_of_property(text)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise UsageError(
            f"The property reconcile.{_KEPT} of the staging table {staging.name} is not as a job has written it: set "
            "it to what it was before somebody changed it, or name a new table with --staging."
        ) from None


def _in_clear(staging: Staging) -> str:
    return (
        f"the batches up to {staging.last_batch} of {staging.name} were appended before these masks, so they may hold "
        "such values in clear; models with a mask refuse these records"
    )


# --- texts -----------------------------------------------------------------------------------------------------------


class _Number(str):
    """The text of a number, as a record has it."""


class _Decoder(json.JSONDecoder):
    """Reads JSON; a number is its text."""

    def __init__(self) -> None:
        super().__init__(parse_float=_Number, parse_int=_Number, parse_constant=_Number)

    def __reduce__(self) -> tuple[type[_Decoder], tuple[()]]:
        # It goes to Spark's executors by value, and what C holds of it does not.
        return _Decoder, ()


_DECODER = _Decoder()


class _Member(NamedTuple):
    """A member of an object, and where it and its value stand in the text."""

    name: str
    value: Any
    begins: int
    value_begins: int
    ends: int


def _members(text: str, place: int, ends: int | None = None) -> list[_Member] | None:
    """Return the members of the object that begins here; None if the text up to the end is not one whole object."""
    ends = len(text) if ends is None else ends
    members: list[_Member] = []
    place = _after_blanks(text, place)
    if text[place : place + 1] != "{":
        return None
    try:
        after = _after_blanks(text, place + 1)
        if text[after] == "}":
            return members if _after_blanks(text, after + 1) >= ends else None
        while text[place] in "{,":
            begins = _after_blanks(text, place + 1)
            name, place = _DECODER.raw_decode(text, begins)
            place = _after_blanks(text, place)
            if type(name) is not str or text[place] != ":":
                return None
            value_begins = _after_blanks(text, place + 1)
            value, value_ends = _DECODER.raw_decode(text, value_begins)
            members.append(_Member(name, value, begins, value_begins, value_ends))
            place = _after_blanks(text, value_ends)
        if text[place] != "}":
            return None
    except (ValueError, IndexError, RecursionError):
        return None
    return members if _after_blanks(text, place + 1) >= ends else None


def _after_blanks(text: str, place: int) -> int:
    return _BLANKS.match(text, place).end()  # type: ignore[union-attr]


_BLANKS = re.compile(r"[ \t\r\n]*+")


def _text_of(value: Any, delivered: str) -> str:
    """Return the text that is hashed: of a text itself, of a number its plain form, of anything else its JSON."""
    if isinstance(value, _Number):
        return plain_number(value)
    return value if isinstance(value, str) else delivered


def _types_without(types: Any, fields: Mapping[str, str]) -> str:
    # By its type a text of digits would become a time, for example.
    kept = {
        name: type_
        for name, type_ in (types.items() if isinstance(types, dict) else ())
        if _mask_of(fields, name) is None
    }
    return json.dumps(kept, separators=(",", ":"))


def _mask_of(fields: Mapping[str, str], name: str) -> str | None:
    """Return the mask of a field by its name in any case, as a model finds it; None if it has none."""
    return next((fields[spelling] for spelling in spellings(name) if spelling in fields), None)


def _mark(by: str, fields: Mapping[str, str]) -> str:
    said = {"by": by, "fields": dict(sorted(fields.items()))}
    return f'"{MARK}":{json.dumps(said, separators=(",", ":"))}'
