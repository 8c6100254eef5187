"""The OpenAPI document of our own wire format, made from the types that decode it."""

from typing import Any

import msgspec

from rbmle.service.configuration import ConfigurationJSON
from rbmle.service.dialects.base import Fault
from rbmle.service.dialects.native import PREFIX, REQUEST_HEADER, SUCCESS, TABLE, Operation
from rbmle.service.dialects.native_wire import (
    ErrorBody,
    EventBody,
    RankAnswerBody,
    RankBody,
    RewardBody,
    StatusBody,
)
from rbmle.service.dialects.paths import ID
from rbmle.service.requests import LONGEST_ID

_REF = "#/components/schemas/{name}"

_SUMMARIES = {
    Operation.RANK: "Choose an action, or one for each slot",
    Operation.REWARD: "Say what an event was worth",
    Operation.ACTIVATE: "Say that a deferred event was shown",
    Operation.GET_EVENT: "What is known of an event",
    Operation.GET_CONFIGURATION: "How the service decides and learns",
    Operation.PUT_CONFIGURATION: "Change how the service decides and learns",
    Operation.GET_STATUS: "How the service is",
}

_BODIES: dict[Operation, type] = {
    Operation.RANK: RankBody,
    Operation.REWARD: RewardBody,
    Operation.PUT_CONFIGURATION: ConfigurationJSON,
}

_ANSWERS: dict[Operation, type] = {
    Operation.RANK: RankAnswerBody,
    Operation.GET_EVENT: EventBody,
    Operation.GET_CONFIGURATION: ConfigurationJSON,
    Operation.PUT_CONFIGURATION: ConfigurationJSON,
    Operation.GET_STATUS: StatusBody,
}

_DESCRIPTIONS = {
    Fault.MALFORMED: "The path or the body cannot be meant",
    Fault.UNAUTHORIZED: "There is no key, or it is none of ours",
    Fault.FORBIDDEN: "The key is for reading only",
    Fault.NOT_FOUND: "There is no such event",
    Fault.METHOD_NOT_ALLOWED: "The path has other methods",
    Fault.TIMEOUT: "The request took too long to arrive",
    Fault.CONFLICT: "The same event or idempotency key came with another body",
    Fault.TOO_LARGE: "The body is too large",
    Fault.UNSUPPORTED_MEDIA_TYPE: "The body is not application/json",
    Fault.THROTTLED: "Too many attempts failed; try again after Retry-After seconds",
    Fault.UNAVAILABLE: "The log cannot be written now; try again after Retry-After seconds",
}

_ALWAYS = (Fault.MALFORMED, Fault.UNAUTHORIZED, Fault.THROTTLED, Fault.UNAVAILABLE)
_WITH_ID = (Fault.NOT_FOUND,)
_CHANGING = (Fault.FORBIDDEN, Fault.CONFLICT)
_WITH_BODY = (Fault.TIMEOUT, Fault.TOO_LARGE, Fault.UNSUPPORTED_MEDIA_TYPE)
_WAITING = (Fault.THROTTLED, Fault.UNAVAILABLE)


def openapi(version: str) -> dict[str, Any]:
    """Return the OpenAPI 3.1 document of all paths, for this version of the package."""
    types = (*_BODIES.values(), *_ANSWERS.values(), ErrorBody)
    _, schemas = msgspec.json.schema_components(types, ref_template=_REF)
    paths: dict[str, dict[str, Any]] = {}
    for pattern, methods in TABLE.items():
        paths["/" + "/".join((PREFIX, *pattern))] = {
            method.lower(): _operation(operation, method, has_id=ID in pattern)
            for method, operation in methods.items()
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


def _operation(operation: Operation, method: str, *, has_id: bool) -> dict[str, Any]:
    changes, body = method != "GET", _BODIES.get(operation)
    faults = [*_ALWAYS]
    faults += _WITH_ID if has_id else ()
    faults += _CHANGING if changes else ()
    faults += _WITH_BODY if body is not None else ()
    described: dict[str, Any] = {
        "operationId": operation.name.lower(),
        "summary": _SUMMARIES[operation],
        "parameters": [*([_ID] if has_id else []), *([_REQUEST] if changes else [])],
        "responses": {
            str(SUCCESS[operation]): _success(_ANSWERS.get(operation)),
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
    "schema": {"type": "string", "minLength": 1, "maxLength": LONGEST_ID},
}
_REQUEST = {
    "name": REQUEST_HEADER,
    "in": "header",
    "required": False,
    "description": "The same in each attempt of one request, so that it counts once",
    "schema": {"type": "string", "minLength": 1, "maxLength": LONGEST_ID, "pattern": "^[!-~]+$"},
}


def _json(kind: type) -> dict[str, Any]:
    return {"application/json": {"schema": {"$ref": _REF.format(name=kind.__name__)}}}


def _success(answer: type | None) -> dict[str, Any]:
    if answer is None:
        return {"description": "Done"}
    return {"description": "Done", "content": _json(answer)}


def _failure(fault: Fault) -> dict[str, Any]:
    described: dict[str, Any] = {"description": _DESCRIPTIONS[fault], "content": _json(ErrorBody)}
    if fault in _WAITING:
        described["headers"] = {
            "retry-after": {"schema": {"type": "integer", "minimum": 1}, "required": True}
        }
    return described
