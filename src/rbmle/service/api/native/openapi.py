"""The OpenAPI document of our own wire format, made from the types that decode it."""

from typing import Any, NamedTuple

import msgspec

from rbmle.service.api.base import Endpoint
from rbmle.service.api.faults import Fault
from rbmle.service.api.native.dialect import PREFIX, REQUEST_HEADER, TABLE
from rbmle.service.api.native.wire import (
    NO_CONTROLS,
    ErrorBody,
    RankBody,
    RewardBody,
)
from rbmle.service.api.paths import ID
from rbmle.service.configuration import SETTINGS, ConfigurationChange, ServiceConfiguration
from rbmle.service.deciding.requests import LONGEST_ID, EventAnswer, RankAnswer, StatusAnswer

_REF = "#/components/schemas/{name}"


ConfigurationJSON = msgspec.defstruct(
    "ConfigurationJSON",
    [(name, row.kind.json) for name, row in SETTINGS.items()],
    forbid_unknown_fields=True,
    namespace={
        "__doc__": "The configuration as JSON; durations as in ISO 8601, `PT10M`, and dates too."
    },
)


class Documented(NamedTuple):
    """What is said of an endpoint; None: it has no body."""

    summary: str
    body: type | None = None
    answer: type | None = None


_DOCUMENTED = {
    "rank": Documented("Choose an action, or one for each slot", RankBody, RankAnswer),
    "reward": Documented("Say what an event was worth", RewardBody),
    "activate": Documented("Say that a deferred event was shown"),
    "get_event": Documented("What is known of an event", None, EventAnswer),
    "get_configuration": Documented("How the service decides and learns", None, ConfigurationJSON),
    "put_configuration": Documented(
        "Set all of how the service decides and learns", ConfigurationJSON, ConfigurationJSON
    ),
    "patch_configuration": Documented(
        "Change some of how the service decides and learns", ConfigurationChange, ConfigurationJSON
    ),
    "get_status": Documented("How the service is", None, StatusAnswer),
}

_DESCRIPTIONS = {
    Fault.MALFORMED: "The path or the body is not valid",
    Fault.UNAUTHORIZED: "The key is missing or not valid",
    Fault.FORBIDDEN: "The scope of the key does not allow this",
    Fault.NOT_FOUND: "There is no such event",
    Fault.METHOD_NOT_ALLOWED: "The path does not have this method",
    Fault.TIMEOUT: "The request took too long to arrive",
    Fault.CONFLICT: "The same event or idempotency key came with another body",
    Fault.TOO_LARGE: "The body is too large",
    Fault.THROTTLED: "Too many attempts failed; try again after Retry-After seconds",
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
_WITH_ID = (Fault.NOT_FOUND,)
_CHANGING = (Fault.CONFLICT,)
_WITH_BODY = (Fault.TIMEOUT, Fault.TOO_LARGE)
_WAITING = (Fault.THROTTLED, Fault.UNAVAILABLE)


def openapi(version: str) -> dict[str, Any]:
    """Return the OpenAPI 3.1 document of all paths, for this version of the package."""
    types = [kind for entry in _DOCUMENTED.values() for kind in entry[1:] if kind is not None]
    _, schemas = msgspec.json.schema_components([*types, ErrorBody], ref_template=_REF)
    schemas[RewardBody.__name__]["oneOf"] = _EITHER
    whole, change = (
        schemas[kind.__name__]["properties"] for kind in (ConfigurationJSON, ConfigurationChange)
    )
    for name, default in ServiceConfiguration().to_json().items():
        change[name] |= SETTINGS[name].described()
        whole[name] |= {"default": default, **SETTINGS[name].described()}
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
            "description": "Decisions that learn: rank actions, and say later what the choice was worth.",
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
    faults += _WITH_ID if has_id else ()
    faults += _CHANGING if changes else ()
    faults += _WITH_BODY if body is not None else ()
    described: dict[str, Any] = {
        "operationId": endpoint.name,
        "summary": summary,
        "parameters": [*([_ID] if has_id else []), *([_REQUEST] if changes else [])],
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
    "description": "The same in each attempt of one request, so that it counts once",
    "schema": {"type": "string", "maxLength": LONGEST_ID, "pattern": "^[\\t -~]*$"},
}
_OF_EVENT = ("get_event", "reward", "activate")


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
