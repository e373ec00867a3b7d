"""Compile the CPU engine ahead of time, as `make setup` does: `python -m pairflow.pairing.compile_ahead`."""

import numpy as np

from pairflow.pairing.pair import pair


def main() -> None:
    """Compile the engine for 8-bit (K <= 256) and 16-bit tokens, by pairing two rows of each.

    Cached machine code is reused.
    """
    for dtype in (np.uint8, np.uint16):
        size = 1 + int(np.iinfo(dtype).max)
        pair(np.zeros((2, 2), dtype), vocabulary_size=size, steps=1, backend="cpu", progress=False)


if __name__ == "__main__":
    main()
