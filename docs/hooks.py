"""What is made at build time: pages of the README, of all configuration keys, of notebooks, and equations."""

import json
import re
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert
from mkdocs.structure.files import File

from pairflow.config import Configuration

ROOT = Path(__file__).parent.parent
BOUNDS = {
    "minimum": "≥ {}",
    "exclusiveMinimum": "> {}",
    "maximum": "≤ {}",
    "exclusiveMaximum": "< {}",
    "multipleOf": "multiple of {}",
    "minItems": "at least {} item",
}
NAMES = {
    "boolean": "true or false",
    "integer": "integer",
    "number": "number",
    "string": "text",
    "null": "none",
}
EQUATION = re.compile(r"^```math\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?:)([^)#]+)(#[^)]*)?\)")


def on_files(files: Any, config: Any) -> Any:
    """Add the generated pages."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    files.append(File.generated(config, "index.md", content=inside(readme, "docs/")))
    files.append(File.generated(config, "configuration.md", content=configuration()))
    for path in sorted(ROOT.glob("docs/notebooks/*.ipynb")):
        files.append(File.generated(config, f"notebooks/{path.stem}.md", content=notebook(path)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Typeset equations, and name files that are outside of docs/ instead of linking to them."""
    markdown = EQUATION.sub(lambda block: typeset(block[1]), markdown)
    return markdown if page.file.generated_by else inside(markdown, "")


def on_post_page(output: str, **_: Any) -> str:
    """Take the script that makes the search work from the disk out of the site, not from the network."""
    return output.replace("https://unpkg.com/iframe-worker/shim", "assets/worker.js")


def on_post_template(output_content: str, **_: Any) -> str:
    """The same for the page of missing pages."""
    return output_content.replace("https://unpkg.com/iframe-worker/shim", "/assets/worker.js")


def typeset(latex: str) -> str:
    """MathML of an equation, which browsers draw by themselves; a long one can be scrolled sideways."""
    # The converter knows no `aligned`: it would show each & and put all lines into one.
    mathml = convert(latex.replace("{aligned}", "{align*}"), display="block")
    mathml = re.sub(r'columnalign="(\w+)"', r'style="text-align: \1"', mathml)  # browsers read only the style
    return f'<div style="overflow: auto hidden; padding-bottom: 0.5em">{mathml}</div>'


def inside(markdown: str, prefix: str) -> str:
    """`markdown` with links to pages below `prefix` made relative; other files are named in code style."""

    def replace(match: re.Match) -> str:
        image, text, target, anchor = match[1], match[2], match[3], match[4] or ""
        if prefix and target.startswith(prefix):
            return f"{image}[{text}]({target.removeprefix(prefix)}{anchor})"
        if not prefix and not target.startswith("../"):
            return match[0]
        target = target.removeprefix("../")
        named = text.strip("`").partition("::")[0]
        return text if named == target else f"{text} (`{target}`)"

    return LINK.sub(replace, markdown)


def notebook(path: Path) -> str:
    """Markdown of a notebook. Its badge, a picture in the network, becomes a link."""
    parts = []
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        text = re.sub(r"!\[([^]]*)\]\(https:[^)]*\)", r"\1", source)
        parts.append(text if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
    return "\n\n".join(parts)


def configuration() -> str:
    """Markdown of every key: one section per settings class, in the order in which they are reached."""
    schema = Configuration.model_json_schema()
    sections = {"Configuration": schema, **schema.get("$defs", {})}
    order, todo = [], ["Configuration"]
    while todo:
        name = todo.pop(0)
        if name not in order:
            order.append(name)
            properties = {key: value for key, value in sections[name].items() if key != "$defs"}
            todo += re.findall(r"'#/\$defs/(\w+)'", str(properties))
    head = (
        "# Configuration\n\nEvery key of `workflow_config.yaml`, from the classes in `pairflow/config/`. "
        "A key without a default must be given. The file itself explains when to change which value. "
        "Editors complete keys with `config/schema.json`, which is made from the same classes.\n"
    )
    return "\n".join([head, *(section(name, sections[name]) for name in order)])


def section(name: str, schema: dict[str, Any]) -> str:
    required = schema.get("required", [])
    lines = [f"## {name}", "", schema.get("description", ""), ""]
    lines += ["| key | type | default | bounds | meaning |", "|---|---|---|---|---|"]
    for key, value in schema.get("properties", {}).items():
        default = "" if key in required or "default" not in value else f"`{shown(value['default'])}`"
        meaning = value.get("description", "").replace("|", "\\|").replace("\n", " ")
        lines.append(f"| `{key}` | {kind(value)} | {default} | {bounds(value)} | {meaning} |")
    return "\n".join([*lines, ""])


def shown(value: Any) -> str:
    words = {None: "none", True: "true", False: "false"}
    return words[value] if value is None or isinstance(value, bool) else str(value)


def kind(value: dict[str, Any]) -> str:
    """The type of a property in words, with links to the sections of nested settings."""
    if "$ref" in value:
        name = value["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    choices = value.get("anyOf") or value.get("oneOf") or value.get("allOf")
    if choices:
        return " or ".join(dict.fromkeys(kind(choice) for choice in choices))
    if "enum" in value or "const" in value:
        return ", ".join(f"`{item}`" for item in value.get("enum", [value.get("const")]))
    if value.get("type") == "array":
        return f"list of {kind(value.get('items', {}))}"
    if value.get("type") == "object":
        inner = [*value.get("patternProperties", {}).values(), value.get("additionalProperties")]
        return f"names, each with {kind(inner[0])}" if isinstance(inner[0], dict) else "mapping"
    return NAMES.get(value.get("type", ""), "any")


def bounds(value: dict[str, Any]) -> str:
    parts = [value, *value.get("anyOf", []), value.get("items", {})]
    return ", ".join(
        text.format(part[key])
        for part in parts
        for key, text in BOUNDS.items()
        if isinstance(part, dict) and key in part
    )
