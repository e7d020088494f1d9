"""What clients may ask: the closed request objects of ARD 5.3, the List filter and page tokens. Pure."""

import base64
import binascii
import hashlib
import hmac
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, TypeVar

import orjson
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from index.identity import REGISTRY_TYPE, canonical_type, media_type
from index.terms import (
    BASE,
    LONGEST_KEY,
    UNSUPPORTED_KEYS,
    Context,
    FilterPath,
    UnsupportedKey,
    effective_context,
    filter_path,
    scalar_text,
)

MAX_PAGE_SIZE = 100
DEFAULT_SEARCH_PAGE = 10
DEFAULT_LIST_PAGE = 20
# Fits a request of the default size whatever its characters are and however they are escaped.
_LONGEST_TEXT = 5000
_MAX_FILTER_KEYS = 32
_MAX_FILTER_VALUES = 100
_MAX_FACETS = 20


_Model = TypeVar("_Model", bound=BaseModel)


class InvalidArgument(ValueError):
    """The request is not one this API answers: HTTP 400 with the message (ARD 5.3)."""


class _Closed(BaseModel):
    """The specification closes its request objects: an unknown member is an error, not a wish."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


def _whole(value: Any) -> Any:
    """Read 10.0 as 10: to JSON they are one number."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


# What these say beyond their types is for the description of the API; a key is judged by `resolve_key`.
_TELLING = {"pattern": r"[^\s\u0085\u001c-\u001f]"}
_KEY = {"minLength": 1, "maxLength": LONGEST_KEY, "pattern": "^[^@]", "not": {"enum": sorted(UNSUPPORTED_KEYS)}}

_DOMAIN = r"^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]([a-z0-9-]{0,61}[a-z0-9])?$"

_Whole = BeforeValidator(_whole)
Scalar = str | int | float | bool
FilterValue = Scalar | Annotated[list[Scalar], Field(max_length=_MAX_FILTER_VALUES)]


class QueryModel(_Closed):
    """What is looked for: a need in words, structured constraints, or both (ARD 5.3.1)."""

    context: Annotated[str | dict[str, Any] | list[Any] | None, Field(alias="@context")] = None
    text: Annotated[str | None, Field(max_length=_LONGEST_TEXT)] = None
    filter: Annotated[
        dict[str, FilterValue], Field(max_length=_MAX_FILTER_KEYS, json_schema_extra={"propertyNames": _KEY})
    ] = {}


class SearchQuery(QueryModel):
    text: Annotated[str, Field(max_length=_LONGEST_TEXT, json_schema_extra=_TELLING)]


class SearchRequest(_Closed):
    """`POST /search` (ARD 5.3.2)."""

    query: SearchQuery
    federation: Literal["auto", "referrals", "none"] = "auto"
    page_size: Annotated[int, Field(alias="pageSize", ge=1), _Whole] = DEFAULT_SEARCH_PAGE
    page_token: Annotated[str | None, Field(alias="pageToken", min_length=1, max_length=1024)] = None


class FacetRequest(_Closed):
    field: Annotated[str, Field(min_length=1, json_schema_extra=_KEY)]
    limit: Annotated[int, Field(ge=0, le=1000), _Whole] = 20
    min_count: Annotated[int, Field(alias="minCount", ge=0), _Whole] = 1


class FacetsType(_Closed):
    facets: Annotated[list[FacetRequest], Field(max_length=_MAX_FACETS)]


class ExploreRequest(_Closed):
    """`POST /explore` (ARD 5.3.3)."""

    query: QueryModel = QueryModel()
    result_type: Annotated[FacetsType, Field(alias="resultType")]


class EndorsementRequest(_Closed):
    """`POST /endorsement`."""

    # In the form that is compared: who asks says exactly which host is meant.
    brand_domain: Annotated[str, Field(alias="brandDomain", max_length=253, pattern=_DOMAIN)]
    entry: dict[str, Any]


def parse_search(value: Any) -> SearchRequest:
    """Check a search request; raises InvalidArgument with the first thing that is wrong."""
    request = _validate(SearchRequest, value)
    if not request.query.text.strip():
        raise InvalidArgument("query.text must not be empty")
    return request


def parse_explore(value: Any) -> ExploreRequest:
    """Check an explore request; raises InvalidArgument with the first thing that is wrong.

    The answer has one place for a field, so it cannot be asked for in two ways.
    """
    request = _validate(ExploreRequest, value)
    asked: dict[str, FacetRequest] = {}
    for number, facet in enumerate(request.result_type.facets):
        if asked.setdefault(facet.field, facet) != facet:
            raise InvalidArgument(f"resultType.facets[{number}].field is that of another facet with other bounds")
    return request


def parse_endorsement(value: Any) -> EndorsementRequest:
    """Check an endorsement request; raises InvalidArgument with the first thing that is wrong."""
    return _validate(EndorsementRequest, value)


