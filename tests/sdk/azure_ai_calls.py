"""Every call of azure-ai-personalizer, and what becomes of it; the same with and without asyncio."""

import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

EVENT = "python/ai é"  # percent-encoded in paths
ACTIONS = [{"id": id, "features": [{"kind": id}]} for id in ("tea", "coffee", "mate")]
RANK = {"contextFeatures": [{"time": "morning", "hour": 7}], "actions": ACTIONS}
SLOTS = [{"id": "top", "baselineAction": "tea"}, {"id": "side", "baselineAction": "coffee"}]
SLOTS_RANK = RANK | {"slots": SLOTS}
BEGIN, END = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC)
EVALUATION = {"name": "one", "startTime": BEGIN, "endTime": END, "policies": []}
IMPORTANCE = {"name": "one", "startTime": BEGIN, "endTime": END}


@dataclass(frozen=True, slots=True, kw_only=True)
class Before:
    """What an operator got, and sends back."""

    configuration: Mapping[str, Any]
    policy: Mapping[str, Any]
    model: bytes


DECISIONS: dict[str, Callable[[Any], Any]] = {
    "rank": lambda client: client.rank(RANK),
    "reward": lambda client: client.reward(EVENT, {"value": 0.5}),
    "activate": lambda client: client.activate(EVENT),
    "rank_multi_slot": lambda client: client.rank_multi_slot(SLOTS_RANK),
    "reward_multi_slot": lambda client: client.reward_multi_slot(
        EVENT, {"reward": [{"slotId": "top", "value": 1.0}]}
    ),
    "activate_multi_slot": lambda client: client.activate_multi_slot(EVENT),
}
OPERATIONS: dict[str, Callable[[Any, Before], Any]] = {
    "get_service_configuration": lambda admin, _: admin.get_service_configuration(),
    "update_service_configuration": lambda admin, before: admin.update_service_configuration(
        before.configuration
    ),
    "get_policy": lambda admin, _: admin.get_policy(),
    "update_policy": lambda admin, before: admin.update_policy(before.policy),
    "reset_policy": lambda admin, _: admin.reset_policy(),
    "export_model": lambda admin, _: admin.export_model(signed=True),
    "import_model": lambda admin, before: admin.import_model(io.BytesIO(before.model)),
    "reset_model": lambda admin, _: admin.reset_model(),
    "get_model_properties": lambda admin, _: admin.get_model_properties(),
    "get_log_properties": lambda admin, _: admin.get_log_properties(),
    "list_evaluations": lambda admin, _: admin.list_evaluations(top=3),
    "list_feature_importances": lambda admin, _: admin.list_feature_importances(top=3),
    "delete_logs": lambda admin, _: admin.delete_logs(),
    "create_evaluation": lambda admin, _: admin.create_evaluation("one", EVALUATION),
    "get_evaluation": lambda admin, _: admin.get_evaluation("none", start_time=BEGIN, end_time=END),
    "delete_evaluation": lambda admin, _: admin.delete_evaluation("none"),
    "apply_from_evaluation": lambda admin, _: admin.apply_from_evaluation(
        {"evaluationId": "none", "policyName": "two"}
    ),
    "create_feature_importance": lambda admin, _: admin.create_feature_importance(
        "one", IMPORTANCE
    ),
    "get_feature_importance": lambda admin, _: admin.get_feature_importance("none"),
    "delete_feature_importance": lambda admin, _: admin.delete_feature_importance("none"),
}
REFUSED = {
    "apply_from_evaluation": 404,
    "get_evaluation": 404,
    "delete_evaluation": 404,
    "get_feature_importance": 404,
    "delete_feature_importance": 404,
}
CODES = {404: {"EvaluationNotFound", "ResourceNotFound"}, 501: {"NotImplemented"}}
