"""The contracts of policies and of learners of MDPs, shipped: what ours pass, your own can be tested by."""

from rbmle.testing.checks import check_policy, policy_checks
from rbmle.testing.learners import check_learner, learner_checks

__all__ = ["check_learner", "check_policy", "learner_checks", "policy_checks"]
