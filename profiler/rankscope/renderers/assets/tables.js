// Makes the columns of every table sortable: a click sorts, a second one turns the order round.
"use strict";
(function () {
  function readKey(row, index) {
    const cell = row.cells[index];
    return cell.dataset.value === undefined ? cell.textContent.trim() : Number(cell.dataset.value);
  }

  // Numbers first, then text; what is undefined goes last in either direction.
  function compare(a, b, direction) {
    const undefinedFirst = (a === "n/a") - (b === "n/a");
    if (undefinedFirst !== 0) return undefinedFirst;
    if (typeof a !== typeof b) return typeof a === "number" ? -1 : 1;
    if (typeof a === "number") return direction * (a - b);
    return direction * a.localeCompare(b, "en", { numeric: true });
  }

  function sortBy(table, header, index) {
    const direction = header.getAttribute("aria-sort") === "ascending" ? -1 : 1;
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    header.setAttribute("aria-sort", direction === 1 ? "ascending" : "descending");
    const body = table.tBodies[0];
    const keyed = [...body.rows].map((row) => ({ row, key: readKey(row, index) }));
    keyed.sort((a, b) => compare(a.key, b.key, direction));
    body.append(...keyed.map((item) => item.row));
  }

  for (const table of document.querySelectorAll("table")) {
    [...table.tHead.rows[0].cells].forEach((header, index) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...header.childNodes);
      button.addEventListener("click", () => sortBy(table, header, index));
      header.append(button);
    });
  }
})();
