"""Maximum flows through layers of tokens on a CPU, compiled: Dinic's algorithm for every pair of a target and an input
token.

Pairs share only the capacities: a flow begins at one node of its highest layer and ends at one of the lowest, so that
other nodes of these two layers play no part. A flow that saturates all edges out of the target, or all edges into the
input token, is maximal without a further search; most searches end this way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headscope.kernels.compiling import called, compiled, in_threads

if TYPE_CHECKING:
    from jaxtyping import Float64, Int64

    Capacities = Float64[np.ndarray, "layer target source"]
    Nodes = Int64[np.ndarray, "node"]  # token a of layer l is node l·size + a; the input is layer 0

TINY = 1e-15  # remaining capacity below which an edge counts as full, because of rounding


def maximum_flows(capacities: Capacities) -> Float64[np.ndarray, "layer source target"]:
    """The maximum flow from each target at each layer down to each input token."""
    found = np.zeros_like(capacities, order="C")
    in_threads(_maximum_flows, capacities.shape[1], np.ascontiguousarray(capacities), found)
    return found


@compiled
def _maximum_flows(capacities: Capacities, found: Float64[np.ndarray, "layer source target"], begin: int, end: int) -> None:
    layers, size = capacities.shape[:2]
    for target in range(begin, end):
        flow = np.zeros((layers, size, size))  # along each edge from a token to one of the layer below
        distance = np.zeros((layers + 1) * size, np.int64)
        nodes = np.zeros((3, (layers + 1) * size), np.int64)
        for top in range(1, layers + 1):
            leaves = capacities[top - 1, target].sum()
            for sink in range(size):
                enters = 0.0
                for token in range(size):
                    enters += capacities[0, token, sink]
                flow[:top] = 0
                rest = min(leaves, enters)
                while rest > TINY and _measure(capacities, flow, distance, nodes[0], top, target, sink):
                    sent = _fill(capacities, flow, distance, nodes[1], nodes[2], top * size + target, sink, rest)
                    rest -= sent
                    found[top - 1, sink, target] += sent


@called
def _measure(capacities: Capacities, flow: Capacities, distance: Nodes, queue: Nodes, top: int, target: int, sink: int) -> bool:
    """Compute the distance of nodes from the sink, down edges that are not full and up edges in use. Return whether the
    target can reach it.
    """
    size = capacities.shape[1]
    source = top * size + target
    distance[: source + 1] = -1
    distance[sink] = 0
    queue[0] = sink
    first, last = 0, 1
    while first < last and distance[source] < 0:
        node = queue[first]
        first += 1
        layer, token = node // size, node % size
        for other in range(size):
            above, below = (layer + 1) * size + other, (layer - 1) * size + other
            if (layer + 1 < top or above == source) and distance[above] < 0 and _room(capacities, flow, layer, other, token) > TINY:
                distance[above] = distance[node] + 1
                queue[last] = above
                last += 1
            if layer > 1 and distance[below] < 0 and flow[layer - 1, token, other] > TINY:
                distance[below] = distance[node] + 1
                queue[last] = below
                last += 1
    return bool(distance[source] >= 0)


@called
def _fill(capacities: Capacities, flow: Capacities, distance: Nodes, arc: Nodes, path: Nodes, source: int, sink: int, rest: float) -> float:
    """Send as much flow as possible along paths whose every step comes nearer to the sink. Return its amount."""
    size = capacities.shape[1]
    arc[: source + 1] = 0  # the first edge out of each node that may still have capacity
    path[0] = source
    depth = 0
    sent = 0.0
    while rest - sent > TINY:
        node = path[depth]
        if node == sink:
            sent += _send(capacities, flow, path, depth, rest - sent)
            depth = 0
            continue
        layer, token = node // size, node % size
        while arc[node] < 2 * size:  # down to each token, then up to each
            other, down = arc[node] % size, arc[node] < size
            after = node - token + (other - size if down else other + size)
            nearer = after <= source and distance[after] == distance[node] - 1
            if nearer and (_room(capacities, flow, layer - 1, token, other) if down else flow[layer, other, token]) > TINY:
                break
            arc[node] += 1
        if arc[node] < 2 * size:
            depth += 1
            path[depth] = after
        elif depth == 0:
            break
        else:
            depth -= 1
            arc[path[depth]] += 1
    return sent


@called
def _send(capacities: Capacities, flow: Capacities, path: Nodes, depth: int, most: float) -> float:
    """Send as much flow as possible along one path. Return its amount."""
    size = capacities.shape[1]
    for step in range(depth):
        one, other = path[step], path[step + 1]
        if other < one:
            most = min(most, _room(capacities, flow, other // size, one % size, other % size))
        else:
            most = min(most, flow[one // size, other % size, one % size])
    for step in range(depth):
        one, other = path[step], path[step + 1]
        if other < one:
            flow[other // size, one % size, other % size] += most
        else:
            flow[one // size, other % size, one % size] -= most
    return most


@called
def _room(capacities: Capacities, flow: Capacities, layer: int, above: int, below: int) -> float:
    """The remaining capacity of an edge."""
    return capacities[layer, above, below] - flow[layer, above, below]  # type: ignore[no-any-return]
