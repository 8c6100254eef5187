"""Paths, bodies and helpers that tests of both dialects share."""

from datetime import UTC, datetime
from typing import Any

import pytest

from rbmle.service.api.base import Refusal, RefusedError, Route
from rbmle.service.api.routes import find_route

V1_0, V1_1, V2022 = "/personalizer/v1.0", "/personalizer/v1.1-preview.3", "/personalizer"
LATER = "api-version=2022-09-01-preview"
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
DAY = datetime(2019, 1, 19, tzinfo=UTC)


def asked(method: str, path: str) -> Route:
    query = b"" if "/v1." in path.lower() else LATER.encode()
    route = find_route(method, path.encode(), query)
    assert route.problem is None, route.problem
    return route


def refusal(call: Any) -> Refusal:
    with pytest.raises(RefusedError) as caught:
        call()
    return caught.value.problem
