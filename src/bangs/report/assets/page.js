function drawLedger() {
  const p = facts.pseudo;
  if (!p || !p.node.length) return;
  const more = p.node.length < p.total ? ` The first ${whole(p.node.length)} of ${whole(p.total)}; all are in pseudo_labels.csv.` : "";
  show("pseudo", `What the model labelled itself, and which labelled nodes stood behind it.${more}`);
  const value = facts.score[0].toUpperCase() + facts.score.slice(1) + (POWER ? `, ${POWER.slice(1)}` : "");
  const columns = [
    ["Node", (i) => nodes.name[p.node[i]], ""], ["Round", (i) => p.round[i], "r"], ["Label", (i) => className(p.label[i]), ""],
    ["Confidence", (i) => p.confidence[i], "r"], [value, (i) => p.value[i], "r"],
    p.right && p.right.some((x) => x !== null) ? ["Right", (i) => (p.right[i] === null ? -1 : Number(p.right[i])), ""] : null,
    p.used.every(Boolean) ? null : ["Used", (i) => Number(p.used[i]), ""], ["Strongest labelled influences", null, "wide"]].filter(Boolean);
  const state = { words: "", label: "", round: "", by: null, down: false, page: 0 };
  const SIZE = 20;
  const reasons = (i) => ((facts.around[p.node[i]] || { influences: [] }).influences.slice(0, 3)); // those shown, so that a search finds what is seen
  const none = (i) => (facts.around[p.node[i]] ? "none within reach: its own features decide" : "not in this page");
  const text = p.node.map((node, i) => [nodes.name[node], className(p.label[i]), ...reasons(i).map(([other]) => nodes.name[other])].join("\n").toLowerCase());
  const cells = {
    Node: (i) => h("button", { type: "button", class: "link", onclick: () => { choose(p.node[i]); document.getElementById("map").scrollIntoView(); } }, clip(nodes.name[p.node[i]], 60)),
    Label: (i) => h("span", { class: "tag" }, dot(p.label[i]), clip(className(p.label[i]), 40)),
    Confidence: (i) => [`${(100 * p.confidence[i]).toFixed(1)} %`, h("span", { class: "se" }, ` was ${(100 * p.before[i]).toFixed(1)}`)],
    [value]: (i) => [worth(p.value[i]), p.stderr[i] === null ? null : h("span", { class: "se" }, give(p.value[i], p.stderr[i]).slice(worth(p.value[i]).length))],
    Right: (i) => (p.right[i] === null ? "–" : h("span", { class: p.right[i] ? "yes" : "no" }, p.right[i] ? "yes" : "no")),
    Used: (i) => (p.used[i] ? "yes" : "no, came later"),
    "Strongest labelled influences": (i) => reasons(i).map(([other, share]) => `${apart(clip(nodes.name[other], 24))} (${percent(share, 0)})`).join(" · ") || none(i),
  };
  const head = $("#candidates thead"), body = $("#candidates tbody");
  const draw = () => {
    let lines = p.node.map((_, i) => i).filter((i) => text[i].includes(state.words) && (state.label === "" || p.label[i] === +state.label) && (state.round === "" || p.round[i] === +state.round));
    if (state.by !== null) {
      const key = columns[state.by][1];
      lines.sort((a, b) => { const x = key(a), y = key(b); return (x < y ? -1 : x > y ? 1 : a - b) * (state.down ? -1 : 1); });
    }
    const last = Math.max(0, Math.ceil(lines.length / SIZE) - 1);
    state.page = Math.min(state.page, last);
    head.replaceChildren(h("tr", {}, columns.map(([name, key, kind], c) => h("th", { scope: "col", class: kind || null, "aria-sort": state.by === c ? (state.down ? "descending" : "ascending") : null },
      key ? h("button", { type: "button", onclick: () => { state.down = state.by === c ? !state.down : typeof key(0) === "number"; state.by = c; draw(); } }, name, state.by === c ? (state.down ? " ↓" : " ↑") : "") : name))));
    body.replaceChildren(...lines.slice(state.page * SIZE, state.page * SIZE + SIZE).map((i) => h("tr", { class: p.node[i] === current ? "on" : null },
      columns.map(([name, key, kind]) => h("td", { class: kind || null }, cells[name] ? cells[name](i) : String(key(i)))))));
    if (!lines.length) body.append(h("tr", {}, h("td", { colspan: columns.length }, "Nothing matches.")));
    $("#pages").replaceChildren(h("button", { type: "button", disabled: state.page === 0, onclick: () => { state.page--; draw(); } }, "Back"),
      h("span", {}, `page ${state.page + 1} of ${last + 1}`), h("button", { type: "button", disabled: state.page === last, onclick: () => { state.page++; draw(); } }, "Next"),
      h("span", { class: "count" }, plural(lines.length, "pseudo-label")));
  };
  const pick = (name, key, choices) => h("select", { "aria-label": name, onchange: (event) => { state[key] = event.target.value; state.page = 0; draw(); } }, h("option", { value: "" }, name), choices.map(([v, words]) => h("option", { value: v }, clip(words, 40))));
  $("#filters").append(h("input", { type: "search", id: "search", placeholder: "Search nodes, labels, influences", "aria-label": "Search pseudo-labels", oninput: (event) => { state.words = event.target.value.trim().toLowerCase(); state.page = 0; draw(); } }),
    pick("All labels", "label", facts.classes.map((name, c) => [c, name]).filter(([c]) => p.label.includes(c))),
    pick("All rounds", "round", [...new Set(p.round)].map((round) => [round, `round ${round}`])));
  watchers.push(draw);
  draw();
}

const sections = [drawRounds, drawAdopted, drawMap, drawSearch, drawNode, drawLedger, drawValues, drawReliability, drawConfusion, drawSeconds];
for (const draw of sections) draw();
if (nodes) choose(facts.pseudo.node.length ? facts.pseudo.node[0] : Number(Object.keys(facts.around)[0]));
