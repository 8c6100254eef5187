"""What an operator asks in Personalizer's words: configuration, learning settings, model and log."""

from functools import partial
from typing import Any

import msgspec

from rbmle.core.errors import RBMLEError
from rbmle.core.policy import Policy
from rbmle.policies.specification import name_of
from rbmle.service.api.base import Operate
from rbmle.service.api.faults import RefusedError
from rbmle.service.api.operations import Operations
from rbmle.service.api.personalizer.errors import ErrorCode, problem
from rbmle.service.api.personalizer.settings import (
    decode_configuration,
    decode_policy,
    encode_configuration,
    encode_log_properties,
    encode_model_properties,
)
from rbmle.service.api.personalizer.versions import Version
from rbmle.service.api.personalizer.wire import PolicyBody
from rbmle.service.learning.model import service_policy, settings_in


async def get_configuration(
    version: Version, operations: Operations, id: str, body: bytes
) -> bytes:
    """Answer how the service decides and learns."""
    return encode_configuration(operations.configuration, version)


async def put_configuration(
    version: Version, operations: Operations, id: str, body: bytes
) -> bytes:
    """Change the configuration."""
    await operations.configure(partial(decode_configuration, body))
    return encode_configuration(operations.configuration, version)


async def get_policy(operations: Operations, id: str, body: bytes) -> bytes:
    """Answer which policy decides."""
    return _encoded(operations.policy)


async def put_policy(operations: Operations, id: str, body: bytes) -> bytes:
    """Begin a model of another policy."""
    settings = decode_policy(body)
    return _encoded(await operations.choose_policy(policy_of(settings.name, settings.arguments)))


async def reset_policy(operations: Operations, id: str, body: bytes) -> bytes:
    """Begin a model of the default policy."""
    return _encoded(await operations.choose_policy(None))


async def get_model(operations: Operations, id: str, body: bytes) -> bytes:
    """Export the model."""
    return await operations.export_model()


async def put_model(operations: Operations, id: str, body: bytes) -> bytes:
    """Import a model."""
    await operations.import_model(body)
    return b""


async def reset_model(operations: Operations, id: str, body: bytes) -> bytes:
    """Begin the model anew."""
    await operations.reset_model()
    return b""


async def get_model_properties(operations: Operations, id: str, body: bytes) -> bytes:
    """Answer when the model was begun and last changed."""
    times = await operations.model_times()
    return encode_model_properties(times.created, times.modified)


async def get_log_properties(operations: Operations, id: str, body: bytes) -> bytes:
    """Answer from when to when the log goes."""
    return encode_log_properties(*await operations.log_times())


def _refusing(code: ErrorCode, message: str) -> Operate:
    """Return an operation that cannot be done; `{id}` in its message is that of the path."""

    async def refuse(operations: Operations, id: str, body: bytes) -> bytes:
        raise RefusedError(problem(code, message.replace("{id}", repr(id))))

    return refuse


delete_no_logs = _refusing(
    ErrorCode.NOT_IMPLEMENTED,
    "the model is made from the log; to delete both, stop the service and delete its folder",
)
take_no_logs = _refusing(
    ErrorCode.NOT_IMPLEMENTED, "this service takes no logs of others; send rank and reward calls"
)


def _encoded(policy: Policy[Any]) -> bytes:
    return msgspec.json.encode(PolicyBody(name_of(policy), settings_in(policy)))


def policy_of(name: str, arguments: str) -> Policy[Any]:
    """Return the policy of learning settings; those of Vowpal Wabbit are of another learner."""
    try:
        return service_policy(name, arguments)
    except RBMLEError as error:
        raise RefusedError(
            problem(
                ErrorCode.INVALID_POLICY_CONFIGURATION,
                f"{error}; send the name of a policy, and as arguments key=value with spaces between",
                target="arguments",
            )
        ) from None
