"""Personalizer's error codes and its error object."""

from enum import Enum
from typing import Any

import msgspec

from rbmle.service.api.base import Fault, Refusal


class Version(Enum):
    """A version of Personalizer's API, by its name in a path or query."""

    V1_0 = "v1.0"
    V1_1 = "v1.1-preview.3"
    V2022 = "2022-09-01-preview"


class ErrorCode(Enum):
    """A code and its HTTP status, as in Personalizer's API and its open successor; the last three are ours."""

    BAD_REQUEST = ("BadRequest", 400)
    INVALID_SERVICE_CONFIGURATION = ("InvalidServiceConfiguration", 400)
    INVALID_LEARNING_MODE = ("InvalidLearningModeServiceConfiguration", 400)
    INVALID_POLICY_CONFIGURATION = ("InvalidPolicyConfiguration", 400)
    INVALID_POLICY_CONTRACT = ("InvalidPolicyContract", 400)
    INVALID_REWARD_REQUEST = ("InvalidRewardRequest", 400)
    INVALID_EVENT_ID_TO_ACTIVATE = ("InvalidEventIdToActivate", 400)
    INVALID_RANK_REQUEST = ("InvalidRankRequest", 400)
    INVALID_REWARD_WAIT_TIME = ("InvalidRewardWaitTime", 400)
    INVALID_LOG_RETENTION_DAYS = ("InvalidLogRetentionDays", 400)
    INVALID_MODEL_RETRAIN_DAYS = ("InvalidModelRetrainDays", 400)
    RESOURCE_NOT_FOUND = ("ResourceNotFound", 404)
    EVALUATION_NOT_FOUND = ("EvaluationNotFound", 404)
    REQUEST_TIMEOUT = ("RequestTimeout", 408)
    PAYLOAD_SIZE_EXCEEDED = ("PayloadSizeExceeded", 413)  # 400 there; clients see the same code
    INTERNAL_SERVER_ERROR = ("InternalServerError", 500)
    OPERATION_NOT_ALLOWED = ("OperationNotAllowed", 503)
    ACCESS_DENIED = ("401", 401)  # from Personalizer's gateway, as are the next two
    FORBIDDEN = ("403", 403)
    TOO_MANY_REQUESTS = ("429", 429)
    METHOD_NOT_ALLOWED = ("MethodNotAllowed", 405)
    CONFLICT = ("Conflict", 409)
    NOT_IMPLEMENTED = ("NotImplemented", 501)

    @property
    def code(self) -> str:
        """The code on the wire."""
        return self.value[0]

    @property
    def status(self) -> int:
        """The HTTP status."""
        return self.value[1]


CODES = {
    Fault.MALFORMED: ErrorCode.BAD_REQUEST,
    Fault.UNAUTHORIZED: ErrorCode.ACCESS_DENIED,
    Fault.FORBIDDEN: ErrorCode.FORBIDDEN,
    Fault.NOT_FOUND: ErrorCode.RESOURCE_NOT_FOUND,
    Fault.METHOD_NOT_ALLOWED: ErrorCode.METHOD_NOT_ALLOWED,
    Fault.TIMEOUT: ErrorCode.REQUEST_TIMEOUT,
    Fault.CONFLICT: ErrorCode.CONFLICT,
    Fault.TOO_LARGE: ErrorCode.PAYLOAD_SIZE_EXCEEDED,
    Fault.THROTTLED: ErrorCode.TOO_MANY_REQUESTS,
    Fault.INTERNAL: ErrorCode.INTERNAL_SERVER_ERROR,
    Fault.NOT_IMPLEMENTED: ErrorCode.NOT_IMPLEMENTED,
    Fault.UNAVAILABLE: ErrorCode.OPERATION_NOT_ALLOWED,
}


def problem(code: ErrorCode, message: str, *, target: str | None = None) -> Refusal:
    """Return a refusal with one of Personalizer's codes."""
    return Refusal(status=code.status, code=code.code, message=message, target=target)


def fault(what: Fault, message: str) -> Refusal:
    """Return a refusal for a fault that any request can have."""
    return problem(CODES[what], message)


def encode_problem(refusal: Refusal, version: Version) -> bytes:
    """Return the error object; v1.0 has three codes, with the finer code as the inner error."""
    error: dict[str, Any] = {"code": refusal.code, "message": refusal.message}
    if refusal.target is not None:
        error["target"] = refusal.target
    if version is Version.V1_0 and not refusal.code.isdigit():
        error["code"] = _coarse_code(refusal.status).code
        if error["code"] != refusal.code:
            error["innerError"] = {"code": refusal.code}
    return msgspec.json.encode({"error": error})


def error_headers(refusal: Refusal) -> tuple[tuple[str, str], ...]:
    """Return the headers of an error."""
    allow = (("allow", ", ".join(refusal.allow)),) if refusal.allow else ()
    return (("x-ms-error-code", refusal.code), *allow)


def _coarse_code(status: int) -> ErrorCode:
    if status >= ErrorCode.INTERNAL_SERVER_ERROR.status:
        return ErrorCode.INTERNAL_SERVER_ERROR
    if status == ErrorCode.RESOURCE_NOT_FOUND.status:
        return ErrorCode.RESOURCE_NOT_FOUND
    return ErrorCode.BAD_REQUEST
