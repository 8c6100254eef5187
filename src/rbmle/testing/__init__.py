"""The contracts that this package's policies and learners of MDPs keep, to test your own."""

from rbmle.testing.learners import check_learner, learner_checks
from rbmle.testing.policies import check_policy, policy_checks

__all__ = ["check_learner", "check_policy", "learner_checks", "policy_checks"]
