for (const pair of document.querySelectorAll(".pair")) {
  const open = [...pair.children].filter((card) => !card.hidden);
  if (open.length === 1) open[0].classList.add("alone");
}
$("#contents").append(...[...document.querySelectorAll("main section[id]")].filter((section) => !section.hidden)
  .map((section) => h("a", { href: `#${section.id}` }, section.querySelector("h2").textContent)));
