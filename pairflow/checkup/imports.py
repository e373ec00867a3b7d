"""Imports packages in a process of its own and prints one line of JSON about them.

An import may raise anything, end its process or never return; the process that asks survives it. The line has
`version` and what `_FACTS` adds, or `missing` (the name of the absent package), or `error`.
"""

import importlib
import json
import sys
from typing import Any

from pairflow.data.status import described


def main(*names: str) -> dict[str, Any]:
    """Import all of them; `version` and further facts are those of the first."""
    try:
        modules = [importlib.import_module(name) for name in names]
        return {"version": getattr(modules[0], "__version__", None), **_FACTS.get(names[0], dict)()}
    except ModuleNotFoundError as error:
        package = str(error.name).partition(".")[0]
        if package in {name.partition(".")[0] for name in names}:
            return {"missing": error.name}
        return {"error": str(error)}
    except BaseException as error:  # a broken package may raise anything, SystemExit included
        return {"error": described(error)}


def _torch() -> dict[str, Any]:
    import torch

    devices = range(torch.cuda.device_count() if torch.cuda.is_available() else 0)
    return {"cuda": torch.version.cuda, "devices": [torch.cuda.get_device_name(device) for device in devices]}


def _cupy() -> dict[str, Any]:
    """What CuPy lacks to pair on a GPU, and NVRTC, which it loads when a kernel is compiled."""
    from pairflow.pairing.gpu.engine import missing

    try:
        from cupy.cuda import nvrtc

        facts = {"nvrtc": ".".join(map(str, nvrtc.getVersion()))}
    except Exception as error:
        facts = {"nvrtc_error": described(error)}
    lack = missing()
    return {"lacks": lack and str(lack), **facts}


_FACTS = {"torch": _torch, "cupy": _cupy}

if __name__ == "__main__":
    answer = json.dumps(main(*sys.argv[1:]))
    print(f"\n{answer}", flush=True)
