"""The contracts that policies and learners of MDPs of this package pass, to test your own."""

from rbmle.testing.learners import check_learner, learner_checks
from rbmle.testing.policies import check_policy, policy_checks

__all__ = ["check_learner", "check_policy", "learner_checks", "policy_checks"]
