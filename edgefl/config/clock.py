"""Types for hours of the day and dates in settings, given as a number or a text such as 8:30."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Annotated, Any

from pydantic import Field, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from edgefl.config.yaml_nodes import scalar
from edgefl.errors import quoted

HOURS = 24
_SHOWN = r"(\d{1,2}):([0-5]\d)(?::([0-5]\d))?"
_IN_SCHEMAS = r"^([01]?\d|2[0-3]):[0-5]\d(:[0-5]\d)?$"


@dataclass(frozen=True, eq=False)
class Words:
    """Mark a numeric field that may also be written as text, such as a date.

    read: converts a value that is not a number; raises a PydanticCustomError that says what to write.
    schema: JSON Schema of the text, without `type`.
    """

    read: Callable[[Any], float]
    schema: dict[str, Any]

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_before_validator_function(self._number, handler(source))

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return {"anyOf": [handler(schema), {"type": "string", **self.schema}]}

    def _number(self, value: Any) -> Any:
        if isinstance(value, int | float) and not isinstance(value, bool):
            return 0.0 if value == 0 else value  # write -0.0 as 0
        return self.read(value)


def epoch_s(text: str) -> float:
    """Return the seconds from 1970 to a date and time, which is in UTC if the text names no zone.

    Args:
        text: date and time in ISO 8601; a space may replace the T, and slashes may replace the hyphens.

    Raises:
        ValueError: the text is not a date.
    """
    moment = datetime.fromisoformat(text.strip().replace("/", "-"))
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def date_of(time_s: float) -> str:
    """Format seconds since 1970 as a date and time in UTC, such as 2026-01-05T07:30:00Z."""
    try:
        return datetime.fromtimestamp(time_s, UTC).isoformat().replace("+00:00", "Z")
    except (ValueError, OverflowError, OSError):  # beyond the years of dates
        return f"{time_s:.10g} s"


def _seconds(value: Any) -> float:
    try:
        return epoch_s(str(value) if isinstance(value, date) else value)  # other YAML readers return dates
    except (ValueError, OverflowError, AttributeError) as error:
        raise _slip(
            f"must be a number of seconds or a date, such as 2026-01-05T07:30:00Z, got {quoted(value)}"
        ) from error


def _hours(value: Any) -> float:
    shown = re.fullmatch(_SHOWN, value.strip()) if isinstance(value, str) else None
    if shown is None:
        raise _slip(f'must be an hour, such as 8.5 or "8:30", got {quoted(value)}{_remedy(value)}')
    hour, minute, second = (int(part or 0) for part in shown.groups())
    if hour >= HOURS:
        raise _slip(f"must be an hour of the day, 0:00 to 23:59:59, got {quoted(value)}")
    return hour + minute / 60 + second / 3600


# 2026-01-05T07:30:00Z is 1767598200
DATE = Words(_seconds, {"examples": ["2026-01-05T07:30:00Z"]})
# 8.5, "8:30" and "08:30:00" are the same
Hour = Annotated[float, Field(ge=0, lt=HOURS), Words(_hours, {"pattern": _IN_SCHEMAS, "examples": ["8:30"]})]


def shown(hour: float) -> str:
    """Format an hour of the day as a clock time, with seconds only if needed: 8.5 as 8:30."""
    minutes, second = divmod(round(hour * 3600), 60)
    clock = f"{minutes // 60}:{minutes % 60:02d}"
    return f"{clock}:{second:02d}" if second else clock


def _remedy(value: Any) -> str:
    """Suggest a fix for a value that is not a valid time of day; '' if unsure."""
    if not isinstance(value, str):
        return ""
    half = re.fullmatch(r"(\d{1,2})(?:[:.]([0-5]\d))?\s*([ap])\.?m\.?", value.strip().lower())
    if half and 1 <= int(half[1]) <= 12:
        return f': write "{int(half[1]) % 12 + 12 * (half[3] == "p")}:{half[2] or "00"}"'
    try:
        number = scalar(value)
    except ValueError:
        return ""
    if isinstance(number, bool) or not isinstance(number, int | float):
        return ""
    if not 0 <= number < HOURS:
        return ": write it without quotes"
    hours = f"{number:g}, without quotes, for {shown(number)}"
    clock = re.fullmatch(r"(\d{1,2})\.([0-5]\d)", value.strip())
    return f': write "{clock[1]}:{clock[2]}", or {hours}' if clock else f": write {hours}"


def _slip(message: str) -> PydanticCustomError:
    # pydantic's templates interpret braces
    return PydanticCustomError("strict", "{message}", {"message": message})
