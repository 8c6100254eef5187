"""What does not work is said once, and so is that it works again."""

from structlog.testing import capture_logs

from rbmle.service.log.outage import Outage


def test_an_outage_is_said_once_when_it_begins_and_once_when_it_is_over() -> None:
    with capture_logs() as lines:
        outage = Outage("write the log")
        outage.worked()
        assert lines == []
        for why in ("the disk is full", "the disk is still full", "the disk is full"):
            outage.failed(why)
        assert [(line["log_level"], line["event"], line["why"]) for line in lines] == [
            ("error", "cannot write the log", "the disk is full")
        ]
        assert outage.failure is not None
        outage.worked()
        outage.worked()
    assert [line["event"] for line in lines] == ["cannot write the log", "can write the log again"]
    assert lines[1]["after_seconds"] >= 0
    assert outage.failure is None
