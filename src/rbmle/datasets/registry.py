"""The datasets that are known by name."""

from rbmle.datasets.adult import ADULT
from rbmle.datasets.base import Source
from rbmle.datasets.covertype import COVERTYPE
from rbmle.datasets.digits import DIGITS
from rbmle.datasets.magic import MAGIC
from rbmle.datasets.mnist import MNIST
from rbmle.datasets.mushroom import MUSHROOM
from rbmle.datasets.shuttle import SHUTTLE

DATASETS: dict[str, Source] = {
    source.name: source for source in (ADULT, COVERTYPE, MAGIC, MNIST, MUSHROOM, SHUTTLE, DIGITS)
}
