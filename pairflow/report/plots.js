// Lets a reader point at the values of the charts, and choose methods. Without it the page is complete.
"use strict";
(() => {
  const NEAR = 40; // pixels from a point at which it shows its values
  const FEW = 3; // methods, which take no time to choose from
  const MOVES = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] };
  const HINT = " Names above show and hide methods in these charts. Point at a line or tap it for its values, "
    + "or focus a chart and press the arrow keys.";

  /** An element with attributes inside another one. */
  function add(parent, tag, attributes = {}, text = "") {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.textContent = text;
    parent.append(element);
    return element;
  }

  /** A chart, its lines with their points [x, y, texts] in the units of the drawing, and the hidden names. */
  class Chart {
    constructor(plot, hidden) {
      Object.assign(this, { plot, hidden });
      this.lines = JSON.parse(plot.querySelector("script").textContent);
      this.svg = plot.querySelector("svg");
      this.mark = document.createElementNS("http://www.w3.org/2000/svg", "circle");
      this.mark.setAttribute("class", "mark");
      this.svg.append(this.mark);
      this.tip = add(plot, "div", { class: "tip", role: "status" });
      const drawing = plot.querySelector(".chart");
      Object.assign(drawing, { tabIndex: 0, ariaLabel: `${drawing.ariaLabel} Arrow keys go from point to point.` });
      drawing.addEventListener("pointermove", (event) => this.point(event));
      drawing.addEventListener("pointerdown", (event) => this.point(event));
      drawing.addEventListener("pointerleave", ({ pointerType }) => pointerType === "mouse" && this.leave());
      drawing.addEventListener("keydown", (event) => this.step(event));
      drawing.addEventListener("blur", () => this.leave());
    }

    shown() {
      return this.lines.filter((line) => !this.hidden.has(line.name) && line.points.length);
    }

    update() {
      for (const part of this.svg.querySelectorAll("[data-line]")) {
        part.classList.toggle("hidden", this.hidden.has(this.lines[part.dataset.line].name));
      }
      this.leave();
    }

    /** Shows the values of the point that is nearest to the pointer, if any is near. */
    point(event) {
      const to = this.svg.getScreenCTM();
      const far = ([x, y]) => Math.hypot(to.a * x + to.e - event.clientX, to.d * y + to.f - event.clientY);
      const points = this.shown().flatMap((line) => line.points.map((point, index) => ({ line, index, far: far(point) })));
      const nearest = points.reduce((one, other) => (other.far < one.far ? other : one), { far: NEAR });
      if (nearest.line) this.show(nearest.line, nearest.index);
      else this.leave();
    }

    show(line, index) {
      this.at = { line, index };
      const [x, y, texts] = line.points[index];
      const { width, height } = this.svg.viewBox.baseVal;
      const [left, top] = [(100 * x) / width, (100 * y) / height];
      for (const [name, value] of Object.entries({ cx: x, cy: y, r: 5 })) this.mark.setAttribute(name, value);
      this.tip.replaceChildren();
      add(this.tip, "b", {}, line.name);
      for (const text of texts) add(this.tip, "span", {}, text);
      const shift = top < 50 ? "1rem" : "calc(-100% - 1rem)";
      const place = { left: `${left}%`, top: `${top}%`, transform: `translate(-${left}%, ${shift})` };
      Object.assign(this.tip.style, place, { borderColor: `var(--${line.colour})` });
      this.plot.classList.add("pointed");
    }

    /** Arrow keys: along a line, and from line to line. */
    step(event) {
      if (event.key === "Escape") this.leave();
      const lines = this.shown();
      if (!MOVES[event.key] || !lines.length) return;
      event.preventDefault();
      const [across, along] = this.at ? MOVES[event.key] : [0, 0];
      const { line, index } = this.at ?? { line: lines[0], index: 0 };
      const next = lines[(lines.indexOf(line) + across + lines.length) % lines.length];
      this.show(next, Math.min(Math.max(index + along, 0), next.points.length - 1));
    }

    leave() {
      this.at = undefined;
      this.tip.replaceChildren();
      this.plot.classList.remove("pointed");
    }
  }

  /** The names above a figure become buttons, each of which shows and hides a method in all of its charts. */
  function addChoice(figure, legend, charts, hidden) {
    const buttons = [...legend.children].map((item) => {
      const content = [...item.childNodes];
      const button = add(item, "button", { type: "button" });
      button.append(...content);
      button.addEventListener("click", () => choose(hidden.has(item.dataset.name), [item.dataset.name]));
      return [item.dataset.name, button];
    });
    const all = add(add(legend, "li", { class: "all" }), "button", { type: "button" });
    all.addEventListener("click", () => choose(hidden.size, buttons.map(([name]) => name)));
    if (buttons.length <= FEW) all.parentElement.remove();
    function choose(visible, names) {
      for (const name of names) hidden[visible ? "delete" : "add"](name);
      for (const [name, button] of buttons) button.ariaPressed = !hidden.has(name);
      all.textContent = hidden.size ? "show all" : "hide all";
      charts.forEach((chart) => chart.update());
    }
    choose(true, []);
    add(figure.querySelector("figcaption"), "span", { class: "hint" }, HINT);
  }

  for (const figure of document.querySelectorAll("figure:has(.plot)")) {
    const hidden = new Set();
    const charts = [...figure.querySelectorAll(".plot")].map((plot) => new Chart(plot, hidden));
    addChoice(figure, figure.previousElementSibling, charts, hidden);
  }
})();
