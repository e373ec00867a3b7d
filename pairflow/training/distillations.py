"""The distillations, by the name that methods use.

Each is a function `objective(settings, *, x0, x1, noise, loss, seed, device, cache)` that returns what
`loop.optimise` minimises: x1 (M, N) is the data and x0 None, or both are the parent's pairs; `loss` names the
base's loss; `cache` is a folder for what may be kept from run to run, or None.
"""

from pairflow.training import dcd, redi

OBJECTIVES = {"dcd": dcd.objective, "redi": redi.objective}
