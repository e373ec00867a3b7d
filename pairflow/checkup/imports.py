"""Imports packages in a process of its own, and prints one line of JSON: what can be said of them.

An import may raise anything, end its process or never return: whoever asks survives it. The line has
`version`, what `_FACTS` adds, or `missing` (the name of the absent package) or `error`.
"""

import importlib
import importlib.metadata
import json
import sys
from pathlib import Path
from typing import Any


def main(*names: str) -> dict[str, Any]:
    """Import all of them; what is said is of the first."""
    first = names[0]
    try:
        modules = [importlib.import_module(name) for name in names]
        facts = {"version": getattr(modules[0], "__version__", None), **_FACTS.get(first, dict)()}
    except ModuleNotFoundError as error:
        if error.name is not None and error.name.partition(".")[0] in {
            name.partition(".")[0] for name in names
        }:
            return {"missing": error.name}
        return {"error": str(error)}
    except BaseException as error:  # a broken package raises what it likes, SystemExit among it
        return {"error": f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"}
    return facts


def _torch() -> dict[str, Any]:
    import torch

    devices = range(torch.cuda.device_count() if torch.cuda.is_available() else 0)
    return {"cuda": torch.version.cuda, "devices": [torch.cuda.get_device_name(each) for each in devices]}


def _torchvision() -> dict[str, Any]:
    """The data sets that it fetches: where they are cached, whether whole, and where they are from."""
    from torchvision import datasets

    from pairflow.data.images import TORCHVISION
    from pairflow.data.sources import cache

    folders = {"MNIST": cache() / "MNIST", "CIFAR10": cache() / "cifar-10-batches-py"}
    addresses = {
        "MNIST": [mirror + datasets.MNIST.resources[0][0] for mirror in datasets.MNIST.mirrors],
        "CIFAR10": [datasets.CIFAR10.url],
    }
    return {
        "data": {
            source: {
                "folder": str(folders[name]),
                "addresses": addresses[name],
                "broken": _broken(getattr(datasets, name), folders[name]),
            }
            for source, name in TORCHVISION.items()
        }
    }


def _broken(data_set: Any, folder: Path) -> str | None:
    """Why a cached data set cannot be read; empty if it can, None if there is none."""
    if not folder.is_dir():
        return None
    try:
        for train in (True, False):
            data_set(str(folder.parent), train=train, download=False)
    except Exception as error:
        return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
    return ""


def _cupy() -> dict[str, Any]:
    from pairflow.pairing.gpu.engine import missing

    return {"lacks": missing()}


def _cupy_nvrtc() -> dict[str, Any]:
    from cupy.cuda import nvrtc

    return {"version": ".".join(map(str, nvrtc.getVersion()))}


_FACTS = {"torch": _torch, "torchvision": _torchvision, "cupy": _cupy, "cupy.cuda.nvrtc": _cupy_nvrtc}

if __name__ == "__main__":
    answer = json.dumps(main(*sys.argv[1:]))
    print(f"\n{answer}", flush=True)