def _validate(model: type[_Model], value: Any) -> _Model:
    try:
        return model.model_validate(value)
    except ValidationError as error:
        raise InvalidArgument(_first_mistake(error)) from None


def _first_mistake(error: ValidationError) -> str:
    item = error.errors(include_url=False)[0]
    steps = [step for step in item["loc"] if step not in ("str", "int", "float", "bool") and "[" not in str(step)]
    path = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps).lstrip(".")
    reason = re.sub("^Input should be ", "must be ", item["msg"])
    if item["type"] == "extra_forbidden":
        reason = "is not a member of this request"
    elif item["type"] == "missing":
        reason = "is required"
    elif item["type"] in ("model_type", "dict_type"):
        reason = "must be an object"
    elif item["type"] == "string_pattern_mismatch":
        reason = "must be a domain in lower case, such as acme.example"
    return f"{path or 'the request'} {reason[:1].lower()}{reason[1:]}"


@dataclass(frozen=True, slots=True)
class Constraint:
    """One filter key as the index compares it: any of the values at the path."""

    path: FilterPath
    values: tuple[str, ...]


def constraints(query: QueryModel) -> tuple[Constraint, ...]:
    """Resolve the filter of a query through its effective context; raises InvalidArgument (ARD 5.3.1)."""
    context = query_context(query)
    result = []
    for key, given in query.filter.items():
        path = resolve_key(key, context)
        values = given if isinstance(given, list) else [given]
        texts = [text for text in map(scalar_text, values) if text is not None]
        if path.is_type:
            texts = [canonical_type(text) for text in texts]
        elif path.path == "publisher":
            texts = [text.lower().removesuffix(".") for text in texts]
        result.append(Constraint(path, tuple(dict.fromkeys(texts))))
    return tuple(result)


def query_context(query: QueryModel) -> Context:
    """Layer the query's own context on the base context."""
    return BASE if query.context is None else effective_context(query.context)[0]


def resolve_key(key: str, context: Context) -> FilterPath:
    """Resolve a filter or facet key; raises InvalidArgument for keys that cannot be answered."""
    try:
        return filter_path(key, context)
    except UnsupportedKey as error:
        raise InvalidArgument(str(error)) from None


# --- List: filter and order (ARD 5.3.5, Appendix A) -------------------------------------------------------------------

ListField = Literal["displayName", "type", "publisherId", "createdAfter", "updatedAfter"]
_LIST_FIELDS: Mapping[str, ListField] = {
    "displayname": "displayName",
    "type": "type",
    "publisherid": "publisherId",
    "createdafter": "createdAfter",
    "updatedafter": "updatedAfter",
}
_ORDER_FIELDS = {
    "displayname": "displayName",
    "name": "displayName",
    "createdat": "createdAt",
    "created_at": "createdAt",
    "updatedat": "updatedAt",
    "updated_at": "updatedAt",
    "identifier": "identifier",
}
_FIELD = re.compile(r"\s*([A-Za-z_][A-Za-z_0-9.:-]*)")
_OPERATOR = re.compile(r"\s*(<=|>=|=|<|>)")
_VALUE = re.compile(r"""\s*('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[^\s,'"=<>]+)""")
_COMMA = re.compile(r"\s*,")
_AND = re.compile(r"\s+AND(?:\s+|$)", re.IGNORECASE)
LONGEST_FILTER = 4000
LONGEST_PARAMETER = 500
# Of one page of the change feed: whoever mirrors us replays it from the beginning.
MOST_EVENTS = 1000


@dataclass(frozen=True, slots=True)
class ListClause:
    """One clause of a List filter: any of the texts, or strictly after the instant."""

    field: ListField
    texts: tuple[str, ...] = ()
    after: datetime | None = None


@dataclass(frozen=True, slots=True)
class ListOrder:
    field: str
    descending: bool


def parse_list_filter(text: str | None) -> tuple[ListClause, ...]:
    """Read the filter of List; raises InvalidArgument that names the offending token.

    Clauses are joined by AND, values by commas mean OR. `displayName` matches a part of the name whatever its case,
    `type` any spelling of the media type, the two dates strictly after.
    """
    if text is None or not text.strip():
        return ()
    if len(text) > LONGEST_FILTER:
        raise InvalidArgument(f"filter must have at most {LONGEST_FILTER} characters")
    clauses = []
    position = 0
    while True:
        clause, position = _clause(text, position)
        clauses.append(clause)
        if not text[position:].strip():
            return tuple(clauses)
        joint = _AND.match(text, position)
        if joint is None:
            raise InvalidArgument(f"filter: expected AND instead of {_token(text, position)}")
        position = joint.end()
        if not text[position:].strip():
            raise InvalidArgument("filter: expected a field after AND instead of the end")


