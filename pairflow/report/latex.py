"""Tables in the paper's layout: LaTeX that needs only the package booktabs."""

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
    """Text that LaTeX prints unchanged, on one line."""
    return text.translate(_ESCAPED)


def value(text: str, spread: str = "", bold: bool = False) -> str:
    """A printed number, such as `1,234.5`, with its deviation if there is one; an empty text is a dash."""
    if not text:
        return "--"
    text, spread = (part.replace(",", "{,}").replace("−", "-") for part in (text, spread))
    mean = rf"\mathbf{{{text}}}" if bold else text
    return f"${mean} \\pm {spread}$" if spread else f"${mean}$"


def table(caption: str, head: Sequence[str], rows: Iterable[Iterable[str]], align: str = "") -> str:
    """A table environment: `caption` and `head` are text, `rows` LaTeX. Only the first column stands left."""
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
