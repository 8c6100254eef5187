"""Is a mushroom of a field guide edible or poisonous?"""

from rbmle.datasets.base import Source

MUSHROOM = Source(
    name="mushroom",
    title="Mushroom",
    file="mushroom.parquet",
    rows=8_124,
    features=22,
    counts=(4_208, 3_916),
    sha256="926cf782232eb4ace1c83cf3104187706d3d6c0839142397783073078b898346",
    licence="CC BY 4.0",
    citation="Mushroom (1981). UCI Machine Learning Repository.",
    doi="10.24432/C5959T",
    openml_id=24,
    openml_version=1,
    shipped=True,
)
