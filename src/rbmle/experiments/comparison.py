"""The measures of the bake-off as tables: all policies, all pairs, all losses."""

import numpy as np

from rbmle.experiments.measures import Measures
from rbmle.experiments.ranks import Ranks, ranks
from rbmle.experiments.report_table import Entry, ReportTable
from rbmle.experiments.summary import Summary, policy_title

DIAGONAL = Entry(text="·")


def is_compared(measures: Measures) -> bool:
    """Say whether there is anything to compare: two policies, and two problems that all have played."""
    is_whole = ~np.isnan(measures.regrets).any(axis=0)
    return len(measures.policies) > 1 and int(is_whole.sum()) > 1


def policy_ranks(measures: Measures) -> Ranks:
    """Return the mean ranks by regret."""
    return ranks(measures.policies, measures.regrets)


def comparison_table(measures: Measures) -> ReportTable:
    """Return a row for each policy, the one with most wins − losses first."""
    mean_ranks, net, relative = policy_ranks(measures), measures.net, measures.relative
    won, lost = measures.wins.sum(axis=1), measures.wins.sum(axis=0)
    ratios, errors = measures.relative_to(measures.order[0])
    rows = []
    for at in measures.order:
        entries = (
            Entry(text=_signed(net[at]), is_best=net[at] == net.max()),
            Entry(text=_signed(measures.loose_net[at])),
            Entry(text=f"{won[at]:,}"),
            Entry(text=f"{lost[at]:,}"),
            Entry(text=f"{relative[at]:.3f}", is_best=relative[at] == relative.min()),
            Entry(text=_with_error(ratios[at], errors[at])),
            Entry(text=f"{mean_ranks.means[at]:.2f}"),
            Entry(text=f"{measures.stuck[at]:,} of {measures.trials[at]:,}"),
            Entry(text=f"{measures.milliseconds[at]:.3f}"),
        )
        rows.append((policy_title(measures.policies[at]), entries))
    count = len(measures.problems)
    return ReportTable(
        caption=(
            f"{len(measures.policies)} policies on {count} problems. Significant wins and losses (two-sided "
            "p < 0.05) are counted over all other policies and problems; beside them wins − losses at the "
            "level of earlier tables, p < 0.166. Regret is relative to the best of each problem, in the "
            "geometric mean; relative to the first policy it has its standard error over datasets. A trial "
            "is stuck if its regret is over twice the median of all policies' means. Of the ranks, "
            f"{mean_ranks.problems} problems count, and a difference below {mean_ranks.difference:.2f} tells "
            "nothing."
        ),
        corner="Policy",
        columns=(
            "Wins − losses",
            "at p < 0.166",
            "Wins",
            "Losses",
            "Regret / best",
            "Regret / first",
            "Mean rank",
            "Stuck",
            "CPU ms / round",
        ),
        rows=tuple(rows),
    )


def _signed(number: int) -> str:
    """Return a whole number with its sign."""
    return f"{number:+d}".replace("-", "−")


def _with_error(ratio: float, error: float) -> str:
    """Return a ratio, with its standard error if that is known."""
    return f"{ratio:.3f}" if np.isnan(error) else f"{ratio:.3f} ± {error:.3f}"


def pairs_table(measures: Measures) -> ReportTable:
    """Return wins–losses of each row against each column, in bold where a row has more wins."""
    wins, order = measures.wins, measures.order
    rows = []
    for row in order:
        entries = [
            DIAGONAL
            if row == column
            else Entry(
                text=f"{wins[row, column]}–{wins[column, row]}",
                is_best=bool(wins[row, column] > wins[column, row]),
            )
            for column in order
        ]
        rows.append((policy_title(measures.policies[row]), tuple(entries)))
    return ReportTable(
        caption="Problems that the row wins significantly – loses; in bold where it wins more.",
        corner="Row against column",
        columns=tuple(policy_title(measures.policies[at]) for at in order),
        rows=tuple(rows),
    )


def loss_table(measures: Measures, summary: Summary) -> ReportTable:
    """Return the progressive validation loss of each policy on each problem, which is a row here."""
    order, losses = measures.order, measures.losses
    rows = []
    for at, problem in enumerate(measures.problems):
        column = losses[:, at]
        best = np.nanmin(column) if not np.isnan(column).all() else np.nan
        entries = [
            Entry() if np.isnan(x) else Entry(text=f"{x:.4f}", is_best=bool(x == best))
            for x in column[order]
        ]
        rows.append((f"{summary.title(problem)}, {problem.horizon:,} rounds", tuple(entries)))
    return ReportTable(
        caption="Progressive validation loss, mean over seeds; the smallest of each row in bold.",
        corner="Problem",
        columns=tuple(policy_title(measures.policies[at]) for at in order),
        rows=tuple(rows),
    )
