"""Decisions and rewards for tests of statistics."""

from typing import Any

from rbmle.service.log.records import NO_FEATURES, Decided, OfferedAction, Play


def decided(*plays: Play, **changes: Any) -> Decided:
    return Decided(
        context=NO_FEATURES,
        actions=[OfferedAction(id=id) for id in "abcd"],
        plays=list(plays),
        digest="",
        learned=0,
        **changes,
    )
