"""Makes `python -m pairflow` run the command `pairflow`."""

from pairflow.cli import main

if __name__ == "__main__":
    main(prog_name="pairflow")
