"""Everyday rewards: how much of the gap between uniform play and the oracle each policy closes.

`everyday` plays the families that no default was chosen on, on seeds 0 to 9; `everyday-development` plays
the others, on seeds from 1000 on, and is for choosing.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import cache, partial
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from rbmle.core.errors import SettingError
from rbmle.core.files import write_text
from rbmle.core.policy import LARGEST_REWARD, Policy, limits_of
from rbmle.environments import DEVELOPMENT, EVERYDAY, FAMILIES, REPORTED, Everyday, gap_closed
from rbmle.environments.everyday import Baselines
from rbmle.environments.everyday_families import COIN, EverydayFamily
from rbmle.experiments.figures import DotPanel, DotRow, dot_figure, dot_svg
from rbmle.experiments.report import numbers, section, write_sections
from rbmle.experiments.styles import styles
from rbmle.experiments.summary import Summary, policy_title
from rbmle.experiments.tables import Entry, ReportTable, latex, markdown
from rbmle.experiments.trial import Trial
from rbmle.policies.registry import Specification, parse_policies, parse_policy
from rbmle.studies.base import Plan, Study, add_note

_POLICIES = """
neural-rbmle-ga neural-rbmle-pc neural-ucb neural-ts lin-rbmle lin-ucb lin-ts glm-rbmle glm-ucb
glm-ts neu-square-cb neu-fast-cb neural-lin-ucb epsilon-greedy tree-ts vw:squarecb vw:regcb
vw:first
"""
POLICIES = tuple(_POLICIES.split())
FIXED = "best-fixed-arm"  # a row of its own: the best arm of each problem in hindsight
TITLES = {FIXED: "best fixed arm"}
SEEDS, FIRST_DEVELOPMENT_SEED, DEVELOPMENT_SEEDS = 10, 1000, 3
QUICK_ROUNDS, QUICK_SEEDS = 200, 1


# --- What is played ------------------------------------------------------------------------------------


def trials(families: Mapping[str, EverydayFamily], plan: Plan) -> list[Trial]:
    """Return a trial for each family, policy that can learn its rewards, and seed."""
    if plan.policies:
        specs, _ = parse_policies(plan.policies)
    else:
        specs, _ = available()
    return [
        Trial(
            policy=policy,
            name=spec.name,
            environment=Everyday(family=name),
            horizon=_horizon(families[name], plan),
            seed=seed,
        )
        for name in _select_families(families, plan)
        for spec in specs
        if (policy := told_the_range(spec.policy(), families[name])) is not None
        for seed in _seeds(families, plan)
    ]


def available() -> tuple[list[Specification], list[str]]:
    """Return the policies that can be played, and a line for each that cannot."""
    policies, notes = [], []
    for name in POLICIES:
        try:
            policies.append(parse_policy(name))
        except SettingError as error:
            notes.append(f"Skipped {name}: {error}.")
    return policies, notes


def told_the_range(policy: Policy[Any], family: EverydayFamily) -> Policy[Any] | None:
    """Return a policy that knows the range of rewards if it asks for one; None if it cannot learn them."""
    least, most = (float(np.clip(end, -LARGEST_REWARD, LARGEST_REWARD)) for end in family.rewards)
    settings = {f.name for f in fields(policy)}  # type: ignore[arg-type]  # every policy is a dataclass
    if {"lowest", "highest"} <= settings and np.isfinite(family.rewards).all():
        policy = replace(policy, lowest=least, highest=most)  # type: ignore[type-var]
    low, high = limits_of(policy)
    return policy if low <= least and most <= high else None


def _select_families(families: Mapping[str, EverydayFamily], plan: Plan) -> list[str]:
    """Return the families that were asked for, or raise SettingError."""
    names = [name.removeprefix("everyday-") for name in plan.only]
    if strange := [name for name in names if name not in families]:
        raise SettingError(f"this study has no {strange[0]!r}; it has {', '.join(families)}")
    return names or list(families)


def _horizon(family: EverydayFamily, plan: Plan) -> int:
    usual = min(QUICK_ROUNDS, family.rounds) if plan.quick else family.rounds
    return min(plan.rounds or usual, usual)


def _seeds(families: Mapping[str, EverydayFamily], plan: Plan) -> range:
    """Return the seeds of a study; those of its two groups of families are disjoint."""
    first = 0 if families is REPORTED else FIRST_DEVELOPMENT_SEED
    usual = SEEDS if families is REPORTED else DEVELOPMENT_SEEDS
    return range(first, first + (plan.count or (QUICK_SEEDS if plan.quick else usual)))


# --- What came out -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Shares:
    """The share of the gap that was closed, of each policy, family and seed; what tables are made of."""

    families: dict[str, dict[str, list[float]]]  # family → policy → a share for each seed
    milliseconds: dict[str, dict[str, float]]  # family → policy → CPU time of a round
    code: dict[str, str]  # policy → digests of the code that played it
    note: str = ""  # how it was played

    @staticmethod
    def of(summary: Summary, note: str = "") -> "Shares":
        """Return the shares of what was played, and of the best fixed arm of each problem."""
        families: dict[str, dict[str, list[float]]] = {}
        milliseconds: dict[str, dict[str, float]] = {}
        codes: dict[str, set[str]] = {}
        for cell in summary.cells:
            world, rounds = EVERYDAY[cell.problem.dataset], cell.problem.horizon
            bounds = [_baselines(world, rounds, seed) for seed in cell.seeds]
            ends = zip(cell.regrets[:, -1], bounds, strict=True)
            row = families.setdefault(world.family, {})
            row[cell.policy] = [round(gap_closed(float(r), b.uniform), 4) for r, b in ends]
            row.setdefault(FIXED, [round(gap_closed(b.fixed, b.uniform), 4) for b in bounds])
            learned = rounds + FAMILIES[world.family].logged
            times = milliseconds.setdefault(world.family, {})
            times[cell.policy] = round(1000 * cell.cpu_seconds / learned, 4)
            codes.setdefault(cell.policy, set()).add(cell.code.title)
        order = [name for name in FAMILIES if name in families]
        return Shares(
            families={name: families[name] for name in order},
            milliseconds={name: milliseconds[name] for name in order},
            code={name: ", ".join(sorted(titles)) for name, titles in codes.items()},
            note=note,
        )

    @property
    def text(self) -> str:
        """Return the shares as JSON, so that tables can be made of them again."""
        text = json.dumps(asdict(self), indent=1)
        return re.sub(r"\[[^\]]*\]", lambda match: " ".join(match.group().split()), text) + "\n"

    def replaced(self, newer: "Shares") -> "Shares":
        """Return these shares, with the rows of policies that were played again replaced.

        Raises SettingError if the problems are not the same.
        """
        if strange := [name for name in newer.families if name not in self.families]:
            raise SettingError(f"there were no shares of {strange[0]} yet; play all policies on it")
        families = {}
        for name, row in self.families.items():
            fresh = newer.families.get(name, {})
            pair = [row[FIXED], fresh.get(FIXED, [])]
            if any(a != b for a, b in zip(*pair, strict=False)):
                raise SettingError(
                    f"{name} has other problems than before: its best fixed arms differ; play all again"
                )
            families[name] = row | fresh | {FIXED: max(pair, key=len)}
        return Shares(
            families=families,
            milliseconds={
                name: row | newer.milliseconds.get(name, {})
                for name, row in self.milliseconds.items()
            },
            code=self.code | newer.code,
            note=f"{self.note} {', '.join(newer.code)} again: {newer.note}",
        )

    @property
    def policies(self) -> list[str]:
        """Return the policies, those that play all families first, the best mean first."""
        names = dict.fromkeys(name for row in self.families.values() for name in row)
        return sorted(
            names,
            key=lambda name: (-len(self.played(name)), -self.mean(name, self.played(name))[0]),
        )

    @property
    def coins(self) -> list[str]:
        return [name for name in self.families if FAMILIES[name].rewards == COIN]

    def played(self, policy: str) -> list[str]:
        return [name for name, row in self.families.items() if policy in row]

    def share(self, policy: str, family: str) -> tuple[float, float]:
        """Return the mean share over seeds, and its standard error; the error of one seed is NaN."""
        values = np.array(self.families[family][policy])
        error = values.std(ddof=1) / len(values) ** 0.5 if len(values) > 1 else np.nan
        return float(values.mean()), float(error)

    def mean(self, policy: str, families: Sequence[str]) -> tuple[float, float]:
        """Return the mean share over families, and its standard error over the seeds of each."""
        pairs = np.array([self.share(policy, name) for name in families])
        return float(pairs[:, 0].mean()), float(np.sqrt((pairs[:, 1] ** 2).sum()) / len(pairs))

    def top(self, families: Sequence[str]) -> float:
        """Return the largest mean share of the policies that play all of some families; NaN without any."""
        names = (name for name in self.policies if set(families) <= set(self.played(name)))
        means = [self.mean(name, families)[0] for name in names if families and name != FIXED]
        return max(means, default=np.nan)

    def worst(self, policy: str) -> tuple[float, str]:
        """Return the smallest ratio to the best policy of a family, and the family."""
        return min(
            (self.share(policy, name)[0] / self.top([name]), name) for name in self.played(policy)
        )

    def milliseconds_of(self, policy: str) -> float | None:
        """Return the mean CPU time of a round over families; None for what is not a policy."""
        times = [row[policy] for row in self.milliseconds.values() if policy in row]
        return float(np.mean(times)) if times else None


@cache
def _baselines(world: Everyday, rounds: int, seed: int) -> Baselines:
    return world.baselines(rounds, seed)


def write_shares(summary: Summary, path: Path, note: str) -> Path:
    """Write the share of each policy, family and seed."""
    return write_text(path, Shares.of(summary, note).text)


def policy_table(shares: Shares) -> ReportTable:
    """Return a row for each policy: its mean shares, where it is worst, its time and its seeds."""
    everywhere, coins = list(shares.families), shares.coins
    tops = [shares.top(families) for families in (everywhere, coins)]
    rows = []
    for policy in shares.policies:
        ratio, family = shares.worst(policy)
        time = shares.milliseconds_of(policy)
        entries = (
            *(
                _entry(*shares.mean(policy, families), top)
                if set(families) <= set(shares.played(policy)) and families
                else Entry()
                for families, top in zip((everywhere, coins), tops, strict=True)
            ),
            Entry(text=_plain(f"{ratio:.2f}"), note=family),
            Entry() if time is None else Entry(text=f"{time:.2f}"),
            Entry(text=str(max(len(row.get(policy, [])) for row in shares.families.values()))),
        )
        rows.append((_title(policy), entries))
    return ReportTable(
        caption=(
            "Share of the gap between uniform play and the oracle that was closed, in the mean over families, "
            "± its standard error; the worst ratio of a policy's share to the best one of a family. "
            f"{_describe_code(shares)}"
        ),
        corner="Policy",
        columns=(
            f"All {len(shares.families)} families",
            f"The {len(shares.coins)} with rewards 0 and 1",
            "Worst / best",
            "CPU ms / round",
            "Seeds",
        ),
        rows=tuple(rows),
    )


def _describe_code(shares: Shares) -> str:
    """Return which code played which policy, that of most policies first."""
    played: dict[str, list[str]] = {}
    for policy, code in shares.code.items():
        played.setdefault(code, []).append(_title(policy))
    first, *others = sorted(played, key=lambda code: -len(played[code]))
    rest = "".join(f"; {', '.join(played[code])} by {code}" for code in others)
    return f"Played by code {first}{rest}."


def family_table(shares: Shares) -> ReportTable:
    """Return a row for each family, with the share of each policy; the best is in bold."""
    rows = []
    for family, row in shares.families.items():
        top = shares.top([family])
        entries = [
            _entry(*shares.share(policy, family), top) if policy in row else Entry()
            for policy in shares.policies
        ]
        rows.append((family, tuple(entries)))
    return ReportTable(
        caption=(
            "Share of the gap that was closed, ± its standard error over seeds; the best policy of each family "
            "in bold."
        ),
        corner="Family",
        columns=tuple(map(_title, shares.policies)),
        rows=tuple(rows),
    )


def dots(shares: Shares) -> DotPanel:
    """Return the picture: the mean share of each policy that plays all families, the best first."""
    whole = [p for p in shares.policies if len(shares.played(p)) == len(shares.families)]
    looks = styles(["uniform" if name == FIXED else name for name in whole])  # of a grey style
    means = [shares.mean(policy, list(shares.families)) for policy in whole]
    rows = [
        DotRow(
            title=_title(policy),
            colour=looks["uniform" if policy == FIXED else policy].colour,
            value=mean,
            error=0.0 if np.isnan(error) else error,
            parts=[shares.share(policy, family)[0] for family in shares.families],
        )
        for policy, (mean, error) in zip(whole, means, strict=True)
    ]
    return DotPanel(
        rows=rows,
        label="share of the gap between uniform play (0) and the oracle (1) that was closed",
        lowest=min(-0.02, *(min(row.parts) for row in rows)) - 0.02,
        highest=1.0,
    )


def note(families: Mapping[str, EverydayFamily], plan: Plan, summary: Summary) -> str:
    seeds = sorted({seed for cell in summary.cells for seed in cell.seeds})
    return (
        f"{summary.runs:,} trials, {len(summary.problems)} families, seeds {_span(seeds)}, "
        f"{'settings as given' if plan.policies else 'the default settings of every policy'}."
    )


def render(summary: Summary, out: Path, note: str) -> list[Path]:
    """Write both tables in Markdown, the first in LaTeX too, and the picture."""
    shares = Shares.of(summary)
    table = add_note(policy_table(shares), note)
    return [
        write_text(out / "everyday.md", markdown(table)),
        write_text(out / "everyday.tex", latex(table)),
        write_text(out / "everyday-families.md", markdown(family_table(shares))),
        *dot_figure([dots(shares)], out / "everyday-shares"),
    ]


def page(summary: Summary, path: Path, title: str, note: str) -> None:
    """Write the page of a summary; it asks for nothing else, and needs no script."""
    shares = Shares.of(summary)
    picture = f'<figure class="picture">{dot_svg([dots(shares)])}</figure>'
    caption = "A small dot is a family, a large one the mean, with two standard errors."
    sections = [
        section(
            "All policies", picture + f"<p>{escape(caption)}</p>" + numbers(policy_table(shares))
        ),
        section("All families", numbers(family_table(shares))),
    ]
    write_sections(path, title, note, sections)


def _entry(mean: float, error: float, top: float) -> Entry:
    text = f"{mean:.2f}" if np.isnan(error) else f"{mean:.2f} ± {error:.2f}"
    return Entry(text=_plain(text), is_best=mean == top)


def _plain(text: str) -> str:
    return text.replace("-", "−")


def _title(policy: str) -> str:
    return TITLES.get(policy) or policy_title(policy)


def _span(seeds: Sequence[int]) -> str:
    return f"{seeds[0]} to {seeds[-1]}" if len(seeds) > 1 else str(seeds[0])


def _study(name: str, title: str, families: Mapping[str, EverydayFamily]) -> Study:
    return Study(
        name=name,
        title=title,
        trials=partial(trials, families),
        render=render,
        page=page,
        note=partial(note, families),
        skipped=lambda plan: [] if plan.policies else available()[1],
        write_seeds=write_shares,
        is_of_the_paper=False,
        is_narrowed=True,
    )


EVERYDAY_REPORTED = _study("everyday", "Policies and rivals on everyday rewards", REPORTED)
EVERYDAY_DEVELOPMENT = _study(
    "everyday-development", "The everyday families on which defaults are chosen", DEVELOPMENT
)
