"""Policies that stand on other libraries: by name, where their classes are; nothing is imported here."""

# Each as module:Class. They need an extra, and are none of `--policy all`.
RIVALS: dict[str, str] = {
    "tree-ts": "rbmle.interop.tree_ts:TreeTS",
    "vw:squarecb": "rbmle.interop.vw_explorers:SquareCB",
    "vw:regcb": "rbmle.interop.vw_explorers:RegCB",
    "vw:cover": "rbmle.interop.vw_explorers:Cover",
    "vw:epsilon": "rbmle.interop.vw_explorers:Epsilon",
    "vw:first": "rbmle.interop.vw_explorers:First",
    "mabwiser:linucb": "rbmle.interop.mabwiser_linear:MABWiserLinUCB",
}
