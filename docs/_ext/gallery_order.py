"""The order of the gallery: from what most readers need to what few do."""

from typing import Any

ORDER = (
    "news",
    "dose_finding",
    "pricing",
    "many_items",
    "warm_start",
    "delayed_rewards",
    "drift",
    "look_inside",
    "own_likelihood",
    "own_policy",
    "pytorch_network",
    "scikit_learn_pipeline",
    "coba_and_river",
    "off_policy_evaluation",
    "daily_peeking",
    "from_personalizer",
    "riverswim",
)


class GalleryOrder:
    """A key to sort the files of the gallery by; those that are not in ORDER come last."""

    def __init__(self, folder: str) -> None:
        """Take the folder of the examples, as sphinx-gallery asks."""

    def __call__(self, file: str) -> tuple[int, str]:
        """Return where a file stands."""
        name = file.removesuffix(".py")
        return (ORDER.index(name) if name in ORDER else len(ORDER), name)

    def __repr__(self) -> str:
        """Return a text that is the same in each build, so that unchanged pages are kept."""
        return "GalleryOrder"


def setup(app: Any) -> dict[str, Any]:
    """Register nothing: conf.py names the class."""
    return {"parallel_read_safe": True, "parallel_write_safe": True}
