"""How much each token of a text bears on each other token, layer by layer: attention, and Jacobians of hidden states."""

from headscope.models.jacobian.flow import KINDS, METHODS, Flow, flow, flow_of
from headscope.models.jacobian.norms import NORMS

__all__ = ["KINDS", "METHODS", "NORMS", "Flow", "flow", "flow_of"]
