"""The options of flow: its kinds, the norms of Jacobians, and the ways to compute them."""

from __future__ import annotations

from typing import Literal, get_args

Kind = Literal["A", "G", "G*", "rollout", "maxflow", "norms"]
Method = Literal["auto", "exact", "sketch"]
Mode = Literal["eval", "train"]
Norm = Literal["frobenius", "sum", "mean", "spectral"]
KINDS: tuple[Kind, ...] = ("A", "G", "G*")
ALL_KINDS: tuple[Kind, ...] = get_args(Kind)
METHODS: tuple[Method, ...] = get_args(Method)
MODES: tuple[Mode, ...] = get_args(Mode)
NORMS: tuple[Norm, ...] = get_args(Norm)
