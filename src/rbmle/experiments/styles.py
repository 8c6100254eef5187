"""Styles of lines: a policy has the same one in all figures and in the report."""

import zlib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Style:
    """The style of a line; dashes distinguish lines without colour."""

    colour: str
    dashes: tuple[float, ...] = ()  # on, off, … in points; solid if empty
    width: float = 1.5  # points


# Okabe and Ito's colours and a few more, each with a contrast of at least 3 to white and to near black.
# Colour-blind readers can distinguish the colours of two lines with the same dashes.
VERMILION, ORANGE, BLUE, SKY = "#d55e00", "#c77f00", "#0072b2", "#3a9bd9"
GREEN, PINK, PURPLE, OLIVE = "#009e73", "#cc79a7", "#8f5fd7", "#7f8500"
BROWN, TEAL, GREY = "#a05a3c", "#00878f", "#767676"
SOLID: tuple[float, ...] = ()
LONG, SHORT, DOTS, SPARSE = (7, 2), (3.5, 1.5), (1.5, 1.5), (1.5, 3)
DASH_DOT, DASH_DOT_DOT = (7, 2, 1.5, 2), (7, 2, 1.5, 2, 1.5, 2)

STYLES = {
    "neural-rbmle-ga": Style(colour=VERMILION, width=2.6),
    "neural-rbmle-pc": Style(colour=ORANGE, dashes=LONG, width=2.0),
    "neural-ucb": Style(colour=BLUE),
    "neural-ts": Style(colour=SKY, dashes=LONG),
    "deep-fpl": Style(colour=GREEN, dashes=DASH_DOT),
    "bootstrapped-nn": Style(colour=PINK, dashes=DOTS),
    "lin-rbmle": Style(colour=PURPLE, dashes=DASH_DOT_DOT),
    "lin-ucb": Style(colour=TEAL, dashes=SHORT),
    "lin-ts": Style(colour=OLIVE, dashes=DOTS),
    "epsilon-greedy": Style(colour=BROWN, dashes=SHORT),
    "uniform": Style(colour=GREY, dashes=SPARSE),
}
VARIANTS = {  # of one policy, side by side in figures 2 and 3: the default has its colour
    "neural-rbmle-ga (Gaussian)": Style(colour=VERMILION, width=2.6),
    "neural-rbmle-ga (Bernoulli)": Style(colour=BLUE, dashes=LONG, width=1.8),
    "neural-rbmle-ga (Mixture)": Style(colour=GREEN, dashes=DASH_DOT, width=1.8),
    "α(t) = ν t^0.5": Style(colour=VERMILION, width=2.6),
    "α(t) = ν t^0": Style(colour=GREEN, dashes=DASH_DOT, width=1.8),
    "α(t) = ν t^0.25": Style(colour=BLUE, dashes=LONG, width=1.8),
    "α(t) = ν t^1": Style(colour=PURPLE, dashes=DASH_DOT_DOT, width=1.8),
    "α(t) = ν t^2": Style(colour=BROWN, dashes=DOTS, width=1.8),
}
FAMILIES = {  # of policies, by prefixes of their titles; the first that fits counts
    "reward-biased (RBMLE)": (("NeuralRBMLE", "LinRBMLE", "GLM-RBMLE"), VERMILION),
    "linear": (("Lin", "GLM"), GREEN),
    "trees": (("tree",), BROWN),
    "Vowpal Wabbit": (("vw:",), PURPLE),
    "at random": (("Uniform",), GREY),
    "networks": (("",), BLUE),
}
OTHERS = tuple(
    Style(colour=colour, dashes=dashes)
    for dashes in (SOLID, LONG, DOTS, DASH_DOT, SHORT, DASH_DOT_DOT)
    for colour in (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, PINK, BROWN, TEAL, OLIVE, GREY)
)


def family_of(title: str) -> tuple[str, str]:
    """Return the family of a policy by its title, and the colour of that family.

    >>> family_of("LinUCB")[0], family_of("vw:first (quadratic)")[0], family_of("EE-Net")[0]
    ('linear', 'Vowpal Wabbit', 'networks')
    """
    return next(
        (family, colour)
        for family, (beginnings, colour) in FAMILIES.items()
        if title.startswith(beginnings)
    )


def styles(policies: Iterable[str]) -> dict[str, Style]:
    """Return a style for each policy: the same in all figures, and different ones as long as they last.

    A policy without its own style gets one by its name, with the colour and the dashes that are least used in
    the figure.
    """
    names = list(policies)
    known = STYLES | VARIANTS
    chosen = {name: known[name] for name in names if name in known}
    for name in sorted(set(names) - set(known)):
        first = zlib.crc32(name.encode()) % len(OTHERS)
        turned = OTHERS[first:] + OTHERS[:first]
        looks = Counter((style.colour, style.dashes) for style in chosen.values())
        colours = Counter(style.colour for style in chosen.values())
        dashes = Counter(style.dashes for style in chosen.values())
        uses = [(looks[s.colour, s.dashes], colours[s.colour], dashes[s.dashes]) for s in turned]
        chosen[name] = turned[uses.index(min(uses))]
    return {name: chosen[name] for name in names}
