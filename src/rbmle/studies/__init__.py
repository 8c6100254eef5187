"""The paper, one file per table or figure, and studies of our own."""

from rbmle.studies import classical, pessimism, riverswim, section_3, table_3
from rbmle.studies.bakeoff import BAKEOFF
from rbmle.studies.base import Measurement, Study
from rbmle.studies.everyday import EVERYDAY_DEVELOPMENT, EVERYDAY_REPORTED
from rbmle.studies.figure_1 import FIGURE_1
from rbmle.studies.figure_2 import FIGURE_2
from rbmle.studies.figure_3 import FIGURE_3
from rbmle.studies.figure_4 import FIGURE_4
from rbmle.studies.plan import Plan
from rbmle.studies.published import PAPER
from rbmle.studies.table_1 import TABLE_1
from rbmle.studies.table_2 import TABLE_2
from rbmle.studies.tuned import Tuned

STUDIES = {
    study.name: study
    for study in (
        TABLE_1,
        TABLE_2,
        FIGURE_1,
        FIGURE_2,
        FIGURE_3,
        FIGURE_4,
        BAKEOFF,
        EVERYDAY_REPORTED,
        EVERYDAY_DEVELOPMENT,
    )
}
MEASURED = {
    study.NAME: Measurement(title=study.TITLE, write=study.write_table)
    for study in (table_3, section_3, riverswim, classical, pessimism)
}

__all__ = ["MEASURED", "PAPER", "STUDIES", "Measurement", "Plan", "Study", "Tuned"]
