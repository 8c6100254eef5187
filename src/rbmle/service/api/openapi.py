"""The OpenAPI document of our own dialect, generated from the types that decode it."""

from typing import Any, NamedTuple

import msgspec

from rbmle.service.api.base import Endpoint, Fault
from rbmle.service.api.native import (
    NO_CONTROLS,
    PREFIX,
    REQUEST_HEADER,
    TABLE,
    ErasureAnswer,
    ErasureBody,
    ErrorBody,
    RankBody,
    RewardBody,
)
from rbmle.service.api.routes import ID
from rbmle.service.front.requests import LONGEST_ID, EventAnswer, RankAnswer, StatusAnswer
from rbmle.service.model.report import LiftAnswer, ShadowAnswer
from rbmle.service.settings import SETTINGS, ConfigurationChange, ServiceConfiguration

_REF = "#/components/schemas/{name}"
_DESCRIPTIONS = {
    Fault.MALFORMED: "The path or the body is not valid",
    Fault.UNAUTHORIZED: "The key is missing or not valid",
    Fault.FORBIDDEN: "The scope of the key does not allow this",
    Fault.NOT_FOUND: "There is no such event or shadow",
    Fault.METHOD_NOT_ALLOWED: "The path does not have this method",
    Fault.TIMEOUT: "The request took too long to arrive",
    Fault.CONFLICT: "The event id or the idempotency key belongs to a different request",
    Fault.TOO_LARGE: "The body is too large",
    Fault.THROTTLED: (
        "This address sent too many wrong keys, or the key has used up its work budget; "
        "try again after Retry-After seconds"
    ),
    Fault.UNAVAILABLE: "The log cannot be written now; try again after Retry-After seconds",
}
_EITHER = [
    {"required": ["value"], "properties": {"value": {"type": "number"}, "slots": {"type": "null"}}},
    {
        "required": ["slots"],
        "properties": {
            "value": {"type": "null"},
            "slots": {"type": "object", "minProperties": 1},
        },
    },
]
_ALWAYS = (Fault.MALFORMED, Fault.UNAUTHORIZED, Fault.FORBIDDEN, Fault.THROTTLED, Fault.UNAVAILABLE)
_WITH_BODY = (Fault.TIMEOUT, Fault.TOO_LARGE)
_WAITING = (Fault.THROTTLED, Fault.UNAVAILABLE)
_ID = {
    "name": "id",
    "in": "path",
    "required": True,
    "description": "The event, percent-encoded",
    "schema": {
        "type": "string",
        "minLength": 1,
        "maxLength": LONGEST_ID,
        "pattern": NO_CONTROLS,
    },
}
_REQUEST = {
    "name": REQUEST_HEADER,
    "in": "header",
    "required": False,
    "description": "The idempotency key: the same in each attempt of one request, which counts once",
    "schema": {"type": "string", "maxLength": LONGEST_ID, "pattern": "^[\\t -~]*$"},
}
_OF_EVENT = ("get_event", "reward", "activate")


ConfigurationJSON = msgspec.defstruct(
    "ConfigurationJSON",
    [(name, row.kind.json) for name, row in SETTINGS.items()],
    forbid_unknown_fields=True,
    namespace={
        "__doc__": "The configuration as JSON; durations as in ISO 8601, `PT10M`, and dates too."
    },
)


class Documented(NamedTuple):
    """The description of an endpoint, and the types of its bodies."""

    summary: str
    body: type | None = None
    answer: type | None = None


