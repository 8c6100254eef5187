"""Which of seven kinds of forest grows on a patch of 30 × 30 metres?"""

from rbmle.datasets.base import Source

COVERTYPE = Source(
    name="covertype",
    title="Covertype",
    file="covertype.parquet",
    rows=581_012,
    features=54,
    counts=(211_840, 283_301, 35_754, 2_747, 9_493, 17_367, 20_510),
    sha256="4a7e007aba1b1a36162af430c4b932740a90a51191949e1c6454d5db2d73e49c",
    licence="CC BY 4.0",
    citation="Blackard, J. (1998). Covertype. UCI Machine Learning Repository.",
    doi="10.24432/C50K5N",
    openml_id=1596,
    openml_version=3,
    shipped=False,
)
