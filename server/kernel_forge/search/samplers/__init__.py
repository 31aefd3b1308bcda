"""Every sampler by its name."""

from collections.abc import Mapping

from kernel_forge.search.sampler import Sampler
from kernel_forge.search.samplers.bayesian import GaussianProcessSampler, PortfolioSampler, TreesSampler
from kernel_forge.search.samplers.evolutionary import EvolutionarySampler
from kernel_forge.search.samplers.exhaustive import ExhaustiveSampler
from kernel_forge.search.samplers.local import LocalSampler
from kernel_forge.search.samplers.random import RandomSampler
from kernel_forge.search.samplers.tpe import TpeSampler

DEFAULT = "portfolio"
SAMPLERS: Mapping[str, type[Sampler]] = {
    "portfolio": PortfolioSampler,
    "bayesian": GaussianProcessSampler,
    "trees": TreesSampler,
    "tpe": TpeSampler,
    "evolutionary": EvolutionarySampler,
    "local": LocalSampler,
    "random": RandomSampler,
    "exhaustive": ExhaustiveSampler,
}

__all__ = ["DEFAULT", "SAMPLERS"]
