"use strict";
(() => {
  const given = JSON.parse(document.getElementById("figures").textContent);
  const tip = document.getElementById("tip");

  // ---- tooltips: text only, whatever a name holds
  const showTip = (handler, event, item, value) => {
    if (value === null || value === undefined || value === "") {
      tip.hidden = true;
      return;
    }
    const rows = typeof value === "object" ? Object.entries(value) : [["", value]];
    tip.replaceChildren(...rows.map(([name, text]) => {
      const row = document.createElement("div");
      row.append(...[name, text].map((each) => {
        const part = document.createElement("span");
        part.textContent = String(each);
        return part;
      }));
      return row;
    }));
    tip.hidden = false;
    const box = tip.getBoundingClientRect();
    const left = Math.min(event.clientX + 14, window.innerWidth - box.width - 8);
    const above = event.clientY - box.height - 12;
    tip.style.left = `${Math.max(8, left)}px`;
    tip.style.top = `${above > 8 ? above : event.clientY + 18}px`;
  };

  // ---- figures: each is drawn when it comes near, the others when the browser has time, all of them before printing;
  // tables that are folded stay so on paper, where they would be most of it
  const drawn = new Set();
  const draw = (place) => {
    if (drawn.has(place) || !place.clientWidth) return;
    drawn.add(place);
    const labelLimit = Math.round(Math.min(Math.max(place.clientWidth * 0.28, 84), 280));
    const config = { ...given.config, axis: { ...given.config.axis, labelLimit } };
    // `ast`: expressions are interpreted, so that the page can forbid every script but its own two.
    vegaEmbed(place, given.figures[place.id], {
      mode: "vega-lite", config, renderer: "svg", actions: false, hover: false, ast: true,
      defaultStyle: false, tooltip: showTip,
    }).then(() => {
      // The place has a role and a label; its marks would be read out one by one.
      place.querySelector("svg").setAttribute("aria-hidden", "true");
      place.style.minHeight = "";
      place.dataset.drawn = "";
    });
  };
  const places = [...document.querySelectorAll(".chart")];
  const watcher = new IntersectionObserver((entries) => {
    for (const entry of entries) if (entry.isIntersecting) draw(entry.target);
  }, { rootMargin: "400px 0px" });
  places.forEach((place) => watcher.observe(place));
  const soon = window.requestIdleCallback || ((call) => setTimeout(call, 30));
  const drawRest = () => {
    const next = places.find((place) => !drawn.has(place) && place.clientWidth);
    if (!next) return;
    draw(next);
    soon(drawRest);
  };
  soon(drawRest);

  // ---- on a phone each group of figures shows its first; the button shows the others
  for (const button of document.querySelectorAll(".more")) {
    const figures = button.previousElementSibling;
    const narrow = window.matchMedia("(max-width: 640px)");
    const show = () => { button.hidden = !narrow.matches || figures.classList.contains("every"); };
    show();
    narrow.addEventListener("change", show);
    button.addEventListener("click", () => {
      figures.classList.add("every");
      show();
      figures.querySelectorAll(".chart").forEach(draw);
    });
  }

  // ---- tables that are wider than the page say so; the navigation marks the section that is read
  const widths = new ResizeObserver((entries) => {
    for (const { target } of entries) target.previousElementSibling.hidden = target.scrollWidth <= target.clientWidth + 1;
  });
  document.querySelectorAll(".scroll").forEach((each) => widths.observe(each));
  const links = new Map([...document.querySelectorAll("nav a")].map((each) => [each.hash.slice(1), each]));
  const reading = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) {
      const link = links.get(target.id);
      if (!isIntersecting) link.removeAttribute("aria-current");
      else {
        link.setAttribute("aria-current", "true");
        const list = link.closest("ol");
        list.scrollLeft = link.offsetLeft - list.offsetLeft - list.clientWidth / 3;
      }
    }
  }, { rootMargin: "-80px 0px -85% 0px" });
  for (const id of links.keys()) reading.observe(document.getElementById(id));

  let folded = [];
  window.addEventListener("beforeprint", () => {
    folded = [...document.querySelectorAll("section > details:not([open])")].filter((each) => each.querySelector(".forests"));
    folded.forEach((each) => { each.open = true; });
    document.querySelectorAll(".figures").forEach((each) => each.classList.add("every"));
    places.forEach(draw);
  });
  window.addEventListener("afterprint", () => folded.forEach((each) => { each.open = false; }));

  // ---- theme: that of the system, light or dark; colours are variables, so nothing is drawn again
  const themes = ["system", "light", "dark"];
  const button = document.getElementById("theme");
  const kept = () => {
    try { return localStorage.getItem("rankeval-theme"); } catch { return null; }
  };
  const setTheme = (theme) => {
    if (theme === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    button.textContent = `Theme: ${theme}`;
  };
  let theme = themes.includes(kept()) ? kept() : "system";
  setTheme(theme);
  button.addEventListener("click", () => {
    theme = themes[(themes.indexOf(theme) + 1) % themes.length];
    setTheme(theme);
    try { localStorage.setItem("rankeval-theme", theme); } catch { /* a page may have no storage */ }
  });

  // ---- tables: sorted by their headings, filtered by words that all have to be in a row
  const order = new Intl.Collator(undefined, { numeric: true, sensitivity: "base" });
  const keyOf = (row, column) => {
    const cell = row.cells[column];
    if (cell.dataset.sort !== undefined) return Number(cell.dataset.sort);
    return cell.textContent.trim() || null;
  };
  const compare = (a, b) => (typeof a === "number" && typeof b === "number" ? a - b : order.compare(String(a), String(b)));

  for (const holder of document.querySelectorAll("[data-table]")) {
    const body = holder.querySelector("tbody");
    const heads = [...holder.querySelectorAll("thead th")];
    heads.forEach((head, column) => head.querySelector("button").addEventListener("click", () => {
      const isNumber = head.classList.contains("number");
      const was = head.getAttribute("aria-sort");
      const next = was === null ? (isNumber ? "descending" : "ascending") : was === "ascending" ? "descending" : "ascending";
      heads.forEach((each) => each.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", next);
      const sign = next === "ascending" ? 1 : -1;
      const keyed = [...body.rows].map((row) => [keyOf(row, column), row]);
      keyed.sort(([a], [b]) => (a === null) - (b === null) || (a === null ? 0 : sign * compare(a, b)));
      body.append(...keyed.map(([, row]) => row));
    }));
    const input = holder.querySelector("input[type=search]");
    if (!input) continue;
    const output = holder.querySelector("output");
    const all = output.textContent;
    const texts = new Map([...body.rows].map((row) => [row, [...row.cells].map((cell) => cell.textContent).join(" ").toLowerCase()]));
    input.addEventListener("input", () => {
      const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0;
      for (const [row, text] of texts) {
        row.hidden = !words.every((word) => text.includes(word));
        shown += row.hidden ? 0 : 1;
      }
      output.textContent = words.length ? `${shown} of ${all}` : all;
    });
  }
})();
