"""What holds for both dialects: paths and bodies, however strange."""

from urllib.parse import quote

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rbmle.service.api import native
from rbmle.service.api.base import RefusedError
from rbmle.service.api.personalizer import bodies as personalizer
from rbmle.service.api.personalizer.dialect import decode_configuration, decode_policy
from rbmle.service.api.personalizer.errors import Version, encode_problem, error_headers
from rbmle.service.api.routes import find_route, is_api
from rbmle.service.settings import ServiceConfiguration
from tests.service.api.samples import V1_0, V1_1, V2022, asked, refusal


@pytest.mark.parametrize(
    "event", ["a/b é", "..", "{id}", "100%", "a?b#c", "é" * 256, "+ ;", "reward"]
)
@pytest.mark.parametrize("prefix", [V1_0, V1_1, V2022])
def test_an_event_id_is_decoded_from_the_path(prefix: str, event: str) -> None:
    assert asked("POST", f"{prefix}/events/{quote(event, safe='')}/reward").id == event
    assert asked("POST", f"{prefix}/multislot/events/{quote(event, safe='')}/activate").id == event
    assert asked("GET", f"/v1/events/{quote(event, safe='')}").id == event


def test_an_unknown_method_is_refused_with_the_allowed_ones() -> None:
    problem = find_route("POST", b"/personalizer/v1.0/model", b"").problem
    assert problem is not None
    assert error_headers(problem) == (
        ("x-ms-error-code", "MethodNotAllowed"),
        ("allow", "DELETE, GET, PUT"),
    )
    problem = find_route("DELETE", b"/v1/configuration", b"").problem
    assert problem is not None
    assert (problem.status, problem.code, problem.allow) == (
        405,
        "method_not_allowed",
        ("GET", "PATCH", "PUT"),
    )


@pytest.mark.parametrize(
    "path", [b"", b"/", b"/metrics", b"/personalizers/v1.0/rank", b"/v2/rank", b"/%FF"]
)
def test_paths_of_others_are_not_of_the_api(path: bytes) -> None:
    assert not is_api(path)


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
def test_any_path_is_routed_or_refused(method: str, raw_path: bytes, query: bytes) -> None:
    is_api(raw_path)
    for prefix in (b"/v1/", b"/personalizer/v1.0/", b"/personalizer/"):
        assert is_api(prefix + raw_path)
        route = find_route(method, prefix + raw_path, query)
        if route.problem is not None:
            assert route.problem.status in {400, 404, 405}
            assert route.dialect.refuse(route.problem).body


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
def test_invalid_json_is_a_bad_request(body: bytes) -> None:
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
def test_any_body_is_decoded_or_refused(body: bytes) -> None:
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
