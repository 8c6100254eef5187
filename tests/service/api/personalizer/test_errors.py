"""Personalizer's error codes and its error object."""

from pathlib import Path

import msgspec

import rbmle.service
from rbmle.service.api import native
from rbmle.service.api.base import Fault
from rbmle.service.api.personalizer.errors import (
    CODES,
    ErrorCode,
    Version,
    encode_problem,
    fault,
    problem,
)


def test_errors_have_personalizers_shape() -> None:
    refused = problem(ErrorCode.INVALID_RANK_REQUEST, "no actions", target="actions")
    assert encode_problem(refused, Version.V2022) == (
        b'{"error":{"code":"InvalidRankRequest","message":"no actions","target":"actions"}}'
    )
    assert encode_problem(refused, Version.V1_0) == (
        b'{"error":{"code":"BadRequest","message":"no actions","target":"actions",'
        b'"innerError":{"code":"InvalidRankRequest"}}}'
    )


def test_v1_0_has_three_codes_and_those_of_its_gateway() -> None:
    seen = {
        msgspec.json.decode(encode_problem(problem(code, "x"), Version.V1_0))["error"]["code"]
        for code in ErrorCode
    }
    assert seen == {"BadRequest", "ResourceNotFound", "InternalServerError", "401", "403", "429"}


def test_every_error_code_is_used() -> None:
    source = "".join(path.read_text() for path in Path(rbmle.service.__path__[0]).rglob("*.py"))
    assert [code.name for code in ErrorCode if f"ErrorCode.{code.name}" not in source] == []


def test_codes_are_distinct_and_every_fault_has_one() -> None:
    assert len({code.code for code in ErrorCode}) == len(ErrorCode)
    assert set(CODES) == set(Fault)
    for what in Fault:
        assert fault(what, "x").status == what.value == native.fault(what, "x").status
