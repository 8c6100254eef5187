"""Does a person of the 1994 US census earn more than 50,000 dollars a year?"""

from rbmle.datasets.base import Source

ADULT = Source(
    name="adult",
    title="Adult (Census Income)",
    file="adult.parquet",
    rows=48_842,
    features=14,
    counts=(37_155, 11_687),
    sha256="7fc6d5e5c3c9f1a6d74f4fa24a184edf424172d731e883e41a0d403c3b48eb37",
    licence="CC BY 4.0",
    citation="Becker, B. and Kohavi, R. (1996). Adult. UCI Machine Learning Repository.",
    doi="10.24432/C5XW20",
    openml_id=1590,
    openml_version=2,
    shipped=True,
)
