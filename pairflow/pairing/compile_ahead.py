"""Compile the CPU engine ahead of time, as `make setup` does: `python -m pairflow.pairing.compile_ahead`."""

import numpy as np

from pairflow.pairing.pair import pair


def main() -> None:
    """Pair two rows of 8-bit tokens (K <= 256) and of 16-bit tokens; cached machine code is reused."""
    for dtype in (np.uint8, np.uint16):
        size = 1 + int(np.iinfo(dtype).max)
        pair(np.zeros((2, 2), dtype), vocabulary_size=size, steps=1, backend="cpu", progress=False)


if __name__ == "__main__":
    main()
