"""Classes that define every setting of an experiment once, with its type, its bounds and its help text.

The check of workflow_config.yaml, the options of each step (`pairflow train --help`) and the parameters that
a Snakemake rule passes to its step all come from these classes.
"""

from pairflow.config.configuration import Configuration, DemandSettings, Experiment
from pairflow.config.methods import BASES, Method, parse_method, tail_revises
from pairflow.config.networks import NETWORKS
from pairflow.config.steps import (
    AdoptSettings,
    CorrelateSettings,
    CoverSettings,
    DistillSettings,
    PairSettings,
    PotentialsSettings,
    ScoreSettings,
    TrainSettings,
)
from pairflow.config.training import (
    DISTILLATIONS,
    BaseTraining,
    Dcd,
    Optimisation,
    Redi,
    Rf,
    SolveSettings,
    TeachSettings,
    Training,
)
from pairflow.settings.check import Settings, check, nearest
from pairflow.settings.fields import DataSettings
from pairflow.settings.flows import CONTINUOUS, DISCRETE, FLOWS, LOSSES
from pairflow.settings.sampling import SAMPLERS, SOLVERS, FlowSampleSettings, RealDraws, SampleSettings
