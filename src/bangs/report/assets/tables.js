// A table of many lines: search, filters, sorting, pages, and a CSV file of the lines that are shown.
// columns: { name, key, cell, csv, kind }; key sorts, cell draws (key if left out), csv is written (key if left out).
function dataTable({ section, table, tools, foot, count, columns, text, filters, sort, size, noun, file, search, marked }) {
  const state = { words: "", picked: {}, by: sort ? sort.by : null, down: sort ? sort.down : false, page: 0 };
  const head = table.querySelector("thead"), body = table.querySelector("tbody");
  const everyLine = Array.from({ length: count }, (_, i) => i);
  let lower = null;  // the searched text of every line, made when it is first needed
  let lines = everyLine;
  const choose = () => {
    if (state.words && !lower) lower = everyLine.map((i) => text(i).toLowerCase());
    lines = everyLine.filter((i) => (!state.words || lower[i].includes(state.words)) && filters.every(({ key, of }) => !state.picked[key] || of(i) === state.picked[key]));
    if (state.by !== null) {
      const { key } = columns[state.by], keys = new Map(lines.map((i) => [i, key(i)]));
      lines.sort((a, b) => { const x = keys.get(a), y = keys.get(b); return (x < y ? -1 : x > y ? 1 : a - b) * (state.down ? -1 : 1); });
    }
  };
  // The head and the buttons are made once, so that the keyboard's focus stays on them.
  const heads = columns.map(({ name, key, kind }, c) => h("th", { scope: "col", class: kind || null },
    key ? h("button", { type: "button", onclick: () => { state.down = state.by === c ? !state.down : typeof key(0) === "number"; state.by = c; state.page = 0; choose(); draw(); } }, name, h("span", { "aria-hidden": "true" })) : name));
  head.append(h("tr", {}, heads));
  const turn = (step) => () => { state.page += step; draw(); };
  const back = h("button", { type: "button", onclick: turn(-1) }, "Back"), next = h("button", { type: "button", onclick: turn(1) }, "Next");
  const where = h("span", {}), total = h("span", { class: "count", "aria-live": "polite" });
  foot.append(back, where, next, total);
  const draw = () => {
    const last = Math.max(0, Math.ceil(lines.length / size) - 1);
    state.page = Math.max(0, Math.min(state.page, last));
    heads.forEach((cell, c) => {
      if (state.by === c) cell.setAttribute("aria-sort", state.down ? "descending" : "ascending"); else cell.removeAttribute("aria-sort");
      const arrow = cell.querySelector("span");
      if (arrow) arrow.textContent = state.by === c ? (state.down ? " ↓" : " ↑") : "";
    });
    body.replaceChildren(...lines.slice(state.page * size, state.page * size + size).map((i) => h("tr", { class: marked(i) ? "on" : null },
      columns.map(({ name, key, cell, kind }) => {
        const content = cell ? cell(i) : String(key(i));
        return h("td", { class: [kind, content === "–" && "empty"].filter(Boolean).join(" ") || null, "data-label": name }, content);
      }))));
    if (!lines.length) body.append(h("tr", {}, h("td", { colspan: columns.length }, "Nothing matches.")));
    back.disabled = state.page === 0;
    next.disabled = state.page === last;
    where.textContent = `page ${whole(state.page + 1)} of ${whole(last + 1)}`;
    total.textContent = lines.length === count ? plural(count, noun) : `${whole(lines.length)} of ${plural(count, noun)}`;
  };
  const again = () => { state.page = 0; choose(); draw(); };
  tools.append(h("input", { type: "search", id: search.id, placeholder: search.words, "aria-label": search.words, oninput: (event) => { state.words = event.target.value.trim().toLowerCase(); again(); } }),
    ...filters.filter(({ choices }) => choices.length > 1).map(({ key, name, choices }) => h("select", { "aria-label": name, onchange: (event) => { state.picked[key] = event.target.value; again(); } },
      h("option", { value: "" }, name), choices.map(([value, words]) => h("option", { value }, clip(words, 40))))),
    h("button", { type: "button", class: "export", onclick: () => download(file, [columns.map(({ name }) => name), ...lines.map((i) => columns.map(({ key, csv }) => (csv || key)(i)))]) }, "Save as CSV"));
  choose();
  draw();
  return draw;
}

// A cell that a spreadsheet would run as a formula gets an apostrophe in front, as in the files that bangs writes.
function csvCell(value) {
  const text = String(value ?? "");
  const safe = /^[=+\-@\t\r]/.test(text) && !/^[+-]?\d+(\.\d+)?([eE][+-]?\d+)?$/.test(text) ? `'${text}` : text;
  return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
function download(name, rows) {
  const blob = new Blob([rows.map((row) => row.map(csvCell).join(",")).join("\n") + "\n"], { type: "text/csv" });
  const link = h("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
