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
    parity: "Parity", rebuild: "Rebuilding",
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
  // Drives that the reader has switched off in a legend: off in every chart.
  const switched = Object.fromEntries(names.map((name) => [name, true]));
  const base = () => ({
    animation: false,
    textStyle: { fontFamily: getComputedStyle(body).fontFamily, color: css("--soft") },
    grid: { left: 64, right: 22, top: drives.length > 1 ? 40 : 18, bottom: 46 },
    legend: {
      show: drives.length > 1, type: "scroll", top: 0, left: 0, itemWidth: 18, itemHeight: 8, icon: "roundRect", itemStyle: { opacity: 1 }, selected: { ...switched },
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
  // Labels along x: one that comes as near as this to its neighbour is left out, such as the last, which stands at the end
  // of the data wherever that is.
  const along = (format) => ({ color: css("--soft"), formatter: format, hideOverlap: true, padding: [0, 6] });
  const line = (index, data, extra) => ({
    type: "line", name: names[index], z: 2, data, showSymbol: data.length < 2, symbol: "circle", symbolSize: 6,
    color: paint(index), lineStyle: { width: 1.8, type: dash(index), color: paint(index) }, emphasis: { disabled: true }, ...extra,
  });

  // The next of 1, 2 and 5 times a power of ten, downwards and upwards.
  const steps = (value) => [1, 2, 5, 10].map((step) => step * 10 ** Math.floor(Math.log10(value)));
  const below = (value) => steps(value).filter((step) => step <= value * 1.000001).at(-1);
  const above = (value) => steps(value).find((step) => step >= value * 0.999999);
  // A mean over neighbours with weights that fall off to both sides, about a twentieth of the run wide. What is divided by
  // something smoothed alike stays a true mean, also at the ends.
  const smooth = (values) => {
    const half = Math.max(1, Math.round(values.length / 60));
    const box = (list) => {
      const sums = [0];
      list.forEach((value) => sums.push(sums.at(-1) + value));
      return list.map((_, at) => sums[Math.min(list.length, at + half + 1)] - sums[Math.max(0, at - half)]);
    };
    return box(box(values));
  };
  // How much a line jumps: the one that jumps most is drawn first, so that it hides no other.
  const unrest = (points) => sum(points.map((point, at) => Math.abs(point[1] - (points[at - 1] ?? point)[1]) || 0));

  // ---- the charts: each a function that gives an option, or a sentence why there is nothing to draw ----
  const tails = (kind) => {
    const drawn = drives.map((drive, index) => ({ index, cdf: drive.latency_cdf[kind] }))
      .filter(({ index, cdf }) => drives[index].timed && cdf && cdf.latency_ns.length > 0);
    if (drawn.length === 0) return "No request of this kind completed on a drive that takes time.";
    const counts = drawn.map(({ index }) => drives[index].latency_ns[kind]?.count ?? 1);
    const floor = 10 ** -Math.max(2, Math.min(9, Math.ceil(Math.log10(Math.max(...counts)))));
    // The axis begins where one request in a hundred of some drive is done: below, every curve lies on the ground. What
    // takes no time at all (a flush of nothing) has no place on it, and lifts the curve's beginning.
    const begins = ({ cdf }) => {
      const timeless = cdf.fraction[cdf.latency_ns.findLastIndex((latency) => latency < 1)] ?? 0;
      const first = cdf.fraction.findIndex((share, at) => cdf.latency_ns[at] >= 1 && share >= timeless + 0.01);
      return Math.max(1, cdf.latency_ns.at(first));
    };
    const least = Math.min(...drawn.map(begins));
    const most = Math.max(...drawn.map(({ cdf }) => cdf.latency_ns[cdf.latency_ns.length - 1]));
    const option = base();
    option.grid.left = 78;
    option.xAxis = axis("latency", { type: "log", min: below(least), max: above(Math.max(most, least + 1)), axisLabel: along(nanos), minorSplitLine: { show: true, lineStyle: { color: css("--faint") } } });
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
  // How long the intervals are that are drawn as they are.
  const intervalsOf = (looks) => {
    if (looks !== thin) return "";
    const lengths = drives.filter((drive) => drive.timeline.time_ns.length > 0).map((drive) => drive.timeline.interval);
    const [least, most] = [Math.min(...lengths), Math.max(...lengths)];
    return `, intervals of ${least === most ? nanos(least) : `${nanos(least)} to ${nanos(most)}`}`;
  };
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
    const calm = option.series.map((series) => ({ series, unrest: unrest(series.data) })).sort((a, b) => b.unrest - a.unrest);
    calm.forEach(({ series }, place) => { series.z = 2 + place; });
    option.xAxis = axis(clocked ? `virtual time (${unit})${intervalsOf(extra)}` : "requests", { type: "value", max: "dataMax", splitLine: { show: false }, axisLabel: along(count) });
    option.yAxis = axis(name, { type: "value", min: 0, nameGap: 50, axisLabel: { color: css("--soft"), formatter: format } });
    option.tooltip = { ...option.tooltip, trigger: "axis", valueFormatter: shown(format), axisPointer: { label: { formatter: (at) => `${trimmed(at.value, 4)}${clocked ? ` ${unit}` : ""}` } } };
    return option;
  };
  const spans = (timeline) => timeline.time_ns.map((time, at) => time - (at ? timeline.time_ns[at - 1] : Math.max(0, time - timeline.interval)));
  const perSecond = (key, even) => (drive) => {
    if (!drive.timed) return null;
    const [done, length] = [drive.timeline[key], spans(drive.timeline)].map(even);
    return done.map((value, at) => (length[at] > 0 ? value / length[at] * 1e9 : null));
  };
  const asItIs = (values) => values;
  const thin = () => ({ lineStyle: { width: 1, opacity: .8 } });
  const rates = (even, looks) => ({
    requests: () => overTime(perSecond("requests", even), "requests a second", count, looks),
    read: () => overTime(perSecond("read_bytes", even), "bytes read", rate, looks),
    write: () => overTime(perSecond("write_bytes", even), "bytes written", rate, looks),
  });
  const throughput = { smoothed: rates(smooth), interval: rates(asItIs, thin) };
  // Write amplification of one interval jumps where collecting comes in bursts, so it is also shown smoothed and from the
  // start. What was programmed in an interval is counted in pages; the
  // run's totals say how many bytes a page of it stands for.
  const programmed = (drive) => {
    const { programs, copybacks } = drive.flash;
    const pages = programs.total + copybacks.total;
    const bytes = pages > 0 && drive.write_amplification ? drive.write_amplification.total * drive.bytes.write / pages : 0;
    return drive.timeline.write_bytes.map((_, at) => bytes * sum(Object.values(drive.timeline.programs).map((column) => column[at] ?? 0)));
  };
  const amplified = (gather) => (drive) => {
    const [host, flash] = [drive.timeline.write_bytes, programmed(drive)].map(gather);
    return host.map((bytes, at) => (bytes > 0 ? flash[at] / bytes : null));
  };
  const running = (values) => {
    let total = 0;
    return values.map((value) => { total += value; return total; });
  };
  const amplificationOf = (pick, looks) => (element) => {
    const option = overTime(pick, "write amplification", (value) => trimmed(value, 4), looks);
    if (typeof option === "string") return option;
    const theories = drives.map((drive, index) => ({ index, value: drive.theory?.write_amplification })).filter(({ value }) => value > 0).sort((a, b) => a.value - b.value);
    const values = option.series.flatMap((series) => series.data.map((point) => point[1])).concat(theories.map(({ value }) => value)).filter((value) => value !== null);
    // At least one wide, so that chance is not blown up to a mountain range.
    const [low, high] = [Math.min(...values), Math.max(...values)];
    const room = Math.max(.1 * (high - low), (1 - (high - low)) / 2);
    const step = high - low > 40 ? 10 : high - low > 4 ? 1 : high - low > 1.5 ? .5 : .2;
    option.yAxis.min = Math.max(0, Math.floor((low - room) / step + 1e-9) * step);
    option.yAxis.max = Math.ceil((high + room) / step - 1e-9) * step;
    option.yAxis.axisLabel.formatter = (value) => trimmed(value, 3);
    if (theories.length === 0) return option;
    // What theory says stands at the right, each value beside its line; values that are close are moved apart.
    option.grid.right = 92;
    const scale = (element.clientHeight - option.grid.top - option.grid.bottom) / (option.yAxis.max - option.yAxis.min);
    const places = theories.map(({ value }) => (value - option.yAxis.min) * scale);
    for (let at = 1; at < places.length; at += 1) places[at] = Math.max(places[at], places[at - 1] + 14);
    theories.forEach(({ index, value }, at) => {
      const series = option.series.find(({ name }) => name === names[index]);
      if (!series) return;
      const shift = (value - option.yAxis.min) * scale - places[at];
      series.markLine = {
        silent: true, symbol: "none", lineStyle: { color: paint(index), type: "dotted", width: 1.4 }, data: [{ yAxis: value }],
        label: { formatter: `theory ${trimmed(value, 4)}`, color: paint(index), fontSize: 11, position: "end", offset: [0, shift] },
      };
    });
    return option;
  };
  const amplification = {
    interval: amplificationOf((drive) => drive.timeline.write_amplification, thin),
    window: amplificationOf(amplified(smooth)),
    whole: amplificationOf(amplified(running)),
  };
  const latencyOverTime = (key, kind) => {
    const columns = (drive) => (kind === "all" ? drive.timeline : drive.timeline.latency_by_op?.[kind]);
    const option = overTime((drive) => (drive.timed ? columns(drive)?.[key] ?? null : null), "latency", nanos);
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
    option.xAxis = axis(name, { type: "value", axisLabel: along(format) });
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

  // What requests of a kind waited for: a bar for all of them and one for each tail of every drive.
  const waitedRows = (op) => drives.flatMap((drive) => {
    const of = drive.latency_breakdown?.ops[op];
    if (!of || !(of.mean.mean_ns > 0)) return [];
    const tails = [["slowest 1 %", of.tails.p99], ["slowest 0.1 %", of.tails.p999], ["slowest 0.01 %", of.tails.p9999]];
    const some = tails.filter(([, tail], at) => tail && (at === 0 || tail.requests >= 10));
    return [["all", of.mean], ...some].map(([name, split]) => ({ name: `${drives.length > 1 ? `${drive.name}, ` : ""}${name}`, split }));
  });
  const words = (key) => {
    const [stage, part] = key.includes("/") ? key.split("/") : ["", key];
    const behind = part.match(/^behind_([a-z]+)_(.*)$/);
    const said = behind ? `behind ${behind[2]} ${behind[1]}s` : part.replace(/^channel_(.*)$/, "channel: $1 data");
    return `${stage ? `${stage}: ` : ""}${said}`.replaceAll("_", " ");
  };
  const waited = (op) => {
    const rows = waitedRows(op);
    const share = (row, key) => (row.split.parts_ns[key] ?? 0) / row.split.mean_ns;
    const keys = [...new Set(rows.flatMap((row) => Object.keys(row.split.parts_ns)))];
    const most = (key) => Math.max(...rows.map((row) => share(row, key)));
    const ordered = keys.sort((a, b) => most(b) - most(a));
    const large = ordered.filter((key, at) => at < 11 && most(key) >= .005);
    const rest = ordered.filter((key) => !large.includes(key));
    const labels = rows.map((row) => `${row.name}  (mean ${nanos(row.split.mean_ns)})`);
    const option = base();
    option.legend = { ...option.legend, show: true };
    const widest = Math.min(52, Math.max(...labels.map((label) => label.length)));
    option.grid = { left: 20 + widest * 6.4, right: 30, top: 46, bottom: 46 };
    option.yAxis = axis("", { type: "category", inverse: true, data: labels, axisLabel: { color: css("--ink"), width: 12 + widest * 6.4, overflow: "truncate", interval: 0 }, splitLine: { show: false } });
    option.xAxis = axis("share of the mean latency", { type: "value", min: 0, max: 1, axisLabel: along(percent) });
    option.tooltip = { ...option.tooltip, trigger: "axis", axisPointer: { type: "shadow", shadowStyle: { color: css("--faint"), opacity: .6 } }, formatter: (bars) => {
      const row = rows[bars[0].dataIndex];
      const shownBars = bars.filter((bar) => bar.value > 0).sort((a, b) => b.value - a.value);
      return `${echarts.format.encodeHTML(labels[bars[0].dataIndex])}<br>${shownBars.map((bar) => `${bar.marker}${echarts.format.encodeHTML(bar.seriesName)} <b>${nanos(bar.value * row.split.mean_ns)}</b> (${percent(bar.value)})`).join("<br>")}`;
    } };
    const series = large.map((key, at) => ({ name: words(key), data: rows.map((row) => share(row, key)), color: paint(at) }));
    if (rest.length > 0) series.push({ name: "small parts", data: rows.map((row) => sum(rest.map((key) => share(row, key)))), color: css("--soft") });
    option.series = series.map((one) => ({ type: "bar", stack: "all", barMaxWidth: 22, emphasis: { disabled: true }, ...one }));
    return option;
  };

  const wear = () => {
    const drawn = drives.map((drive, index) => ({ index, wear: drive.wear_histogram })).filter(({ wear: { blocks } }) => sum(blocks) > 0);
    if (drawn.length === 0) return "This run has no erase counts.";
    const fresh = ({ wear: { bin, erases, blocks } }) => bin === 1 && erases.every((erase, at) => erase === 0 || blocks[at] === 0);
    if (drawn.every(fresh)) return "No block was ever erased.";
    const option = base();
    option.xAxis = axis("erases of a block", { type: "value", minInterval: 1, scale: true, splitLine: { show: false }, axisLabel: along(count) });
    option.yAxis = axis("share of blocks", { type: "value", min: 0, nameGap: 50, axisLabel: { color: css("--soft"), formatter: (value) => `${trimmed(value, 3)} %` } });
    option.tooltip = { ...option.tooltip, trigger: "axis", valueFormatter: shown((value) => `${trimmed(value, 3)} %`), axisPointer: { label: { precision: 0 } } };
    option.series = drawn.map(({ index, wear: { bin, erases, blocks } }) => {
      const all = sum(blocks);
      const points = [[erases[0], 0], ...erases.map((erase, at) => [erase, blocks[at] / all * 100]), [erases.at(-1) + bin, 0]];
      return line(index, points, { step: "end", showSymbol: false, areaStyle: { opacity: drawn.length > 4 ? .05 : .14 } });
    });
    return option;
  };

  // By sub-test: what the tables have, from the element that has it for the charts.
  const divided = JSON.parse(document.getElementById("subtests")?.dataset.points ?? "[]");
  const bySubtest = (column, name, format, floor) => () => {
    // An interrupted drive has fewer sub-tests than the others, never others.
    const labels = divided.map((tests) => tests.map((test) => test[0])).sort((a, b) => b.length - a.length)[0];
    const option = base();
    option.series = divided.flatMap((tests, index) => (
      tests.some((test) => test[column] !== null)
        ? [line(index, tests.map((test) => [test[0], test[column]]), { showSymbol: labels.length <= 60, symbolSize: 6 + 3 * Math.min(4, divided.length - 1 - index) })] : []
    ));
    if (option.series.length === 0) return "No sub-test has any.";
    // Where drives do the same, the marks of those below stay in sight.
    option.grid.left = 72;
    option.xAxis = axis("sub-test", { type: "category", data: labels, boundaryGap: labels.length <= 60, splitLine: { show: false } });
    option.yAxis = axis(name, { type: "value", min: floor, nameGap: 54, axisLabel: { color: css("--soft"), formatter: format } });
    option.tooltip = { ...option.tooltip, trigger: "axis", valueFormatter: shown(format), axisPointer: { label: { formatter: (at) => `sub-test ${at.value}` } } };
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
    const option = chart.draw(chart.element);
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
    chart.instance.on("legendselectchanged", ({ name, selected }) => {
      if (!(name in switched)) return;
      switched[name] = selected[name];
      charts.filter((other) => other !== chart).forEach((other) => other.instance?.dispatchAction({ type: selected[name] ? "legendSelect" : "legendUnSelect", name }));
    });
  };
  const buttons = (bar, keys, labels, pressed) => {
    const all = keys.map((key, at) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = labels[at];
      button.setAttribute("aria-pressed", String(at === 0));
      button.addEventListener("click", () => {
        all.forEach((other) => other.setAttribute("aria-pressed", String(other === button)));
        pressed(key);
      });
      return button;
    });
    if (all.length > 1) bar.replaceChildren(...all);
  };
  const choices = (id, options, labels) => {
    const chart = place(document.getElementById(id), Object.values(options)[0]);
    buttons(document.querySelector(`[data-for="${id}"]`), Object.keys(options), labels, (key) => {
      chart.draw = options[key];
      show(chart);
    });
  };

  const kinds = ["all", "read", "write", "trim", "flush"].filter((kind) => kind === "all" || drives.some((drive) => drive.latency_cdf[kind]?.latency_ns.length));
  choices("latency-cdf", Object.fromEntries(kinds.map((kind) => [kind, () => tails(kind)])), kinds.map((kind) => kind[0].toUpperCase() + kind.slice(1)));
  if (document.getElementById("subtest-amplification")) {
    const amplifications = (column) => bySubtest(column, "write amplification", (value) => trimmed(value, 4), 0);
    choices("subtest-amplification", { real: amplifications(2), counted: amplifications(1) }, ["Really", "Counted"]);
  }
  if (document.getElementById("subtest-rate")) place(document.getElementById("subtest-rate"), bySubtest(3, "bytes written", rate, 0));
  const chosen = { way: "interval", kind: "requests" };
  const chart = place(document.getElementById("throughput"), () => throughput[chosen.way][chosen.kind]());
  const [ways, whats] = document.querySelectorAll('[data-for="throughput"]');
  buttons(ways, ["interval", "smoothed"], ["Intervals", "Smoothed"], (way) => { chosen.way = way; show(chart); });
  buttons(whats, ["requests", "read", "write"], ["Requests", "Read", "Write"], (kind) => { chosen.kind = kind; show(chart); });
  choices("write-amplification", amplification, ["Intervals", "Smoothed", "From the start"]);
  const late = { key: "latency_p99_ns", kind: "all" };
  const lateness = place(document.getElementById("latency-time"), () => latencyOverTime(late.key, late.kind));
  const [lateKeys, lateKinds] = document.querySelectorAll('[data-for="latency-time"]');
  buttons(lateKeys, ["latency_p99_ns", "latency_mean_ns", "latency_max_ns"], ["p99", "Mean", "Max"], (key) => { late.key = key; show(lateness); });
  const lateOps = kinds.filter((kind) => kind === "all" || drives.some((drive) => drive.timeline.latency_by_op?.[kind]));
  buttons(lateKinds, lateOps, lateOps.map((kind) => kind[0].toUpperCase() + kind.slice(1)), (kind) => { late.kind = kind; show(lateness); });
  if (document.getElementById("map-hits")) {
    place(document.getElementById("map-hits"), () => overTime((drive) => drive.timeline.map_hit_ratio ?? null, "hit ratio", (value) => `${trimmed(100 * value, 3)} %`, thin));
  }
  if (document.getElementById("waited-parts")) {
    const ops = ["read", "write", "trim", "flush"].filter((op) => drives.some((drive) => drive.latency_breakdown?.ops[op]?.mean.mean_ns > 0));
    choices("waited-parts", Object.fromEntries(ops.map((op) => [op, () => waited(op)])), ops.map((op) => `${op[0].toUpperCase()}${op.slice(1)}s`));
    document.getElementById("waited-parts").style.height = `${150 + Math.max(1, ...ops.map((op) => waitedRows(op).length)) * 30}px`;
  }
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
