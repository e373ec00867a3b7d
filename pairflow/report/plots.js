// Draws the charts of the page with Plotly, so that a reader can point at values, zoom and choose methods.
// The static drawings remain on paper, without scripts, and until a chart comes into view.
"use strict";
(() => {
  const WIDTH = 2;
  const SIZE = 8;
  const NAME = 24; // characters of a name at the end of a line
  const LEADING = 13; // pixels between such names
  const FEW = 3; // methods, which take no time to choose from
  const CONFIG = { displayModeBar: false, doubleClick: "reset", showTips: false };
  const MOVES = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] };
  const touch = matchMedia("(pointer: coarse)");
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const HOW = touch.matches
    ? "Tap a point for its values."
    : "Point at a line for its values, or focus a chart and press the arrow keys; drag to zoom.";

  /** An element with attributes inside another one. */
  function add(parent, tag, attributes = {}, text = "") {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.textContent = text;
    parent.append(element);
    return element;
  }

  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

  /** Plain text as Plotly's markup. */
  const escaped = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");

  /** Text broken into lines of at most `most` characters, as markup of Plotly. */
  function wrapped(text, most) {
    const lines = text.match(new RegExp(`.{1,${most}}(?:\\s|$)|.{${most}}`, "gu")) ?? [];
    return lines.map((line) => escaped(line.trim())).join("<br>");
  }

  const shortened = (name) => (name.length > NAME ? `${name.slice(0, NAME - 1)}…` : name);

  /** Ascending places moved as little as possible, so that they are at least a gap apart. */
  function spread(places, gap) {
    const groups = [];
    places.forEach((place, i) => {
      groups.push({ sum: place - gap * i, count: 1 });
      const mean = (group) => group.sum / group.count;
      while (groups.length > 1 && mean(groups.at(-1)) < mean(groups.at(-2))) {
        const { sum, count } = groups.pop();
        groups.at(-1).sum += sum;
        groups.at(-1).count += count;
      }
    });
    return groups.flatMap(({ sum, count }) => Array(count).fill(sum / count)).map((place, i) => place + gap * i);
  }

  let loading;
  /** Plotly, unpacked when a chart first needs it: it is five megabytes. */
  const library = () => (loading ??= unpack(document.getElementById("plotly").textContent));

  async function unpack(text) {
    const bytes = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    add(document.head, "script", {}, await new Response(stream).text());
    return window.Plotly;
  }

  /** One chart: its data, which of its axes are logarithmic, and the methods that its figure hides. */
  class Chart {
    constructor(element, hidden) {
      this.element = element;
      this.hidden = hidden;
      this.data = JSON.parse(element.querySelector("script").textContent);
      this.view = 0;
      this.reset();
    }

    /** Whether an axis can be logarithmic. */
    positive(side) {
      const values = this.data.lines.flatMap((line) => line[side]).filter((value) => value !== null);
      return values.length > 0 && Math.min(...values) > 0;
    }

    /** The chart as it was at first; hidden methods stay hidden. */
    reset() {
      this.log = { x: this.data.x.log, y: this.data.y.log };
      this.view += 1;
      this.draw();
    }

    scale(side, log) {
      this.log[side] = log;
      this.view += 1;
      this.draw();
    }

    /** Replaces the static chart by that of Plotly. */
    async show() {
      await library();
      const alternative = this.element.querySelector(".chart").getAttribute("aria-label");
      const label = `${alternative} Arrow keys go from point to point.`;
      this.drawn = add(this.element, "div", { class: "drawn", role: "img", tabindex: "0", "aria-label": label });
      this.status = add(this.element, "p", { class: "status", role: "status" });
      await this.draw();
      this.element.classList.add("live");
      this.drawn.addEventListener("keydown", (event) => this.walk(event));
      this.drawn.addEventListener("blur", () => this.leave());
      this.drawn.on("plotly_relayout", (change) => {
        if (!("annotations" in change)) this.nameEnds();
      });
      new ResizeObserver(([entry]) => {
        if (entry.contentRect.width) Plotly.Plots.resize(this.drawn).then(() => this.nameEnds());
      }).observe(this.drawn);
    }

    /** Draws the current state. */
    draw() {
      if (!this.drawn) return undefined;
      this.leave();
      return Plotly.react(this.drawn, this.traces(), this.layout(), CONFIG).then(() => this.nameEnds());
    }

    traces() {
      return this.data.lines.map((line) => {
        const stroke = colour(line.colour);
        const name = `<b>${wrapped(line.name, 22)}</b>`;
        return {
          name: escaped(line.name),
          visible: !this.hidden.has(line.name),
          x: line.x,
          y: line.y,
          mode: line.symbol ? "lines+markers" : "lines",
          line: { color: stroke, dash: line.dash, width: WIDTH },
          marker: {
            symbol: line.symbol || "circle",
            size: line.symbol.startsWith("triangle") ? 1.3 * SIZE : SIZE, // Plotly's are flat
            color: line.hollow ? colour("page") : stroke,
            line: { color: stroke, width: line.hollow ? 1.5 : 0 },
            maxdisplayed: line.markers,
          },
          error_y: { visible: line.error.some(Boolean), array: line.error, thickness: 1.5, width: 3 },
          hoverinfo: "text",
          hovertext: line.texts.map((texts) => [name, ...texts.map(escaped)].join("<br>")),
          hoverlabel: { bordercolor: stroke },
        };
      });
    }

    layout() {
      const font = { family: getComputedStyle(document.body).fontFamily, size: 11, color: colour("ink") };
      return {
        xaxis: this.axis("x"),
        yaxis: this.axis("y"),
        font,
        margin: { l: 10, r: this.data.named ? this.widthOfNames() : 10, t: 10, b: 10 },
        annotations: this.names ?? [],
        paper_bgcolor: colour("page"),
        plot_bgcolor: colour("page"),
        showlegend: false,
        hovermode: "closest",
        hoverlabel: { bgcolor: colour("raised"), font: { ...font, size: 12 }, align: "left" },
        uirevision: this.view, // what is zoomed stays so until another one
        dragmode: touch.matches ? false : "zoom",
      };
    }

    /** Room for the names at the ends of the lines. */
    widthOfNames() {
      const context = document.createElement("canvas").getContext("2d");
      context.font = `11px ${getComputedStyle(document.body).fontFamily}`;
      const widths = this.shown().map((line) => context.measureText(shortened(line.name)).width);
      return Math.max(0, ...widths) + 26;
    }

    shown() {
      return this.data.lines.filter((line) => !this.hidden.has(line.name));
    }

    /** Names to the right of the lines' last points in sight, as near to them as the other names permit. */
    nameEnds() {
      if (!this.data.named) return undefined;
      const { xaxis, yaxis } = this.drawn._fullLayout;
      const [width, height] = [xaxis._length, yaxis._length];
      const ends = this.shown().flatMap((line) => {
        const points = line.x.map((x, i) => [xaxis.d2p(x), line.y[i] === null ? NaN : yaxis.d2p(line.y[i])]);
        const inside = points.filter(([x, y]) => x >= 0 && x <= width + 1 && y >= 0 && y <= height + 1);
        return inside.length ? [{ line, x: inside.at(-1)[0], y: inside.at(-1)[1] }] : [];
      });
      ends.sort((one, other) => one.y - other.y);
      const places = spread(ends.map((end) => end.y), LEADING);
      const names = ends.map(({ line, x, y }, i) => ({
        text: escaped(shortened(line.name)),
        xref: "paper",
        yref: "paper",
        x: x / width,
        y: 1 - y / height,
        ax: width - x + 14,
        ay: places[i] - y,
        xanchor: "left",
        arrowhead: 0,
        arrowwidth: 0.8,
        arrowcolor: colour(line.colour),
        standoff: 5,
        borderpad: 0,
        font: { color: colour(line.colour === "grey" ? "muted" : "ink") },
      }));
      this.names = names;
      return Plotly.relayout(this.drawn, { annotations: names });
    }

    axis(side) {
      const about = this.data[side];
      const log = this.log[side];
      const asIs = log === about.log;
      return {
        title: { text: wrapped(about.label, 32), font: { size: 11 }, standoff: 8 },
        type: log ? "log" : "linear",
        ...(asIs && about.limits
          ? { range: about.limits }
          : { autorange: true, rangemode: about.zero ? "tozero" : "normal" }),
        ...(asIs && about.ticks.length
          ? { tickvals: about.ticks.map(([value]) => value), ticktext: about.ticks.map(([, text]) => text) }
          : { nticks: log ? 3 : 6, tickformat: log ? ",.4~g" : "" }),
        separatethousands: true,
        exponentformat: "none",
        automargin: true,
        fixedrange: touch.matches,
        zeroline: false,
        showline: true,
        linecolor: colour("muted"),
        gridcolor: colour("rule"),
        ticks: "outside",
        ticklen: 4,
        tickcolor: colour("muted"),
        tickfont: { color: colour("muted") },
      };
    }

    /** Arrow keys: along a line, and from line to line. */
    walk(event) {
      if (event.key === "Escape") this.leave();
      if (!MOVES[event.key]) return;
      event.preventDefault();
      const [across, along] = this.at ? MOVES[event.key] : [0, 0];
      const lines = this.shown();
      if (!lines.length) return;
      const { line, point } = this.at ?? { line: lines[0], point: 0 };
      const next = lines[(Math.max(lines.indexOf(line), 0) + across + lines.length) % lines.length];
      const known = [...next.y.keys()].filter((index) => next.y[index] !== null);
      const place = known.filter((index) => index < point).length + along;
      const pointNumber = known[Math.min(Math.max(place, 0), known.length - 1)];
      this.at = { line: next, point: pointNumber };
      Plotly.Fx.hover(this.drawn, [{ curveNumber: this.data.lines.indexOf(next), pointNumber }]);
      this.status.textContent = [next.name, ...next.texts[pointNumber]].join(", ");
    }

    leave() {
      if (this.at) Plotly.Fx.unhover(this.drawn);
      this.at = undefined;
      this.status.textContent = "";
    }

    /** A PNG with a title and the names of the methods, in the page's colours. */
    async download() {
      await library();
      const experiment = document.querySelector("h1").textContent;
      const layout = {
        ...this.layout(),
        title: { text: wrapped(`${experiment}: ${this.data.title}`, 100), font: { size: 14 } },
        margin: { l: 10, r: 10, t: 50, b: 10 },
        annotations: [],
        showlegend: true,
      };
      const filename = this.data.title.replace(/[^A-Za-z0-9]+/g, "-").replace(/^-|-$/g, "");
      const size = { width: 900, height: 600, scale: 2 };
      Plotly.downloadImage({ data: this.traces(), layout }, { format: "png", filename, ...size });
    }
  }

  /** The legends right above a figure. */
  function legends(figure) {
    const above = figure.previousElementSibling;
    return above?.matches(".legend") ? [...legends(above), above] : [];
  }

  /** The names above a figure become buttons, each of which shows and hides a method in all of its charts. */
  function addChoice(figure, charts, hidden) {
    const buttons = new Map();
    const all = document.createElement("button");
    const update = () => {
      for (const [name, button] of buttons) button.setAttribute("aria-pressed", !hidden.has(name));
      all.textContent = hidden.size ? "show all" : "hide all";
      charts.forEach((chart) => chart.draw());
    };
    for (const item of legends(figure).flatMap((legend) => [...legend.children])) {
      const { name } = item.dataset;
      const content = [...item.childNodes];
      const button = add(item, "button", { type: "button" });
      button.append(...content);
      button.addEventListener("click", () => {
        if (!hidden.delete(name)) hidden.add(name);
        update();
      });
      buttons.set(name, button);
    }
    all.type = "button";
    all.addEventListener("click", () => {
      if (hidden.size) hidden.clear();
      else [...buttons.keys()].forEach((name) => hidden.add(name));
      update();
    });
    if (buttons.size > FEW) add(legends(figure).at(-1), "li", { class: "all" }).append(all);
    update();
    add(figure.querySelector("figcaption"), "span", { class: "hint" }, ` Names above show and hide methods in these charts. ${HOW}`);
  }

  /** Buttons for the axes of all charts of a figure. */
  function addTools(figure, charts) {
    const tools = document.createElement("div");
    tools.className = "tools";
    tools.setAttribute("role", "group");
    tools.setAttribute("aria-label", charts.map((chart) => chart.data.title).join("; "));
    const switches = {};
    const tool = (text, act) => {
      const button = add(tools, "button", { type: "button" }, text);
      button.addEventListener("click", () => {
        act();
        for (const [side, one] of Object.entries(switches)) {
          one.setAttribute("aria-pressed", charts.every((chart) => !chart.positive(side) || chart.log[side]));
        }
      });
      return button;
    };
    for (const side of ["x", "y"]) {
      const able = charts.filter((chart) => chart.positive(side));
      const all = () => able.every((chart) => chart.log[side]);
      const button = tool(`log ${side}`, () => {
        const log = !all();
        able.forEach((chart) => chart.scale(side, log));
      });
      button.setAttribute("aria-pressed", able.length > 0 && all());
      if (!able.length) {
        button.disabled = true;
        button.title = "Some values are not above 0";
      } else switches[side] = button;
    }
    tool("reset", () => charts.forEach((chart) => chart.reset()));
    figure.prepend(tools);
  }

  /** A line for each chart in the list of downloads. */
  function addDownloads(charts) {
    const list = document.querySelector("#downloads ul");
    for (const chart of list ? charts : []) {
      const item = add(list, "li");
      add(item, "span", {}, chart.data.title);
      const label = `PNG: ${chart.data.title}`;
      const button = add(item, "button", { type: "button", "aria-label": label }, "PNG");
      button.addEventListener("click", () => chart.download());
    }
  }

  function start() {
    const charts = new Map();
    for (const figure of document.querySelectorAll("figure")) {
      const hidden = new Set();
      const own = [...figure.querySelectorAll(".plot")].map((element) => new Chart(element, hidden));
      if (!own.length) continue;
      own.forEach((chart) => charts.set(chart.element, chart));
      addChoice(figure, own, hidden);
      addTools(figure, own);
    }
    addDownloads([...charts.values()]);
    let queue = Promise.resolve();
    const seen = new IntersectionObserver((entries) => {
      for (const { target } of entries.filter((entry) => entry.isIntersecting)) {
        seen.unobserve(target);
        queue = queue.then(() => new Promise(requestAnimationFrame)).then(() => charts.get(target).show());
      }
    }, { rootMargin: "300px" });
    for (const element of charts.keys()) seen.observe(element);
    dark.addEventListener("change", () => charts.forEach((chart) => chart.draw()));
  }

  if ("DecompressionStream" in window) start();
})();