_DOCUMENTED = {
    "rank": Documented("Choose an action, or one for each slot", RankBody, RankAnswer),
    "reward": Documented("Send the reward of an event", RewardBody),
    "activate": Documented("Report that a deferred event was shown"),
    "get_event": Documented("Get an event and its rewards", None, EventAnswer),
    "get_configuration": Documented("Get the configuration", None, ConfigurationJSON),
    "put_configuration": Documented(
        "Replace the configuration", ConfigurationJSON, ConfigurationJSON
    ),
    "patch_configuration": Documented(
        "Change some settings", ConfigurationChange, ConfigurationJSON
    ),
    "erase": Documented("Erase the events of a person", ErasureBody, ErasureAnswer),
    "get_status": Documented("Get the status of the service", None, StatusAnswer),
    "get_shadows": Documented("Get what shadow policies would have earned", None, ShadowAnswer),
    "promote_shadow": Documented("Let a shadow policy decide, with what it has learned"),
    "get_lift": Documented("Get the lift over the holdout and the baseline", None, LiftAnswer),
}


def openapi(version: str) -> dict[str, Any]:
    """Return the OpenAPI 3.1 document of all paths for a version of the package."""
    types = [kind for entry in _DOCUMENTED.values() for kind in entry[1:] if kind is not None]
    _, schemas = msgspec.json.schema_components([*types, ErrorBody], ref_template=_REF)
    schemas[RewardBody.__name__]["oneOf"] = _EITHER
    whole, change = (
        schemas[kind.__name__]["properties"] for kind in (ConfigurationJSON, ConfigurationChange)
    )
    for name, default in ServiceConfiguration().to_json().items():
        change[name] |= SETTINGS[name].json_schema()
        whole[name] |= {"default": default, **SETTINGS[name].json_schema()}
    paths: dict[str, dict[str, Any]] = {}
    for pattern, methods in TABLE.items():
        paths["/" + "/".join((PREFIX, *pattern))] = {
            method.lower(): _operation(endpoint, method, has_id=ID in pattern)
            for method, endpoint in methods.items()
        }
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "rbmle",
            "version": version,
            "description": "Decisions that learn: rank actions, and later send the reward of the choice.",
        },
        "security": [{"key": []}],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(endpoint: Endpoint, method: str, *, has_id: bool) -> dict[str, Any]:
    changes, (summary, body, answer) = method != "GET", _DOCUMENTED[endpoint.name]
    faults = [*_ALWAYS]
    if endpoint.name == "promote_shadow":
        faults.append(Fault.NOT_FOUND)
    if endpoint.name == "get_event":  # rewards of unknown events are stored: their rank may be late
        faults.append(Fault.NOT_FOUND)
    if changes:
        faults.append(Fault.CONFLICT)
    if body is not None:
        faults += _WITH_BODY
    described: dict[str, Any] = {
        "operationId": endpoint.name,
        "summary": summary,
        "parameters": [*([_id_of(endpoint)] if has_id else []), *([_REQUEST] if changes else [])],
        "responses": {
            str(endpoint.status): _success(endpoint, answer),
            **{
                str(fault.value): _failure(fault)
                for fault in sorted(faults, key=lambda fault: fault.value)
            },
        },
    }
    if body is not None:
        described["requestBody"] = {"required": True, "content": _json(body)}
    return described


def _id_of(endpoint: Endpoint) -> dict[str, Any]:
    is_shadow = endpoint.name == "promote_shadow"
    return _ID | {"description": "The shadow, percent-encoded"} if is_shadow else _ID


def _json(kind: type) -> dict[str, Any]:
    return {"application/json": {"schema": {"$ref": _REF.format(name=kind.__name__)}}}


def _success(endpoint: Endpoint, answer: type | None) -> dict[str, Any]:
    described: dict[str, Any] = {"description": "Done"}
    if answer is not None:
        described["content"] = _json(answer)
    if endpoint.name == "rank":
        described["links"] = {
            name: {"operationId": name, "parameters": {"id": "$response.body#/event"}}
            for name in _OF_EVENT
        }
    return described


def _failure(fault: Fault) -> dict[str, Any]:
    described: dict[str, Any] = {"description": _DESCRIPTIONS[fault], "content": _json(ErrorBody)}
    if fault in _WAITING:
        described["headers"] = {
            "retry-after": {"schema": {"type": "integer", "minimum": 1}, "required": True}
        }
    return described
