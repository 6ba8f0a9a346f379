// The charts of a report. Reads the result in #result and draws with ECharts as SVG; makes no request of any kind.
// When all is drawn it writes onto <body>: data-charts (how many there are to draw), data-charts-drawn (how many have
// marks to look at) and data-script-errors, which is what the headless test reads.
"use strict";
(() => {
  const body = document.body;
  let errors = 0;
  window.addEventListener("error", () => { errors += 1; body.dataset.scriptErrors = String(errors); });
  window.addEventListener("unhandledrejection", () => { errors += 1; body.dataset.scriptErrors = String(errors); });
  body.dataset.scriptErrors = "0";

  const run = JSON.parse(document.getElementById("result").textContent);
  const drives = run.devices;
  const names = drives.map((drive) => drive.name);
  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const sum = (values) => values.reduce((a, b) => a + b, 0);
  const titles = {
    host: "Host", rmw: "Read-modify-write", merge: "Merge", gc: "Garbage collection", mapping: "Mapping",
    wear_levelling: "Wear levelling", metadata: "Metadata", recovery: "Recovery", retirement: "Bad blocks",
  };

  // ---- numbers as people read them ----
  const trimmed = (value, digits) => String(Number(value.toPrecision(digits)));
  const scaled = (value, units) => {
    let unit = 0;
    let shown = value;
    while (Math.abs(shown) >= 999.5 && unit + 1 < units.length) { shown /= 1000; unit += 1; }
    return trimmed(shown, 3) + units[unit];
  };
  const count = (value) => scaled(value, ["", " k", " M", " G", " T"]);
  const rate = (value) => scaled(value, [" B/s", " kB/s", " MB/s", " GB/s", " TB/s"]);
  const nanos = (value) => {
    if (value < 1e3) return `${trimmed(value, 3)} ns`;
    if (value < 1e6) return `${trimmed(value / 1e3, 3)} µs`;
    if (value < 1e9) return `${trimmed(value / 1e6, 3)} ms`;
    return `${trimmed(value / 1e9, 4)} s`;
  };
  const percent = (share) => `${trimmed(share * 100, 3)} %`;
  // 0.001 of the requests take longer: 99.9 %.
  const quantile = (tail) => {
    const nines = Math.round(-Math.log10(tail));
    if (Math.abs(tail * 10 ** nines - 1) > 1e-6) return `${trimmed((1 - tail) * 100, 6)} %`;
    return nines === 0 ? "0 %" : nines === 1 ? "90 %" : `99${nines > 2 ? `.${"9".repeat(nines - 2)}` : ""} %`;
  };
  const shown = (format) => (value) => (value === null || value === undefined || Number.isNaN(value) ? "–" : format(value));

  // ---- shared looks ----
  const paint = (index) => css(`--d${index % 12}`);
  const dash = (index) => (index % 12 < 6 ? "solid" : "dashed");
  const base = () => ({
    animation: false,
    textStyle: { fontFamily: getComputedStyle(body).fontFamily, color: css("--soft") },
    grid: { left: 64, right: 22, top: drives.length > 1 ? 40 : 18, bottom: 46 },
    legend: {
      show: drives.length > 1, type: "scroll", top: 0, left: 0, itemWidth: 18, itemHeight: 8,
      textStyle: { color: css("--ink"), width: 220, overflow: "truncate" },
      pageTextStyle: { color: css("--soft") }, pageIconColor: css("--soft"), pageIconInactiveColor: css("--line"),
    },
    tooltip: {
      confine: true, backgroundColor: css("--card"), borderColor: css("--line"),
      textStyle: { color: css("--ink"), fontSize: 12.5 },
    },
  });
  const axis = (name, extra) => ({
    name, nameLocation: "middle", nameGap: 30, nameTextStyle: { color: css("--soft"), fontSize: 12 },
    axisLine: { show: false, lineStyle: { color: css("--line") } }, axisTick: { show: false },
    axisLabel: { color: css("--soft"), fontSize: 11.5, hideOverlap: true },
    splitLine: { lineStyle: { color: css("--line") } }, ...extra,
  });
  const line = (index, data, extra) => ({
    type: "line", name: names[index], data, showSymbol: data.length < 2, symbol: "circle", symbolSize: 6,
    color: paint(index), lineStyle: { width: 1.8, type: dash(index), color: paint(index) }, emphasis: { disabled: true }, ...extra,
  });

  // ---- the charts: each a function that gives an option, or a sentence why there is nothing to draw ----
  const tails = (kind) => {
    const drawn = drives.map((drive, index) => ({ index, cdf: drive.latency_cdf[kind] }))
      .filter(({ index, cdf }) => drives[index].timed && cdf && cdf.latency_ns.length > 0);
    if (drawn.length === 0) return "No request of this kind completed on a drive that takes time.";
    const counts = drawn.map(({ index }) => drives[index].latency_ns[kind]?.count ?? 1);
    const floor = 10 ** -Math.max(2, Math.min(9, Math.ceil(Math.log10(Math.max(...counts)))));
    const least = Math.min(...drawn.map(({ cdf }) => Math.max(1, cdf.latency_ns[0])));
    const most = Math.max(...drawn.map(({ cdf }) => cdf.latency_ns[cdf.latency_ns.length - 1]));
    const option = base();
    option.grid.left = 78;
    option.xAxis = axis("latency", { type: "log", min: 10 ** Math.floor(Math.log10(least)), max: 10 ** Math.ceil(Math.log10(Math.max(most, least + 1))), axisLabel: { color: css("--soft"), formatter: nanos }, minorSplitLine: { show: true, lineStyle: { color: css("--faint") } } });
    option.yAxis = axis("share of requests that take at most this", { type: "log", inverse: true, min: floor, max: 1, nameGap: 62, axisLabel: { color: css("--soft"), formatter: quantile } });
    option.tooltip = { ...option.tooltip, trigger: "item", formatter: (at) => `${at.marker}${echarts.format.encodeHTML(at.seriesName)}<br>${quantile(Math.max(at.value[2], 0) || floor)} within <b>${nanos(at.value[0])}</b>` };
    option.series = drawn.map(({ index, cdf }) => {
      const points = [[Math.max(1, cdf.latency_ns[0]), 1, 1]];
      cdf.latency_ns.forEach((latency, at) => {
        const tail = 1 - cdf.fraction[at];
        points.push([Math.max(1, latency), Math.min(1, Math.max(tail, floor)), tail]);
      });
      return line(index, points, { showSymbol: true, symbolSize: 5, itemStyle: { opacity: 0 }, emphasis: { disabled: false, itemStyle: { opacity: 1 } }, step: "end" });
    });
    return option;
  };

  // Time in seconds where every drive takes time, else requests: a drive that only counts has no clock.
  const clocked = drives.every((drive) => drive.timed && drive.timeline.axis === "time");
  const overTime = (pick, name, format, extra) => {
    const option = base();
    const longest = Math.max(...drives.map((drive) => drive.timeline.time_ns.at(-1) ?? 0));
    const [unit, scale] = longest >= 2e9 ? ["s", 1e9] : longest >= 2e6 ? ["ms", 1e6] : ["µs", 1e3];
    option.series = drives.flatMap((drive, index) => {
      const values = pick(drive);
      if (!values || !values.some((value) => value !== null)) return [];
      const at = clocked ? drive.timeline.time_ns.map((time) => time / scale) : drive.timeline.requests_total;
      return [line(index, values.map((value, step) => [at[step], value]), extra ? extra(drive, index) : {})];
    });
    if (option.series.length === 0) return "This run has no timeline of it.";
    option.xAxis = axis(clocked ? `virtual time (${unit})` : "requests", { type: "value", max: "dataMax", splitLine: { show: false }, axisLabel: { color: css("--soft"), formatter: count } });
    option.yAxis = axis(name, { type: "value", min: 0, nameGap: 50, axisLabel: { color: css("--soft"), formatter: format } });
    option.tooltip = { ...option.tooltip, trigger: "axis", valueFormatter: shown(format), axisPointer: { label: { formatter: (at) => `${trimmed(at.value, 4)}${clocked ? ` ${unit}` : ""}` } } };
    return option;
  };
  const spans = (timeline) => timeline.time_ns.map((time, at) => time - (at ? timeline.time_ns[at - 1] : Math.max(0, time - timeline.interval)));
  const perSecond = (key) => (drive) => {
    if (!drive.timed) return null;
    const length = spans(drive.timeline);
    return drive.timeline[key].map((value, at) => (length[at] > 0 ? value / length[at] * 1e9 : null));
  };
  const throughput = {
    requests: () => overTime((drive) => (drive.timed ? drive.timeline.iops : null), "requests a second", count),
    read: () => overTime(perSecond("read_bytes"), "bytes read", rate),
    write: () => overTime(perSecond("write_bytes"), "bytes written", rate),
  };
  // Write amplification of one interval jumps where collecting comes in bursts, so it is also shown over a window around
  // each interval (a twentieth of the run) and from the start. What was programmed in an interval is counted in pages; the
  // run's totals say how many bytes a page of it stands for.
  const programmed = (drive) => {
    const { programs, copybacks } = drive.flash;
    const pages = programs.total + copybacks.total;
    const bytes = pages > 0 && drive.write_amplification ? drive.write_amplification.total * drive.bytes.write / pages : 0;
    return drive.timeline.write_bytes.map((_, at) => bytes * sum(Object.values(drive.timeline.programs).map((column) => column[at] ?? 0)));
  };
  const around = (reach) => (drive) => {
    const { write_bytes: written } = drive.timeline;
    const running = (values) => values.reduce((sums, value) => { sums.push(sums.at(-1) + value); return sums; }, [0]);
    const [host, flash] = [running(written), running(programmed(drive))];
    return written.map((_, at) => {
      const [from, to] = reach(at, written.length);
      return host[to] > host[from] ? (flash[to] - flash[from]) / (host[to] - host[from]) : null;
    });
  };
  const amplificationOf = (pick) => () => overTime(pick, "write amplification", (value) => trimmed(value, 4), (drive, index) => (drive.theory
    ? { markLine: { silent: true, symbol: "none", label: { formatter: `theory ${trimmed(drive.theory.write_amplification, 4)}`, color: css("--soft"), fontSize: 11, position: "insideStartTop" }, lineStyle: { color: paint(index), type: "dotted", width: 1.4 }, data: [{ yAxis: drive.theory.write_amplification }] } }
    : {}));
  const amplification = {
    window: amplificationOf(around((at, length) => {
      const half = Math.max(1, Math.round(length / 40));
      return [Math.max(0, at - half), Math.min(length, at + half + 1)];
    })),
    interval: amplificationOf((drive) => drive.timeline.write_amplification),
    whole: amplificationOf(around((at) => [0, at + 1])),
  };
  const latencyOverTime = (key) => {
    const option = overTime((drive) => (drive.timed ? drive.timeline[key] : null), "latency", nanos);
    if (typeof option === "string") return option;
    const values = option.series.flatMap((series) => series.data.map((point) => point[1])).filter((value) => value > 0);
    if (values.length > 0 && Math.max(...values) > 30 * Math.min(...values)) {
      option.yAxis = { ...option.yAxis, type: "log", min: 10 ** Math.floor(Math.log10(Math.min(...values))) };
      option.series.forEach((series) => series.data.forEach((point) => { if (!(point[1] > 0)) point[1] = null; }));
    }
    option.grid.left = 72;
    return option;
  };

  const byCause = (pick, name, format) => {
    const rows = drives.map((drive) => pick(drive) ?? {});
    const causes = Object.keys(titles).concat(rows.flatMap(Object.keys).filter((cause) => !(cause in titles)))
      .filter((cause, at, all) => all.indexOf(cause) === at && rows.some((row) => row[cause] > 0));
    if (causes.length === 0) return "There were none.";
    const option = base();
    option.legend = { ...option.legend, show: true };
    const widest = Math.min(24, Math.max(...names.map((name) => name.length)));
    option.grid = { left: 20 + widest * 7, right: 56, top: 40, bottom: 46 };
    option.yAxis = axis("", { type: "category", inverse: true, data: names, axisLabel: { color: css("--ink"), width: 12 + widest * 7, overflow: "truncate", interval: 0 }, splitLine: { show: false } });
    option.xAxis = axis(name, { type: "value", axisLabel: { color: css("--soft"), formatter: format, hideOverlap: true } });
    option.tooltip = { ...option.tooltip, trigger: "axis", axisPointer: { type: "shadow", shadowStyle: { color: css("--faint"), opacity: .6 } }, valueFormatter: shown(format) };
    option.series = causes.map((cause, at) => ({
      type: "bar", stack: "all", name: titles[cause] ?? cause, data: rows.map((row) => row[cause] ?? 0),
      color: css(`--c-${cause}`) || paint(at), barMaxWidth: 26, emphasis: { disabled: true },
      label: at + 1 < causes.length ? { show: false } : {
        show: true, position: "right", color: css("--ink"), fontSize: 12, formatter: (bar) => format(sum(Object.values(rows[bar.dataIndex]))),
      },
    }));
    return option;
  };
  const added = (a, b) => {
    const total = { ...a };
    Object.entries(b).forEach(([cause, value]) => { total[cause] = (total[cause] ?? 0) + value; });
    return total;
  };
  const causes = {
    amplification: () => byCause((drive) => drive.write_amplification?.by_cause, "bytes programmed for each byte the host wrote", (value) => trimmed(value, 4)),
    programs: () => byCause((drive) => added(drive.flash.programs.by_cause, drive.flash.copybacks.by_cause), "pages programmed or copied back", count),
    reads: () => byCause((drive) => drive.flash.reads.by_cause, "pages read from flash", count),
    erases: () => byCause((drive) => drive.flash.erases.by_cause, "blocks erased", count),
  };

  const wear = () => {
    const drawn = drives.map((drive, index) => ({ index, wear: drive.wear_histogram })).filter(({ wear: { blocks } }) => sum(blocks) > 0);
    if (drawn.length === 0) return "This run has no erase counts.";
    const option = base();
    option.xAxis = axis("erases of a block", { type: "value", minInterval: 1, scale: true, splitLine: { show: false }, axisLabel: { color: css("--soft"), formatter: count } });
    option.yAxis = axis("share of blocks", { type: "value", min: 0, nameGap: 50, axisLabel: { color: css("--soft"), formatter: (value) => `${trimmed(value, 3)} %` } });
    option.tooltip = { ...option.tooltip, trigger: "axis", valueFormatter: shown((value) => `${trimmed(value, 3)} %`), axisPointer: { label: { precision: 0 } } };
    option.series = drawn.map(({ index, wear: { bin, erases, blocks } }) => {
      const all = sum(blocks);
      const points = [[erases[0], 0], ...erases.map((erase, at) => [erase, blocks[at] / all * 100]), [erases.at(-1) + bin, 0]];
      return line(index, points, { step: "end", showSymbol: false, areaStyle: { opacity: drawn.length > 4 ? .05 : .14 } });
    });
    return option;
  };

  const heat = (drive) => () => {
    const { channels, dies } = drive.utilization;
    const columns = Math.ceil(dies.length / channels.length);
    const cells = [];
    channels.forEach((busy, row) => cells.push([0, row, busy * 100]));
    dies.forEach((busy, die) => cells.push([1 + die % columns, Math.floor(die / columns), busy * 100]));
    const option = base();
    option.legend.show = false;
    option.grid = { left: 44, right: 4, top: 22, bottom: 4 };
    const labels = cells.length <= 96;
    option.xAxis = axis("", { type: "category", position: "top", data: ["bus", ...Array.from({ length: columns }, (_, at) => `die ${at}`)], splitLine: { show: false }, axisLabel: { color: css("--soft"), fontSize: 11, hideOverlap: true } });
    option.yAxis = axis("", { type: "category", inverse: true, data: channels.map((_, at) => `ch ${at}`), splitLine: { show: false }, axisLabel: { color: css("--soft"), fontSize: 11, hideOverlap: true } });
    option.visualMap = { show: false, min: 0, max: 100, inRange: { color: [css("--cold"), css("--mild"), css("--hot")] } };
    option.tooltip = { ...option.tooltip, formatter: (at) => `channel ${at.value[1]}, ${at.value[0] === 0 ? "bus" : `die ${at.value[0] - 1}`}<br>busy <b>${percent(at.value[2] / 100)}</b>` };
    // Text on a cell takes whichever of the two inks the cell's own shade lets one read.
    option.series = [{
      type: "heatmap", emphasis: { disabled: true }, itemStyle: { borderColor: css("--card"), borderWidth: 2 },
      data: cells.map((value) => ({ value, label: { show: labels, fontSize: 11, color: value[2] > 55 ? css("--card") : css("--ink"), formatter: `${Math.round(value[2])}` } })),
    }];
    return option;
  };

  // ---- putting them on the page ----
  const charts = [];
  const place = (element, draw) => {
    const chart = { element, draw, instance: null };
    charts.push(chart);
    return chart;
  };
  const show = (chart) => {
    const option = chart.draw();
    chart.instance?.dispose();
    chart.instance = null;
    chart.element.dataset.chart = typeof option === "string" ? "empty" : "drawn";
    if (typeof option === "string") {
      const note = document.createElement("p");
      note.className = "empty";
      note.textContent = option;
      chart.element.replaceChildren(note);
      return;
    }
    chart.element.replaceChildren();
    chart.instance = echarts.init(chart.element, null, { renderer: "svg" });
    chart.instance.setOption(option);
  };
  const choices = (id, options, labels) => {
    const chart = place(document.getElementById(id), Object.values(options)[0]);
    const bar = document.querySelector(`[data-for="${id}"]`);
    const buttons = Object.keys(options).map((key, at) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = labels[at];
      button.setAttribute("aria-pressed", String(at === 0));
      button.addEventListener("click", () => {
        buttons.forEach((other) => other.setAttribute("aria-pressed", String(other === button)));
        chart.draw = options[key];
        show(chart);
      });
      return button;
    });
    if (buttons.length > 1) bar.replaceChildren(...buttons);
  };

  const kinds = ["all", "read", "write", "trim", "flush"].filter((kind) => kind === "all" || drives.some((drive) => drive.latency_cdf[kind]?.latency_ns.length));
  choices("latency-cdf", Object.fromEntries(kinds.map((kind) => [kind, () => tails(kind)])), kinds.map((kind) => kind[0].toUpperCase() + kind.slice(1)));
  choices("throughput", throughput, ["Requests", "Read", "Write"]);
  choices("write-amplification", amplification, ["Smoothed", "Interval", "From the start"]);
  choices("latency-time", { p99: () => latencyOverTime("latency_p99_ns"), mean: () => latencyOverTime("latency_mean_ns"), max: () => latencyOverTime("latency_max_ns") }, ["p99", "Mean", "Max"]);
  choices("causes", causes, ["Amplification", "Programs", "Reads", "Erases"]);
  place(document.getElementById("wear"), wear);
  const grid = document.getElementById("utilization");
  const measured = drives.map((drive, index) => ({ drive, index })).filter(({ drive: { utilization, timed } }) => timed && utilization.channels.length > 0 && utilization.dies.length > 0);
  measured.forEach(({ drive, index }) => {
    const { channels, dies } = drive.utilization;
    const cell = document.createElement("div");
    const title = document.createElement("h3");
    const chip = document.createElement("span");
    chip.className = "chip";
    chip.style.background = `var(--d${index % 12})`;
    title.append(chip, drive.name);
    const element = document.createElement("div");
    const columns = Math.ceil(dies.length / channels.length) + 1;
    element.className = "chart";
    element.style.height = `${26 + channels.length * (channels.length > 16 ? 16 : 24)}px`;
    element.style.width = `${48 + columns * (columns > 24 ? 24 : 44)}px`;
    element.style.maxWidth = "100%";
    cell.append(title, element);
    grid.append(cell);
    place(element, heat(drive));
  });
  if (measured.length === 0) {
    const note = document.createElement("p");
    note.className = "empty";
    note.textContent = "No drive of this run takes time, so nothing was ever busy.";
    grid.append(note);
  }
  const causeHeight = Math.max(240, 110 + drives.length * 34);
  document.getElementById("causes").style.height = `${causeHeight}px`;
  document.getElementById("wear").style.height = `${causeHeight}px`;

  const showAll = () => charts.forEach(show);
  showAll();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", showAll);
  let waiting = 0;
  window.addEventListener("resize", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => charts.forEach((chart) => chart.instance?.resize()), 100);
  });

  // A chart counts as drawn when it has a picture of some size with marks in it, or says in words why it has none.
  const drawn = charts.filter(({ element }) => {
    if (element.dataset.chart === "empty") return element.textContent !== "";
    const picture = element.querySelector("svg");
    const box = picture?.getBoundingClientRect();
    return box && box.width > 0 && box.height > 0 && picture.querySelectorAll("path").length > 2;
  });
  body.dataset.charts = String(charts.length);
  body.dataset.chartsEmpty = String(charts.filter(({ element }) => element.dataset.chart === "empty").length);
  body.dataset.chartsDrawn = String(drawn.length);
})();
