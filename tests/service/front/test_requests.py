"""Requests are checked when they are made."""

import pytest

from rbmle.service.front.requests import RankRequest, RequestError, RewardRequest


def test_a_request_made_by_hand_is_checked_too() -> None:
    with pytest.raises(RequestError, match="0 actions"):
        RankRequest(actions=[])
    with pytest.raises(RequestError, match="from -1 to 1"):
        RewardRequest(event="e", values={"s": float("nan")})
    with pytest.raises(RequestError, match="no reward"):
        RewardRequest(event="e", values={})
