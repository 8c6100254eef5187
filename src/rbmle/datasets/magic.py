"""Was the shower of light in a telescope made by a gamma ray or by a hadron?"""

from rbmle.datasets.base import Source

MAGIC = Source(
    name="magic",
    title="MAGIC Gamma Telescope",
    file="magic.parquet",
    rows=19_020,
    features=10,
    counts=(12_332, 6_688),
    sha256="aaa2ee1390d9f20d60850925320e48de20fd87689c335369d887119cb0f08a34",
    licence="CC BY 4.0",
    citation="Bock, R. (2004). MAGIC Gamma Telescope. UCI Machine Learning Repository.",
    doi="10.24432/C52C8B",
    openml_id=1120,
    openml_version=1,
    shipped=True,
)
