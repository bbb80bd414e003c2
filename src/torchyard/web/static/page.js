// Puts rows that the server sends where they belong, filters them, tells ages. Knows no workload.
"use strict";

const rows = document.getElementById("rows");
const find = document.getElementById("find");
const live = document.getElementById("live");

function age(seconds) {
  for (const [unit, size] of [["d", 86400], ["h", 3600], ["m", 60]]) {
    if (seconds >= size) return Math.floor(seconds / size) + unit + " ago";
  }
  return "just now";
}

function tellAges() {
  for (const time of rows.querySelectorAll("time")) {
    time.title = time.title || new Date(time.dateTime).toLocaleString();
    time.textContent = age((Date.now() - new Date(time.dateTime)) / 1000);
  }
}

function filter() {
  const wanted = find.value.trim().toLowerCase().split(/\s+/);
  let shown = 0;
  for (const row of rows.rows) {
    const text = row.textContent.toLowerCase();
    row.hidden = !wanted.every((word) => text.includes(word));
    if (!row.hidden) shown += 1;
  }
  document.getElementById("empty").hidden = rows.rows.length > 0;
  document.getElementById("nothing").hidden = rows.rows.length === 0 || shown > 0;
}

function put(id, html) {
  const holder = document.createElement("template");
  holder.innerHTML = html.trim();
  const row = holder.content.firstElementChild;
  const old = document.getElementById("w-" + id);
  if (old === null) {
    rows.prepend(row);
  } else if (old.dataset.html !== html) {
    const before = old.querySelector(".phase").textContent;
    if (before !== row.querySelector(".phase").textContent) row.classList.add("fresh");
    old.replaceWith(row);
  }
  row.dataset.html = html;
}

const stream = new EventSource("/live");
stream.onopen = () => { live.textContent = "live"; live.className = "on"; };
stream.onerror = () => { live.textContent = "reconnecting"; live.className = ""; };
stream.addEventListener("row", (event) => {
  const { id, html } = JSON.parse(event.data);
  put(id, html);
  tellAges();
  filter();
});
stream.addEventListener("gone", (event) => {
  document.getElementById("w-" + JSON.parse(event.data).id)?.remove();
  filter();
});

find.addEventListener("input", filter);
document.addEventListener("keydown", (event) => {
  if (event.key === "/" && document.activeElement !== find) {
    event.preventDefault();
    find.focus();
  }
});
setInterval(tellAges, 30000);
tellAges();
filter();
