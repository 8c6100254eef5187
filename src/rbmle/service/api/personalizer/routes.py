"""Every call of Personalizer's four clients, by path and method."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from types import MappingProxyType

from rbmle.service.access.keys import Scope
from rbmle.service.api.paths import ID, Table


class Version(Enum):
    """A dialect of Personalizer, by the name it has in a path or query."""

    V1_0 = "v1.0"
    V1_1 = "v1.1-preview.3"
    V2022 = "2022-09-01-preview"


class Operation(Enum):
    """What a client asks."""

    RANK = auto()
    REWARD = auto()
    ACTIVATE = auto()
    RANK_SLOTS = auto()
    REWARD_SLOTS = auto()
    ACTIVATE_SLOTS = auto()
    GET_CONFIGURATION = auto()
    PUT_CONFIGURATION = auto()
    APPLY_EVALUATION = auto()
    GET_POLICY = auto()
    PUT_POLICY = auto()
    RESET_POLICY = auto()
    GET_MODEL = auto()
    PUT_MODEL = auto()
    RESET_MODEL = auto()
    GET_MODEL_PROPERTIES = auto()
    GET_LOG_PROPERTIES = auto()
    DELETE_LOGS = auto()
    LOG_INTERACTIONS = auto()
    LOG_OBSERVATIONS = auto()
    LIST_EVALUATIONS = auto()
    CREATE_EVALUATION = auto()
    GET_EVALUATION = auto()
    DELETE_EVALUATION = auto()
    LIST_FEATURE_IMPORTANCES = auto()
    CREATE_FEATURE_IMPORTANCE = auto()
    GET_FEATURE_IMPORTANCE = auto()
    DELETE_FEATURE_IMPORTANCE = auto()


Do = Operation

_SHARED: Table[Operation] = {
    ("rank",): {"POST": Do.RANK},
    ("events", ID, "reward"): {"POST": Do.REWARD},
    ("events", ID, "activate"): {"POST": Do.ACTIVATE},
    ("multislot", "rank"): {"POST": Do.RANK_SLOTS},
    ("multislot", "events", ID, "reward"): {"POST": Do.REWARD_SLOTS},
    ("multislot", "events", ID, "activate"): {"POST": Do.ACTIVATE_SLOTS},
    ("configurations", "service"): {"GET": Do.GET_CONFIGURATION, "PUT": Do.PUT_CONFIGURATION},
    ("configurations", "policy"): {
        "GET": Do.GET_POLICY,
        "PUT": Do.PUT_POLICY,
        "DELETE": Do.RESET_POLICY,
    },
    ("configurations", "applyfromevaluation"): {"POST": Do.APPLY_EVALUATION},
    ("model",): {"GET": Do.GET_MODEL, "PUT": Do.PUT_MODEL, "DELETE": Do.RESET_MODEL},
    ("model", "properties"): {"GET": Do.GET_MODEL_PROPERTIES},
    ("logs",): {"DELETE": Do.DELETE_LOGS},
    ("logs", "properties"): {"GET": Do.GET_LOG_PROPERTIES},
}

_V1: Table[Operation] = {
    **_SHARED,
    ("logs", "interactions"): {"POST": Do.LOG_INTERACTIONS},
    ("logs", "observations"): {"POST": Do.LOG_OBSERVATIONS},
    ("evaluations",): {"GET": Do.LIST_EVALUATIONS, "POST": Do.CREATE_EVALUATION},
    ("evaluations", ID): {"GET": Do.GET_EVALUATION, "DELETE": Do.DELETE_EVALUATION},
}

_V2022: Table[Operation] = {
    **_SHARED,
    ("evaluations",): {"GET": Do.LIST_EVALUATIONS},
    ("evaluations", ID): {
        "GET": Do.GET_EVALUATION,
        "PUT": Do.CREATE_EVALUATION,
        "DELETE": Do.DELETE_EVALUATION,
    },
    ("featureimportances",): {"GET": Do.LIST_FEATURE_IMPORTANCES},
    ("featureimportances", ID): {
        "GET": Do.GET_FEATURE_IMPORTANCE,
        "PUT": Do.CREATE_FEATURE_IMPORTANCE,
        "DELETE": Do.DELETE_FEATURE_IMPORTANCE,
    },
}

# v1.0 has fewer calls; that it answers more hurts no client.
TABLES: Mapping[Version, Table[Operation]] = MappingProxyType(
    {Version.V1_0: _V1, Version.V1_1: _V1, Version.V2022: _V2022}
)

_DECIDING = frozenset(
    {Do.RANK, Do.REWARD, Do.ACTIVATE, Do.RANK_SLOTS, Do.REWARD_SLOTS, Do.ACTIVATE_SLOTS}
)
_CREATED = frozenset({Do.RANK, Do.RANK_SLOTS})
_EMPTY = frozenset(
    {
        Do.REWARD,
        Do.ACTIVATE,
        Do.REWARD_SLOTS,
        Do.ACTIVATE_SLOTS,
        Do.APPLY_EVALUATION,
        Do.PUT_MODEL,
        Do.RESET_MODEL,
        Do.DELETE_LOGS,
        Do.LOG_INTERACTIONS,
        Do.LOG_OBSERVATIONS,
        Do.DELETE_EVALUATION,
        Do.DELETE_FEATURE_IMPORTANCE,
    }
)


def success(operation: Operation, version: Version) -> int:
    """Return the one status that clients take for success."""
    if operation in _EMPTY:
        return 204
    if operation in _CREATED or (
        operation is Do.CREATE_EVALUATION and version is not Version.V2022
    ):
        return 201
    return 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """What is asked, in which version, of which event or evaluation."""

    operation: Operation
    version: Version
    id: str | None = None  # None: the path has none
    parameters: Mapping[str, str] = field(
        default_factory=dict
    )  # of the query; names in small letters
    is_read: bool  # it changes nothing

    @property
    def scope(self) -> Scope:
        """Return what a key needs."""
        if self.operation in _DECIDING:
            return Scope.DECIDE
        return Scope.READ if self.is_read else Scope.ADMIN

    @property
    def status(self) -> int:
        """Return the status of success."""
        return success(self.operation, self.version)
