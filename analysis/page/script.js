"use strict";
(() => {
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];

  // ---- tables: sorted by a click on a column's name, or Enter on it ----

  const keyOf = (cell) => {
    if (cell.dataset.value !== undefined) return Number(cell.dataset.value);
    return cell.textContent.trim();
  };

  const compare = (a, b) => {
    const numbers = [typeof a === "number", typeof b === "number"];
    if (numbers[0] && numbers[1]) return a - b;
    // What is not known comes last, whichever way round.
    if (numbers[0] !== numbers[1]) return 0;
    return a.localeCompare(b, "en", { numeric: true });
  };

  const sortBy = (head) => {
    const body = head.closest("table").tBodies[0];
    const column = head.cellIndex;
    const down = head.getAttribute("aria-sort") === "ascending";
    all("[aria-sort]", head.parentNode).forEach((other) => other.setAttribute("aria-sort", "none"));
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const rows = [...body.rows].map((row) => [keyOf(row.cells[column]), row]);
    const someNumbers = rows.some(([key]) => typeof key === "number");
    const known = rows.filter(([key]) => !someNumbers || typeof key === "number");
    const unknown = rows.filter((row) => !known.includes(row));
    known.sort((a, b) => (down ? compare(b[0], a[0]) : compare(a[0], b[0])));
    body.append(...[...known, ...unknown].map(([, row]) => row));
  };

  all("th[data-sort]").forEach((head) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    button.addEventListener("click", () => sortBy(head));
    head.append(button);
  });

  // ---- values: shown where the pointer is, and in figures by the arrow keys ----

  const tip = document.getElementById("tip");
  const show = (text, box) => {
    tip.textContent = text;
    tip.classList.add("shown");
    const width = tip.offsetWidth;
    const left = box.left + box.width / 2 - width / 2;
    const most = document.documentElement.clientWidth - width - 8;
    const above = box.top - tip.offsetHeight - 8;
    tip.style.left = `${Math.max(8, Math.min(left, most))}px`;
    tip.style.top = `${above > 4 ? above : box.bottom + 8}px`;
  };
  const hide = () => tip.classList.remove("shown");

  all(".pt").forEach((point) => {
    // The browser's own tip would come on top of ours.
    const title = point.querySelector("title");
    point.dataset.tip = title.textContent;
    title.remove();
  });
  document.addEventListener("pointerover", (event) => {
    const over = event.target.closest("[data-tip]");
    if (over) show(over.dataset.tip, over.getBoundingClientRect());
    else hide();
  });
  const follow = () => {
    const chosen = document.querySelector(".pt.chosen");
    if (chosen) show(chosen.dataset.tip, chosen.getBoundingClientRect());
    else hide();
  };
  document.addEventListener("scroll", follow, true);

  all("svg.chart").forEach((chart) => {
    const points = all(".pt", chart);
    let at = -1;
    const go = (to) => {
      points[at]?.classList.remove("chosen");
      at = to;
      points[at]?.classList.add("chosen");
      if (points[at]) show(points[at].dataset.tip, points[at].getBoundingClientRect());
      else hide();
    };
    chart.addEventListener("keydown", (event) => {
      const to = {
        ArrowRight: Math.min(at + 1, points.length - 1),
        ArrowLeft: Math.max(at - 1, 0),
        Home: 0,
        End: points.length - 1,
        Escape: -1,
      }[event.key];
      if (to === undefined) return;
      event.preventDefault();
      go(to);
    });
    chart.addEventListener("blur", () => go(-1));
  });

  // ---- commands ----

  all(".command").forEach((box) => {
    const button = document.createElement("button");
    const code = box.querySelector("code");
    button.type = "button";
    button.textContent = "Copy";
    button.setAttribute("aria-label", `Copy: ${code.textContent}`);
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(code.textContent);
        button.textContent = "Copied";
      } catch {
        // Not every browser lets a file write there: the text is marked for the user's own keys.
        getSelection().selectAllChildren(code);
        button.textContent = "Marked";
      }
      setTimeout(() => (button.textContent = "Copy"), 1500);
    });
    box.append(button);
  });

  // ---- boxes that scroll can be reached by keyboard; what is folded is printed too ----

  const reachable = () =>
    all(".box").forEach((box) => {
      if (box.scrollWidth > box.clientWidth + 1 || box.scrollHeight > box.clientHeight + 1)
        box.tabIndex = 0;
      else box.removeAttribute("tabindex");
    });
  addEventListener("resize", reachable);
  all("details").forEach((details) => details.addEventListener("toggle", reachable));
  reachable();

  addEventListener("beforeprint", () =>
    all("details:not([open])").forEach((details) => {
      details.open = true;
      details.dataset.printed = "";
    }),
  );
  addEventListener("afterprint", () =>
    all("details[data-printed]").forEach((details) => {
      details.open = false;
      delete details.dataset.printed;
    }),
  );
})();
