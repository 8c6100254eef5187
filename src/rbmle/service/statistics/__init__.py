"""What the service has earned, and what others would have."""

from rbmle.service.statistics.summary import Statistics, StatisticsSummary
from rbmle.service.statistics.tally import BINS, MOST_ACTIONS

__all__ = ["BINS", "MOST_ACTIONS", "Statistics", "StatisticsSummary"]
