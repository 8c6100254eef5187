"""Handwritten digits of 28 × 28 pixels."""

from rbmle.datasets.base import Source

MNIST = Source(
    name="mnist",
    title="MNIST",
    file="mnist.parquet",
    rows=70_000,
    features=784,
    counts=(6_903, 7_877, 6_990, 7_141, 6_824, 6_313, 6_876, 7_293, 6_825, 6_958),
    sha256="74e34295734f36115cd9ef472116d6aab50cb5723223f338930bc06c581e1c3a",
    licence="CC BY-SA 3.0 (as commonly given)",
    citation="LeCun, Y., Bottou, L., Bengio, Y. and Haffner, P. (1998). Gradient-based "
    "learning applied to document recognition. Proceedings of the IEEE 86(11).",
    doi="10.1109/5.726791",
    openml_id=554,
    openml_version=1,
    shipped=False,
)
