"""Says which extra of pairflow installs a package that is missing."""

from collections.abc import Iterator
from contextlib import contextmanager

from pairflow.errors import InputError

EXTRAS = {  # extra: the modules of its packages
    "train": ("torch", "safetensors"),
    "workflow": ("snakemake", "jinja2", "markupsafe", "matplotlib", "pooch", "requests"),
    "molecules": ("rdkit", "selfies"),
    "images": ("torchvision", "PIL", "pytorch_fid"),
    "text": ("tokenizers", "transformers"),
    "excel": ("openpyxl",),
    "hub": ("huggingface_hub",),
    "fcd": ("fcd",),
}


@contextmanager
def named_extras() -> Iterator[None]:
    """In the block, replace the error of a missing package of EXTRAS by an InputError with the command that
    installs the package."""
    try:
        yield
    except ModuleNotFoundError as error:
        module = (error.name or "").partition(".")[0]
        extra = next((extra for extra, modules in EXTRAS.items() if module in modules), None)
        if extra is None:
            raise
        install = f'pip install "pairflow[{extra}]"'
        raise InputError(f"needs {module}, which is not installed: {install}") from None
