// Tables that sort where they stand: a click on a head's button sorts by its column, another one the other way round.

function valueOf(row, place) {
  const cell = row.cells[place];
  return cell.dataset.value === undefined ? cell.textContent.trim() : Number(cell.dataset.value);
}

function compare(one, other) {
  return typeof one === "number" ? one - other : String(one).localeCompare(other);
}

document.addEventListener("click", ({ target }) => {
  const head = target.closest("table[data-sortable] thead .sort")?.closest("th");
  if (!head) return;
  const body = head.closest("table").tBodies[0];
  const isNumber = body.rows[0]?.cells[head.cellIndex].dataset.value !== undefined;
  const before = head.ariaSort;
  const ascending = before === "none" ? !isNumber : before === "descending";
  for (const other of head.parentElement.cells) other.ariaSort = "none";
  head.ariaSort = ascending ? "ascending" : "descending";
  const rows = [...body.rows].sort((a, b) => compare(valueOf(a, head.cellIndex), valueOf(b, head.cellIndex)));
  body.append(...(ascending ? rows : rows.reverse()));
});
