"""The tables and figures of the paper, and studies of our own."""

from rbmle.studies import classical, conservative, pessimism, riverswim, section_3, timing
from rbmle.studies.bakeoff import BAKEOFF
from rbmle.studies.base import PAPER, Measurement, Plan, Study, Tuned
from rbmle.studies.everyday import EVERYDAY_DEVELOPMENT, EVERYDAY_REPORTED
from rbmle.studies.paper import TABLES_AND_FIGURES

STUDIES = {
    study.name: study
    for study in (*TABLES_AND_FIGURES, BAKEOFF, EVERYDAY_REPORTED, EVERYDAY_DEVELOPMENT)
}
MEASURED = {
    study.NAME: Measurement(title=study.TITLE, write=study.write_table)
    for study in (timing, section_3, riverswim, classical, pessimism, conservative)
}

__all__ = ["MEASURED", "PAPER", "STUDIES", "Measurement", "Plan", "Study", "Tuned"]
