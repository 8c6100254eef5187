"""In which of seven states are the radiators of a space shuttle?"""

from rbmle.datasets.base import Source

SHUTTLE = Source(
    name="shuttle",
    title="Statlog (Shuttle)",
    file="shuttle.parquet",
    rows=58_000,
    features=9,
    counts=(45_586, 50, 171, 8_903, 3_267, 10, 13),
    sha256="7f63f49b06a0246ed688132f7823c3e10b57f4e3d283be872db16d3a669a8980",
    licence="CC BY 4.0",
    citation="Catlett, J. Statlog (Shuttle). UCI Machine Learning Repository.",
    doi="10.24432/C5WS31",
    openml_id=40685,
    openml_version=1,
    shipped=True,
)
