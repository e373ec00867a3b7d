"""Lists the trained models that come with pairflow."""

import click

from pairflow import published
from pairflow.steps.command import step


@step()
def main():
    """List the models that come with pairflow, with what each makes and the path of its card.

    Each name can be given to `sample --model`. A model of molecules can also be given to `score --model` and
    `new --from`:

    \b
      pairflow sample --model zinc250k --count 100 --plausible --out new.html
      pairflow sample --model mnist_binary --count 64 --out digits.png
    """
    for name in published.names():
        folder = published.FOLDER / name
        size = sum(file.stat().st_size for file in folder.iterdir()) / 1e6
        click.echo(f"{name} ({size:.1f} MB): {published.summary(name)}\n  {folder / published.CARD}")


if __name__ == "__main__":
    main()
