"""Our own dialect: `/v1/rank`, `/v1/events/{id}/reward`, and a few more."""

from functools import partial

import msgspec

from rbmle.service.api.base import (
    Dialect,
    EndpointTable,
    Reply,
    Segments,
    changing,
    deciding,
    reading,
    table_of,
)
from rbmle.service.api.faults import Fault, Refusal, RefusedError
from rbmle.service.api.native import bodies
from rbmle.service.api.native.bodies import fault
from rbmle.service.api.operations import Operations

PREFIX = "v1"
REQUEST_HEADER = "idempotency-key"


async def get_event(operations: Operations, id: str, body: bytes) -> bytes:
    """Answer what is known of an event."""
    event = await operations.event(bodies.decode_event(id))
    if event is None:
        raise RefusedError(fault(Fault.NOT_FOUND, f"there is no event {id!r}"))
    return msgspec.json.encode(event)


async def get_configuration(operations: Operations, id: str, body: bytes) -> bytes:
    """Answer how the service decides and learns."""
    return bodies.encode_configuration(operations.configuration)


async def put_configuration(operations: Operations, id: str, body: bytes) -> bytes:
    """Change all of the configuration."""
    await operations.configure(partial(bodies.decode_configuration, body))
    return bodies.encode_configuration(operations.configuration)


async def patch_configuration(operations: Operations, id: str, body: bytes) -> bytes:
    """Change some of the configuration."""
    await operations.configure(partial(bodies.decode_change, body))
    return bodies.encode_configuration(operations.configuration)


async def get_status(operations: Operations, id: str, body: bytes) -> bytes:
    """Answer how the service is."""
    return msgspec.json.encode(operations.status())


TABLE = table_of(
    {
        "POST rank": deciding(
            "rank",
            lambda _, body: bodies.decode_rank(body),
            unpack=lambda _, body: bodies.unpack_rank(body),
            encode=msgspec.json.encode,
        ),
        "GET events/{id}": reading("get_event", get_event),
        "POST events/{id}/reward": deciding("reward", bodies.decode_reward),
        "POST events/{id}/activate": deciding(
            "activate", lambda event, _: bodies.decode_activate(event)
        ),
        "GET configuration": reading("get_configuration", get_configuration),
        "PUT configuration": changing("put_configuration", put_configuration),
        "PATCH configuration": changing("patch_configuration", patch_configuration),
        "GET status": reading("get_status", get_status),
    }
)


def _table(parts: Segments, query: bytes) -> tuple[EndpointTable, Segments] | Refusal:
    return TABLE, parts[1:]


def _refuse(problem: Refusal, path: bytes) -> Reply:
    headers = ((b"allow", ", ".join(problem.allow).encode()),) if problem.allow else ()
    return Reply(problem.status, bodies.encode_problem(problem), headers)


NATIVE = Dialect(
    request_header=REQUEST_HEADER.encode(),
    checks_rewards=True,
    table=_table,
    fault=fault,
    refuse=_refuse,
)
