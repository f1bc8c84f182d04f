"""How much each token of a text bears on each other token, layer by layer: attention, Jacobians of hidden states, and other readings."""

from headscope.models.jacobian.flow import ALL_KINDS, KINDS, METHODS, Flow, Pairs, flow, flow_of
from headscope.models.jacobian.layers import MODES
from headscope.models.jacobian.norms import NORMS
from headscope.models.jacobian.values import value_norms

__all__ = ["ALL_KINDS", "KINDS", "METHODS", "MODES", "NORMS", "Flow", "Pairs", "flow", "flow_of", "value_norms"]
