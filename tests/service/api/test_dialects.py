"""What holds for both dialects: paths and bodies, however strange."""

from urllib.parse import quote

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rbmle.service.api.base import Request, Route
from rbmle.service.api.dialects import dialect_of, resolve
from rbmle.service.api.faults import Refusal, RefusedError
from rbmle.service.api.native import bodies as native
from rbmle.service.api.native.dialect import NATIVE
from rbmle.service.api.personalizer import bodies as personalizer
from rbmle.service.api.personalizer.dialect import PERSONALIZER
from rbmle.service.api.personalizer.errors import (
    encode_problem,
    error_headers,
)
from rbmle.service.api.personalizer.settings import (
    decode_configuration,
    decode_policy,
)
from rbmle.service.api.personalizer.versions import Version, version_of
from rbmle.service.configuration import ServiceConfiguration
from tests.service.api.samples import V1_0, V1_1, V2022, asked, refusal


@pytest.mark.parametrize(
    "event", ["a/b é", "..", "{id}", "100%", "a?b#c", "é" * 256, "+ ;", "reward"]
)
@pytest.mark.parametrize("prefix", [V1_0, V1_1, V2022])
def test_an_event_id_comes_as_it_is(prefix: str, event: str) -> None:
    assert asked("POST", f"{prefix}/events/{quote(event, safe='')}/reward").id == event
    assert asked("POST", f"{prefix}/multislot/events/{quote(event, safe='')}/activate").id == event
    native_route = NATIVE.route("GET", f"/v1/events/{quote(event, safe='')}".encode(), b"")
    assert isinstance(native_route, Route)
    assert native_route.id == event


def test_a_method_that_is_not_there_names_those_that_are() -> None:
    found = PERSONALIZER.route("POST", b"/personalizer/v1.0/model", b"")
    assert isinstance(found, Refusal)
    assert error_headers(found) == (
        ("x-ms-error-code", "MethodNotAllowed"),
        ("allow", "DELETE, GET, PUT"),
    )
    here = NATIVE.route("DELETE", b"/v1/configuration", b"")
    assert isinstance(here, Refusal)
    assert (here.status, here.code, here.allow) == (
        405,
        "method_not_allowed",
        ("GET", "PATCH", "PUT"),
    )


@pytest.mark.parametrize(
    "path", [b"", b"/", b"/metrics", b"/personalizers/v1.0/rank", b"/v2/rank", b"/%FF"]
)
def test_paths_of_others_are_left_to_them(path: bytes) -> None:
    assert dialect_of(path) is None
    found = resolve(Request(method="POST", path=path, query=b"", headers={}, address=""))
    assert found.problem is not None
    assert found.problem.status == 404


PIECES = st.lists(
    st.sampled_from(
        [
            b"/",
            b"personalizer",
            b"v1",
            b"v1.0",
            b"events",
            b"rank",
            b"%2F",
            b"%",
            b"%zz",
            b"\xff",
            b"?",
            b"{id}",
        ]
    )
    | st.binary(max_size=4),
    max_size=12,
).map(b"".join)


@given(st.sampled_from(["GET", "POST", "", "é"]) | st.text(), st.binary() | PIECES, st.binary())
def test_no_path_is_too_strange_to_route(method: str, raw_path: bytes, query: bytes) -> None:
    for dialect in (PERSONALIZER, NATIVE):
        for path in (raw_path, b"/v1/" + raw_path, b"/personalizer/v1.0/" + raw_path):
            found = dialect.route(method, path, query)
            assert isinstance(found, Refusal | Route)
            if isinstance(found, Refusal):
                assert found.status in {400, 404, 405}
                assert encode_problem(found, version_of(path))
                assert native.encode_problem(found)


HOSTILE = [
    b"",
    b"{",
    b"\xff",
    b'{"value": NaN}',
    b'{"value": Infinity}',
    b'{"value": 1} x',
    b"\xef\xbb\xbf{}",
    b'{"x": "\\ud800"}',
    b'{"x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
]


@pytest.mark.parametrize("body", HOSTILE)
def test_what_is_no_json_is_a_bad_request(body: bytes) -> None:
    refused = refusal(lambda: personalizer.decode_reward("e", body))
    assert (refused.status, refused.code) == (400, "BadRequest")
    assert refusal(lambda: native.decode_reward("e", body)).code == "malformed"


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "actions",
                    "id",
                    "features",
                    "slots",
                    "eventId",
                    "event",
                    "value",
                    "reward",
                    "slotId",
                ]
            )
            | st.text(max_size=3),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(JSON.map(msgspec.json.encode) | st.binary())
def test_any_body_is_understood_or_refused(body: bytes) -> None:
    for decode in (
        personalizer.decode_rank,
        personalizer.decode_slots_rank,
        lambda b: personalizer.decode_reward("e", b),
        lambda b: personalizer.decode_slots_reward("e", b),
        lambda b: decode_configuration(b, ServiceConfiguration()),
        decode_policy,
        native.decode_rank,
        lambda b: native.decode_reward("e", b),
        lambda b: native.decode_configuration(b, ServiceConfiguration()),
        lambda b: native.decode_change(b, ServiceConfiguration()),
    ):
        try:
            decode(body)
        except RefusedError as error:
            assert error.problem.status == 400
            encode_problem(error.problem, Version.V1_0)
