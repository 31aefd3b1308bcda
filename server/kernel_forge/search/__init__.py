"""Stage 2: searches a constrained space. The only importer of Optuna; knows no kernel and no device."""

from kernel_forge.search.enumeration import EmptySpace
from kernel_forge.search.parameters import Parameter, Value, parameters_of
from kernel_forge.search.sampler import Sampler
from kernel_forge.search.samplers import DEFAULT, SAMPLERS
from kernel_forge.search.simulation import Replay, ReplayedSpace, Simulation
from kernel_forge.search.space import SearchSpace
from kernel_forge.search.stopping import reason_to_stop, remaining_seconds
from kernel_forge.search.study import Proposal, Search, begin_search

__all__ = [
    "DEFAULT",
    "SAMPLERS",
    "EmptySpace",
    "Parameter",
    "Proposal",
    "Replay",
    "ReplayedSpace",
    "Sampler",
    "Search",
    "SearchSpace",
    "Simulation",
    "Value",
    "begin_search",
    "parameters_of",
    "reason_to_stop",
    "remaining_seconds",
]