def _clause(text: str, position: int) -> tuple[ListClause, int]:
    name = _FIELD.match(text, position)
    field = _LIST_FIELDS.get(name[1].lower()) if name else None
    if name is None or field is None:
        known = ", ".join(_LIST_FIELDS.values())
        raise InvalidArgument(f"filter: {_token(text, position)} is not one of the fields {known}")
    operator = _OPERATOR.match(text, name.end())
    if operator is None:
        raise InvalidArgument(f"filter: expected an operator after {field} instead of {_token(text, name.end())}")
    dated = field in ("createdAfter", "updatedAfter")
    if operator[1] not in (("=", ">", ">=") if dated else ("=",)):
        raise InvalidArgument(f"filter: the operator {operator[1]} cannot be used with {field}")
    values, position = _values(text, operator.end(), field)
    if dated:
        if len(values) != 1:
            raise InvalidArgument(f"filter: {field} takes one date")
        return ListClause(field, after=_date(values[0], field)), position
    return ListClause(field, texts=tuple(_list_value(field, value) for value in values)), position


def _values(text: str, position: int, field: str) -> tuple[list[str], int]:
    values = []
    while True:
        match = _VALUE.match(text, position)
        value = _unquote(match[1]) if match else ""
        if match is None or not value.strip():
            raise InvalidArgument(f"filter: {field} needs a value instead of {_token(text, position)}")
        values.append(value)
        comma = _COMMA.match(text, match.end())
        if comma is None:
            return values, match.end()
        position = comma.end()


def _unquote(value: str) -> str:
    return re.sub(r"\\(.)", r"\1", value[1:-1], flags=re.DOTALL) if value[:1] in ("'", '"') else value


def _token(text: str, position: int) -> str:
    match = re.compile(r"\s*(\S{1,40})").match(text, position)
    return f"'{match[1]}'" if match else "the end"


def _list_value(field: str, value: str) -> str:
    if field == "type":
        canonical = media_type(value)
        if canonical is None:
            raise InvalidArgument(f"filter: type needs a media type such as {REGISTRY_TYPE} instead of '{value[:40]}'")
        return canonical
    return value.lower().removesuffix(".") if field == "publisherId" else value


def _date(value: str, field: str) -> datetime:
    try:
        instant = datetime.fromisoformat(value)
        instant = instant.replace(tzinfo=UTC) if instant.tzinfo is None else instant.astimezone(UTC)
    except (ValueError, OverflowError):
        raise InvalidArgument(f"filter: {field} needs a date such as 2026-01-31 instead of '{value[:40]}'") from None
    return instant


def parse_list_order(text: str | None) -> tuple[ListOrder, ...]:
    """Read `orderBy`; the identifier is always the last key, so that the order is total."""
    orders: dict[str, ListOrder] = {}
    for part in (text or "").split(",") if text and text.strip() else ():
        words = part.split()
        field = _ORDER_FIELDS.get(words[0].lower()) if words else None
        direction = words[1].upper() if len(words) == 2 else "ASC"
        if field is None or len(words) > 2 or direction not in ("ASC", "DESC"):
            raise InvalidArgument(f"orderBy: '{part.strip()[:40]}' is not a field with an optional ASC or DESC")
        orders.setdefault(field, ListOrder(field, direction == "DESC"))
    orders.setdefault("identifier", ListOrder("identifier", False))
    names = list(orders)
    return tuple(orders[name] for name in names[: names.index("identifier") + 1])


def parse_page_size(text: str | None, default: int, name: str = "pageSize", most: int = MAX_PAGE_SIZE) -> int:
    """Read a page size: a whole number of at least one, cut at the most there is."""
    if text is None:
        return default
    if not re.fullmatch(r"[0-9]{1,9}", text, re.ASCII) or int(text) < 1:
        raise InvalidArgument(f"{name} must be a whole number of at least 1")
    return min(int(text), most)


# --- Page tokens ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PageTokens:
    """Opaque page tokens: the last sort key, sealed together with the query it belongs to.

    A token of another query, or of an index that was rebuilt since, is refused; so is one that was made up.
    """

    secret: bytes

    def seal(self, query: Any, after: Sequence[Any]) -> str:
        """Write the token that continues `query` after the row with this sort key."""
        payload = orjson.dumps(list(after))
        return base64.urlsafe_b64encode(self._mac(query, payload) + payload).decode().rstrip("=")

    def open(self, query: Any, token: str) -> list[Any]:
        """Read the sort key of a token; raises InvalidArgument when it does not belong to `query`."""
        try:
            raw = base64.urlsafe_b64decode(token.encode("ascii") + b"=" * (-len(token) % 4))
        except (ValueError, binascii.Error):
            raw = b""
        mac, payload = raw[:16], raw[16:]
        if not hmac.compare_digest(mac, self._mac(query, payload)):
            raise InvalidArgument("pageToken does not belong to this request")
        value = orjson.loads(payload)
        return value if isinstance(value, list) else []

    def _mac(self, query: Any, payload: bytes) -> bytes:
        # Not orjson, which refuses integers past 64 bits; a query may hold them.
        seal = hmac.new(self.secret, json.dumps(query, sort_keys=True).encode(), hashlib.sha256)
        seal.update(b"\x00" + payload)
        return seal.digest()[:16]
