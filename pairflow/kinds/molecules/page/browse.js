// Draws, searches, sorts, filters, selects and saves the molecules of a page.
(() => {
  "use strict";

  const SVG = "http://www.w3.org/2000/svg";
  const IN_CARDS = ["plausible", "qed", "sa", "logp", "weight", "noise"];
  const COMPARED = [["nearest", "similarity", "training molecule"], ["seed", "seed_similarity", "without a name"]];
  const LINE_BREAKS = /[\n\v\f\r\x1c-\x1e\x85\u2028\u2029]+/g;
  const content = JSON.parse(document.getElementById("content").textContent);
  const columns = new Map(content.columns.map(column => [column.name, column]));
  const all = content.lines.map((_, row) => row);
  const selected = new Set();
  let shown = all;
  let current = 0; // the row that the keys start from

  const find = id => document.getElementById(id);
  const value = (name, row) => columns.get(name)?.values[row];
  const count = number => number.toLocaleString("en");

  function make(tag, parent, settings = {}) {
    const element = Object.assign(document.createElement(tag), settings);
    parent?.append(element);
    return element;
  }

  function print(column, row) {
    const entry = column.values[row];
    if (entry === null) return "–";
    if (column.kind === "list") return entry.join("; ") || "none";
    if (column.kind !== "number") return entry || "–";
    return (column.digits === null ? String(entry) : entry.toFixed(column.digits)).replace("-", "−");
  }

  function shape(tag, colour, kind, attributes) {
    const element = document.createElementNS(SVG, tag);
    for (const [name, given] of Object.entries(attributes)) element.setAttribute(name, given);
    element.style[kind] = `var(--${colour})`;
    return element;
  }

  // The frame of a structure, which has its size before `fill` draws the structure.
  function frame(smiles) {
    if (!content.drawings[smiles]) return make("p", null, { className: "unread", textContent: "RDKit cannot read it." });
    const svg = document.createElementNS(SVG, "svg");
    svg.setAttribute("class", "structure");
    svg.setAttribute("viewBox", `0 0 ${content.size.join(" ")}`);
    svg.setAttribute("role", "img");
    svg.setAttribute("aria-label", `Structure of ${smiles}`);
    svg.dataset.smiles = smiles;
    return svg;
  }

  function fill(svg) {
    if (svg.firstChild) return;
    const [lines, areas, letters] = content.drawings[svg.dataset.smiles];
    for (const [colour, d] of areas) svg.append(shape("path", colour, "fill", { d }));
    for (const [colour, d] of lines) svg.append(shape("path", colour, "stroke", { d, fill: "none" }));
    for (const [colour, size, x, y, letter] of letters) {
      svg.append(shape("text", colour, "fill", { x, y, "font-size": size }));
      svg.lastChild.textContent = letter;
    }
  }

  const fillAll = parent => parent.querySelectorAll("svg").forEach(fill);

  // The frames of a molecule, and of the nearest training molecule and the seed if there are any.
  function makeFrames(parent, row) {
    const pictures = [[value("smiles", row), ""]];
    for (const [other, similarity, unnamed] of COMPARED) {
      const name = value(`${other}_name`, row) || unnamed;
      if (value(other, row)) pictures.push([value(other, row), `${other}: ${name}, similarity ${print(columns.get(similarity), row)}`]);
    }
    for (const [smiles, caption] of pictures) {
      const figure = make("figure", parent);
      figure.append(frame(smiles));
      if (caption) make("figcaption", figure, { textContent: caption });
    }
  }

  function makeCard(row) {
    const card = make("div", null, { className: "card", id: `card${row}`, tabIndex: -1 });
    const named = IN_CARDS.filter(name => columns.has(name)).map(name => columns.get(name));
    card.setAttribute("role", "option");
    card.setAttribute("aria-selected", "false");
    card.ariaLabel = [value("name", row), ...named.map(column => `${column.label} ${print(column, row)}`)].join(", ");
    make("b", card, { textContent: value("name", row) || `molecule ${row + 1}` });
    makeFrames(make("div", card, { className: "pictures" }), row);
    const list = make("ul", card, { className: "values" });
    const add = (label, text) => {
      const item = make("li", list);
      make("span", item, { textContent: `${label} ` });
      item.append(text);
    };
    for (const column of named) add(column.label, print(column, row));
    if (columns.has("alerts")) add("alerts", value("alerts", row).join(", ") || "none");
    make("code", card, { textContent: value("smiles", row) });
    return card;
  }

  // Structures are drawn when they come into sight, because thousands of them take seconds.
  const cards = all.map(makeCard);
  const seen = new IntersectionObserver(entries => {
    for (const { target, isIntersecting } of entries) {
      if (!isIntersecting) continue;
      fillAll(target);
      seen.unobserve(target);
    }
  }, { rootMargin: "600px" });

  // Without the SMILES of other molecules, which nobody looks for here.
  const searched = all.map(row => content.columns
    .filter(({ name, kind }) => (kind === "text" || kind === "list") && name !== "nearest" && name !== "seed")
    .map(column => [column.values[row]].flat().join("\n")).join("\n").toLowerCase());

  // Each column's filter is a function of a row; a column without values that differ needs none.
  function makeFilter(column) {
    if (column.kind === "number") {
      const known = column.values.filter(entry => entry !== null);
      const [least, most] = known.reduce(([a, b], entry) => [Math.min(a, entry), Math.max(b, entry)], [Infinity, -Infinity]);
      if (least === most) return null;
      const set = make("fieldset", find("ranges"));
      make("legend", set, { textContent: column.label });
      const range = make("div", set, { className: "range" });
      const [low, high] = [["at least", least], ["at most", most]].map(([word, bound]) =>
        make("input", range, { type: "number", step: "any", placeholder: bound, ariaLabel: `${column.label} ${word}` }));
      low.after("to");
      return row => {
        const entry = column.values[row];
        return (low.value === "" || (entry !== null && entry >= low.valueAsNumber))
          && (high.value === "" || (entry !== null && entry <= high.valueAsNumber));
      };
    }
    if (column.kind !== "choice" || new Set(column.values).size < 2) return null;
    const label = make("label", find("ranges"), { textContent: column.label });
    const select = make("select", label);
    for (const name of ["any", ...new Set(column.values)].filter(Boolean)) make("option", select, { textContent: name, value: name });
    return row => select.value === "any" || column.values[row] === select.value;
  }

  function makeAlerts() {
    const numbers = new Map();
    for (const name of columns.get("alerts")?.values.flat() ?? []) numbers.set(name, (numbers.get(name) ?? 0) + 1);
    if (!numbers.size) return () => true;
    const box = find("alerts");
    box.hidden = false;
    const check = (text, name) => {
      const label = make("label", box.lastElementChild);
      const input = make("input", label, { type: "checkbox", value: name });
      label.append(text);
      return input;
    };
    const any = check("any alert", "");
    const boxes = [...numbers].sort(([one, a], [other, b]) => b - a || one.localeCompare(other, "en"))
      .map(([name, number]) => check(`${name} (${count(number)})`, name));
    return row => {
      const names = value("alerts", row);
      return !(any.checked && names.length) && !boxes.some(each => each.checked && names.includes(each.value));
    };
  }

  function compare(column, one, other) {
    const [a, b] = [column.values[one], column.values[other]];
    if (a === null || b === null) return (a === null) - (b === null); // missing values come last
    const sign = Number(find("order").value);
    if (column.kind === "list") return sign * (a.length - b.length);
    return sign * (typeof a === "number" ? a - b : a.localeCompare(b, "en", { numeric: true }));
  }

  function arrange() {
    const words = find("search").value.toLowerCase().split(/\s+/).filter(Boolean);
    const passes = row => words.every(word => searched[row].includes(word)) && filters.every(filter => filter(row));
    const column = columns.get(find("sort").value);
    shown = all.filter(passes);
    if (column) shown.sort((one, other) => compare(column, one, other));
    else if (find("order").value === "-1") shown.reverse();
    const visible = new Set(shown);
    cards.forEach((card, row) => { card.hidden = !visible.has(row); });
    find("cards").append(...shown.map(row => cards[row]));
    find("empty").hidden = shown.length > 0;
    move(shown[0] ?? 0);
    say();
  }

  function say() {
    find("counts").textContent = `${count(shown.length)} of ${count(all.length)} shown, ${count(selected.size)} selected`;
    find("saved").textContent = selected.size ? `Save the ${count(selected.size)} selected` : "Save all shown";
    for (const id of ["smi", "csv"]) find(id).disabled = !(selected.size || shown.length);
    find("none").disabled = !selected.size;
  }

  function select(rows, on) {
    for (const row of rows) {
      selected[on ? "add" : "delete"](row);
      cards[row].setAttribute("aria-selected", String(on));
    }
    say();
  }

  // One card at a time can be reached by Tab; the arrow keys lead on from there.
  function move(row) {
    cards[current].tabIndex = -1;
    current = row;
    cards[row].tabIndex = 0;
  }

  function open(row) {
    move(row);
    const place = shown.indexOf(row);
    find("details-title").textContent = value("name", row) || `Molecule ${row + 1}`;
    find("structures").replaceChildren();
    makeFrames(find("structures"), row);
    fillAll(find("structures"));
    const list = find("details").querySelector("dl");
    list.replaceChildren();
    for (const column of content.columns.filter(({ name }) => name !== "name")) {
      const text = print(column, row);
      const fact = make("div", list, { className: text.length > 40 ? "wide" : "" });
      make("dt", fact, { textContent: column.label });
      make("dd", fact, { textContent: text });
    }
    find("previous").disabled = place <= 0;
    find("next").disabled = place === shown.length - 1;
    if (!find("details").open) find("details").showModal();
  }

  function step(by) {
    const row = shown[shown.indexOf(current) + by];
    if (row !== undefined) open(row);
  }

  function save(suffix, text, type) {
    const link = make("a", null, { download: `molecules.${suffix}`, href: URL.createObjectURL(new Blob([text], { type })) });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }

  // What is selected is saved in the order shown, then what the filters hide.
  function chosen() {
    return selected.size ? [...new Set([...shown, ...selected])].filter(row => selected.has(row)) : shown;
  }

  function press(event) {
    const place = shown.indexOf(current);
    const left = i => cards[shown[i]].offsetLeft;
    const across = Math.max(1, shown.findIndex((_, i) => i > 0 && left(i) <= left(0)));
    const places = {
      ArrowRight: place + 1, ArrowLeft: place - 1, ArrowDown: place + across, ArrowUp: place - across,
      Home: 0, End: shown.length - 1,
    };
    if (event.key === " ") select([current], !selected.has(current));
    else if (event.key === "Enter") open(current);
    else if (event.key === "a" && (event.ctrlKey || event.metaKey)) select(shown, true);
    else if (event.key in places) {
      const row = shown[places[event.key]];
      if (row !== undefined) {
        move(row);
        cards[row].focus();
      }
    } else return;
    event.preventDefault();
  }

  function click(event) {
    const card = event.target.closest(".card");
    if (!card) return;
    const row = cards.indexOf(card);
    move(row);
    card.focus();
    if (event.target.closest("b")) select([row], !selected.has(row));
    else open(row);
  }

  const filters = [...content.columns.map(makeFilter), makeAlerts()].filter(Boolean);
  make("option", find("sort"), { textContent: "as written", value: "" });
  for (const { name, label } of content.columns) make("option", find("sort"), { textContent: label, value: name });
  find("filters").hidden = filters.length === 1 && find("alerts").hidden;
  find("cards").classList.toggle("compared", COMPARED.some(([other]) => columns.has(other)));
  find("cards").addEventListener("keydown", press);
  find("cards").addEventListener("click", click);
  find("controls").addEventListener("input", arrange);
  find("controls").addEventListener("submit", event => event.preventDefault());
  find("controls").addEventListener("reset", () => setTimeout(arrange));
  find("all").addEventListener("click", () => select(shown, true));
  find("none").addEventListener("click", () => select([...selected], false));
  find("previous").addEventListener("click", () => step(-1));
  find("next").addEventListener("click", () => step(1));
  find("details").addEventListener("keydown", event => step({ ArrowLeft: -1, ArrowRight: 1 }[event.key] ?? NaN));
  find("details").addEventListener("close", () => cards[current].focus());
  find("smi").addEventListener("click", () => {
    const lines = chosen().map(row => `${value("smiles", row)} ${value("name", row)}`.replace(LINE_BREAKS, " ") + "\n");
    save("smi", lines.join(""), "chemical/x-daylight-smiles");
  });
  find("csv").addEventListener("click", () => {
    save("csv", [content.head, ...chosen().map(row => content.lines[row])].join(""), "text/csv");
  });
  window.addEventListener("beforeprint", () => fillAll(find("cards")));
  arrange();
  cards.forEach(card => seen.observe(card));
})();
