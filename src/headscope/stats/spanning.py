"""Maximum spanning trees: undirected for many graphs at once (Prim), directed for one (Chu and Liu, Edmonds)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import torch
    from jaxtyping import Bool, Float, Float64, Int, Int64

    Indices = Int64[np.ndarray, "node"]


def prim(
    scores: Float[torch.Tensor, "batch graph node node"], nodes: Bool[torch.Tensor, "batch node"]
) -> Int[torch.Tensor, "batch graph node"]:
    """The maximum spanning trees: for each node the one that it was joined to, -1 for the first node and outside
    `nodes`.

    Scores are symmetric and not negative. The earlier of nodes with equal scores is joined first. Each step joins one
    node, in all graphs at once.
    """
    import torch

    batch, graphs, size, _ = scores.shape
    device = scores.device
    texts = torch.arange(batch, device=device)[:, None]
    every = torch.arange(graphs, device=device)[None, :]
    first = nodes.int().argmax(-1)  # the first node of each text; 0 where there is none
    joined = torch.full((batch, graphs, size), -1, device=device)
    outside = nodes[:, None, :].expand(-1, graphs, -1).clone()
    outside[texts[:, 0], :, first] = False
    reach = scores[texts[:, 0], :, first]  # [batch, graph, node]: the best score into the tree so far
    via = first[:, None, None].expand_as(joined).clone()
    for _ in range(size - 1):
        candidate = reach.masked_fill(~outside, -1.0)
        best, node = candidate.max(-1)
        grows = best >= 0
        place = (texts, every, node)
        joined[place] = torch.where(grows, via[place], joined[place])
        outside[place] &= ~grows
        row = scores[place]
        nearer = (row > reach) & grows[..., None]
        reach = torch.where(nearer, row, reach)
        via = torch.where(nearer, node[..., None], via)
    return joined


def arborescence(scores: Float64[np.ndarray, "node node"], roots: Float64[np.ndarray, "node"] | None = None) -> Int64[np.ndarray, "node"]:
    """The maximum spanning arborescence: for each node its governor, -1 for the root.

    Exactly one node is the root. It is chosen together with the tree, and `roots` gives the score of each node as the
    root.
    """
    size = len(scores)
    if size == 0:
        return np.zeros(0, dtype=np.int64)
    # Node 0 governs the root, at a cost so high that it governs only one node.
    weights = np.full((size + 1, size + 1), -np.inf)
    weights[1:, 1:] = scores
    bonus = np.zeros(size) if roots is None else roots
    weights[1:, 0] = bonus - 2.0 * (np.abs(scores[np.isfinite(scores)]).sum() + np.abs(bonus).sum() + 1.0)
    np.fill_diagonal(weights, -np.inf)
    return _edmonds(weights)[1:] - 1


def _edmonds(weights: Float64[np.ndarray, "node node"]) -> Int64[np.ndarray, "node"]:
    """Governors below node 0: every node takes its best governor, and cycles are contracted until none is left.

    Then cycles are opened again, the last one first. There is no recursion, since a text can have more cycles than
    Python's recursion limit.
    """
    contracted: list[tuple[Indices, Indices, Indices, Indices]] = []
    while True:
        heads = np.zeros(len(weights), dtype=np.int64)
        heads[1:] = weights[1:].argmax(1)
        cycle = _cycle(heads)
        if cycle is None:
            break
        inside = np.zeros(len(weights), dtype=bool)
        inside[cycle] = True
        rest = np.flatnonzero(~inside)  # node 0 stays node 0
        new = len(rest)
        small = np.full((new + 1, new + 1), -np.inf)
        small[:new, :new] = weights[np.ix_(rest, rest)]
        # A node outside can be governed by the best node of the cycle; the cycle by the node that gains most by
        # breaking one of its arcs.
        out = weights[np.ix_(rest, cycle)]
        small[:new, new] = out.max(1)
        gain = weights[np.ix_(cycle, rest)] - weights[cycle, heads[cycle]][:, None]
        small[new, :new] = gain.max(0)
        contracted.append((heads, rest, cycle[out.argmax(1)], cycle[gain.argmax(0)]))
        weights = small
    for before, rest, governing, entered in reversed(contracted):
        new = len(rest)
        outside = heads[1:new]
        opened = before.copy()
        opened[rest[1:]] = np.where(outside == new, governing[1:], rest[np.minimum(outside, new - 1)])
        opened[entered[heads[new]]] = rest[heads[new]]
        heads = opened
    return heads


def _cycle(heads: Int64[np.ndarray, "node"]) -> Int64[np.ndarray, "member"] | None:
    state = np.zeros(len(heads), dtype=np.int64)  # the start of the walk that visited each node
    state[0] = -1
    for start in range(1, len(heads)):
        node = start
        while not state[node]:
            state[node] = start
            node = heads[node]
        if state[node] == start:
            members = [node]
            while (node := heads[node]) != members[0]:
                members.append(node)
            return np.array(sorted(members), dtype=np.int64)
    return None
