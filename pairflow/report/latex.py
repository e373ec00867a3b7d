"""Tables in the paper's layout: LaTeX that needs the package booktabs alone."""

from collections.abc import Iterable, Sequence

HEAD = "% Needs the package booktabs.\n"

_ESCAPED = str.maketrans(
    {
        **{character: f"\\{character}" for character in "&%$#_{}"},
        **{"~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "\\": r"\textbackslash{}"},
        **{"<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}"},
        **{"[": "{[}", "*": "{*}"},  # behind the \\ of the line before they would be its argument
        **{"×": r"$\times$", "±": r"$\pm$", "−": "$-$", "–": "--", "’": "'", '"': "''"},
        **dict.fromkeys("\t\n\r", " "),
    }
)


def escape(text: str) -> str:
    """Text that LaTeX prints as it stands, on one line."""
    return text.translate(_ESCAPED)


def value(text: str, spread: str = "", bold: bool = False) -> str:
    """A printed number, such as `1,234.5`, and its deviation; a dash where there is none."""
    if not text:
        return "--"
    text, spread = (part.replace(",", "{,}").replace("−", "-") for part in (text, spread))
    shown = rf"\mathbf{{{text}}}" if bold else text
    return f"${shown} \\pm {spread}$" if spread else f"${shown}$"


def table(caption: str, head: Sequence[str], rows: Iterable[Sequence[str]], align: str = "") -> str:
    """A table environment: `caption` and `head` are text, `rows` finished cells; numbers stand right."""
    return "\n".join(
        [
            r"\begin{table}",
            r"\centering",
            rf"\caption{{{escape(caption)}.}}",
            rf"\begin{{tabular}}{{{align or 'l' + 'r' * (len(head) - 1)}}}",
            r"\toprule",
            rf"{' & '.join(map(escape, head))} \\",
            r"\midrule",
            *(rf"{' & '.join(row)} \\" for row in rows),
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
            "",
        ]
    )
