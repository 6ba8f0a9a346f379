// What a reader does with the page beside looking at charts: copy the command, sort the headline, choose light or dark, save
// a chart. Gives the page one name: tools.
"use strict";
const tools = (() => {
  const make = (tag, text, extra) => Object.assign(document.createElement(tag), { textContent: text, ...extra });
  const button = (text, pressed) => {
    const made = make("button", text, { type: "button" });
    made.addEventListener("click", pressed);
    return made;
  };

  // A bar of buttons; exactly one is pressed.
  const choice = (bar, keys, labels, chosen) => {
    const all = keys.map((key, at) => {
      const made = button(labels[at], () => {
        all.forEach((other) => other.setAttribute("aria-pressed", String(other === made)));
        chosen(key);
      });
      made.setAttribute("aria-pressed", String(at === 0));
      return made;
    });
    if (all.length > 1) bar.replaceChildren(...all);
  };

  // Light or dark; "auto" is as the system has it. What follows is told of each change.
  const theme = (changed) => {
    const dark = document.getElementById("dark");
    const system = matchMedia("(prefers-color-scheme: dark)");
    const media = { auto: dark.media, light: "not all", dark: "all" };
    let now = "auto";
    choice(document.getElementById("theme"), Object.keys(media), ["Auto", "Light", "Dark"], (key) => {
      now = key;
      dark.media = media[key];
      document.documentElement.style.colorScheme = key === "auto" ? "light dark" : key;
      changed();
    });
    system.addEventListener("change", () => { if (now === "auto") changed(); });
  };

  // A page from a file may be refused the clipboard; a selection can always be copied.
  const copied = async (element) => {
    try {
      await navigator.clipboard.writeText(element.textContent);
    } catch {
      getSelection().selectAllChildren(element);
      document.execCommand("copy");
      getSelection().removeAllRanges();
    }
  };
  const copying = () => {
    const command = document.getElementById("command");
    if (!command) return;
    const made = button("Copy", async () => {
      await copied(command);
      made.textContent = "Copied";
      setTimeout(() => { made.textContent = "Copy"; }, 1500);
    });
    made.className = "small";
    command.after(made);
  };

  // Sorts by a click on a head: the greatest first, then the least first, then the order of the command line.
  const sorting = () => {
    const table = document.getElementById("headline");
    if (!table || table.tBodies[0].rows.length < 2) return;
    const body = table.tBodies[0];
    const order = [...body.rows];
    const heads = [...table.tHead.rows[0].cells];
    const key = (row, column) => {
      const cell = row.cells[column];
      return column === 0 ? cell.textContent : cell.dataset.value === undefined ? Number.NaN : Number(cell.dataset.value);
    };
    const compare = (column) => (a, b) => {
      const [left, right] = [key(a, column), key(b, column)];
      if (column === 0) return right.localeCompare(left, undefined, { numeric: true });
      // What has no value stands last, whichever way.
      return Number.isNaN(left) || Number.isNaN(right) ? 0 : right - left;
    };
    heads.forEach((head, column) => {
      if (column === 1) return;
      const made = button(head.textContent, () => {
        const next = { none: "descending", descending: "ascending", ascending: "none" }[head.getAttribute("aria-sort") ?? "none"];
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        const valued = order.filter((row) => column === 0 || !Number.isNaN(key(row, column)));
        const sorted = next === "none" ? order : [...valued.sort(compare(column)), ...order.filter((row) => !valued.includes(row))];
        if (next === "ascending") sorted.splice(0, valued.length, ...sorted.slice(0, valued.length).reverse());
        if (next !== "none") head.setAttribute("aria-sort", next);
        body.replaceChildren(...sorted);
      });
      made.className = "sort";
      head.replaceChildren(made);
    });
  };

  const quoted = (field) => (/[",\r\n]/.test(field) ? `"${field.replaceAll("\"", "\"\"")}"` : field);
  const csv = (rows) => rows.map((row) => `${row.map((field) => quoted(String(field ?? ""))).join(",")}\n`).join("");
  const save = (name, blob) => {
    const link = document.createElement("a");
    link.download = name;
    link.href = URL.createObjectURL(blob);
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  };
  // A chart in a file. PNG is drawn anew on a canvas, with two pixels for each of the page.
  const savers = (background) => ({
    PNG: (chart) => {
      const box = Object.assign(document.createElement("div"), { hidden: true });
      const { clientWidth: width, clientHeight: height } = chart.element;
      const canvas = echarts.init(box, null, { renderer: "canvas", width, height, devicePixelRatio: 2 });
      canvas.setOption({ ...chart.instance.getOption(), toolbox: { show: false } });
      const bytes = Uint8Array.from(atob(canvas.getDataURL({ type: "png", backgroundColor: background() }).split(",")[1]), (letter) => letter.charCodeAt(0));
      canvas.dispose();
      return new Blob([bytes], { type: "image/png" });
    },
    SVG: (chart) => {
      const box = Object.assign(document.createElement("div"), { hidden: true });
      const { clientWidth: width, clientHeight: height } = chart.element;
      const picture = echarts.init(box, null, { renderer: "svg", ssr: true, width, height });
      picture.setOption({ ...chart.instance.getOption(), backgroundColor: background(), toolbox: { show: false } });
      const text = picture.renderToSVGString();
      picture.dispose();
      return new Blob([text], { type: "image/svg+xml" });
    },
    CSV: (chart) => new Blob([csv(chart.rows)], { type: "text/csv" }),
  });
  // The menu of a chart, at the end of the head of its section.
  const saving = (chart, head, background) => {
    const menu = document.createElement("details");
    menu.className = "save";
    menu.append(make("summary", "Save"));
    Object.entries(savers(background)).forEach(([kind, blob]) => menu.append(button(kind, () => {
      menu.open = false;
      if (chart.instance) save(`ssdlab-${chart.element.id}.${kind.toLowerCase()}`, blob(chart));
    })));
    head.append(menu);
  };

  return { button, choice, copying, csv, make, saving, sorting, theme };
})();
