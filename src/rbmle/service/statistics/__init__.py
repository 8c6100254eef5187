"""What the service has earned, and what others would have."""

from rbmle.service.statistics.summary import BINS, MOST_ACTIONS, Statistics, StatisticsSummary

__all__ = ["BINS", "MOST_ACTIONS", "Statistics", "StatisticsSummary"]
