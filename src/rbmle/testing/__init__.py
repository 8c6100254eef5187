"""The contract of policies, shipped: what ours pass, a policy of your own can be tested by."""

from rbmle.testing.checks import check_policy, policy_checks

__all__ = ["check_policy", "policy_checks"]
