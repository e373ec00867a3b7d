// Sorts tables by their columns and copies the command. Without it the page is complete.
(() => {
  "use strict";

  const NEXT = { none: "ascending", ascending: "descending", descending: "none" };

  // data-values has a number, a text or null for each column of a row; rows without it stay where they are.
  // The rows of each tbody are sorted among themselves.
  function groupsOf(table) {
    return [...table.tBodies].map(body => {
      const rows = [...body.querySelectorAll("tr[data-values]")];
      return {
        body,
        rows,
        values: new Map(rows.map(row => [row, JSON.parse(row.dataset.values)])),
        behind: rows.at(-1)?.nextElementSibling ?? null,
      };
    });
  }

  function compare(a, b) {
    return typeof a === "number" ? a - b : a.localeCompare(b, "en", { numeric: true });
  }

  // Missing values come last in either order; equal ones stay in the original order.
  function sorted({ rows, values }, column, order) {
    if (order === "none") return rows;
    const sign = order === "ascending" ? 1 : -1;
    return [...rows].sort((one, other) => {
      const a = values.get(one)[column];
      const b = values.get(other)[column];
      return a === null || b === null ? (a === null) - (b === null) : sign * compare(a, b);
    });
  }

  function differs({ values }, column) {
    return new Set([...values.values()].map(row => row[column])).size > 1;
  }

  function makeSortable(table) {
    const groups = groupsOf(table);
    const useful = head => groups.some(group => differs(group, head.cellIndex));
    const heads = [...table.tHead.querySelectorAll("th")].filter(useful);
    for (const head of heads) {
      const button = document.createElement("button");
      button.type = "button";
      button.className = "sort";
      button.textContent = head.firstChild.textContent.trim();
      head.firstChild.replaceWith(button);
      button.addEventListener("click", () => {
        const order = NEXT[head.ariaSort ?? "none"];
        for (const each of heads) each.removeAttribute("aria-sort");
        if (order !== "none") head.setAttribute("aria-sort", order);
        for (const group of groups) {
          for (const row of sorted(group, head.cellIndex, order)) group.body.insertBefore(row, group.behind);
        }
      });
    }
  }

  // For pages that may not use the clipboard: copies a selection.
  function copySelected(text) {
    const area = document.createElement("textarea");
    area.value = text;
    area.className = "aside";
    document.body.append(area);
    area.select();
    const copied = document.execCommand("copy");
    area.remove();
    return copied;
  }

  function makeCopyable(command) {
    const text = command.querySelector("pre").textContent;
    const button = document.createElement("button");
    const status = document.createElement("span");
    button.type = "button";
    button.textContent = "Copy";
    button.ariaLabel = "Copy the command";
    status.setAttribute("role", "status");
    command.append(button, status);
    button.addEventListener("click", async () => {
      status.textContent = "";
      const copied = await navigator.clipboard?.writeText(text).then(() => true, () => false);
      status.textContent = copied || copySelected(text) ? "Copied" : "Not copied: select it by hand";
      button.focus();
    });
  }

  document.querySelectorAll("table").forEach(makeSortable);
  document.querySelectorAll(".command").forEach(makeCopyable);
})();
