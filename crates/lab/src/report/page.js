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
  // What layers copy reaches a drive as commands of its host.
  const titles = {
    host: drives.some((drive) => drive.host_layers?.length > 0) ? "Host and its layers" : "Host", rmw: "Read-modify-write", merge: "Merge", gc: "Garbage collection", mapping: "Mapping",
    wear_levelling: "Wear levelling", metadata: "Metadata", recovery: "Recovery", retirement: "Bad blocks",
    parity: "Parity", rebuild: "Rebuilding",
  };

  const { axis: nice, fixed, logTicks, quantile, setting, short, single, weighted } = numbers;
  const percent = single("share");
  const shown = (format) => (value) => (value === null || value === undefined || Number.isNaN(value) ? "–" : format(value));

  // ---- shared looks ----
  const paint = (index) => css(`--d${index % 12}`);
  const dash = (index) => (index % 12 < 6 ? "solid" : "dashed");
  // Drives that have curves: a reader switches them, in every chart at once. Curves of many drives say nothing to anybody, so
  // at first there are none, and each that is switched on is drawn anew.
  const few = drives.length <= Number(body.dataset.few);
  const switched = Object.fromEntries(names.map((name) => [name, few]));
  const isDrawn = (index) => few || switched[names[index]];
  const noCurves = `Of ${drives.length} drives no curve is drawn until you choose some: click their names in the table at the top.`;
  const base = () => ({
    animation: false,
    textStyle: { fontFamily: getComputedStyle(body).fontFamily, color: css("--soft") },
    grid: { left: 64, right: 22, top: drives.length > 1 ? 40 : 18, bottom: 46 },
    legend: {
      show: drives.length > 1, type: "scroll", top: 0, left: 0, right: 52, itemWidth: 18, itemHeight: 8, icon: "roundRect", itemStyle: { opacity: 1 }, selected: { ...switched },
      textStyle: { color: css("--ink"), width: 220, overflow: "truncate" },
      pageTextStyle: { color: css("--soft") }, pageIconColor: css("--soft"), pageIconInactiveColor: css("--line"),
    },
    tooltip: {
      confine: true, backgroundColor: css("--card"), borderColor: css("--line"),
      textStyle: { color: css("--ink"), fontSize: 12.5 },
    },
  });
  // A part of the x axis is chosen by dragging over it, or on a screen that is touched after the first of these signs.
  const zooming = () => ({
    top: -8, right: 0, itemSize: 13, iconStyle: { borderColor: css("--soft") }, emphasis: { iconStyle: { borderColor: css("--d0"), textFill: css("--soft"), textPosition: "left" } },
    feature: { dataZoom: { yAxisIndex: "none", filterMode: "none", title: { zoom: "Zoom: drag over the chart", back: "Back; double-click for all" }, brushStyle: { color: css("--mild"), opacity: .25 } } },
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
    const having = drives.map((drive, index) => ({ index, cdf: drive.latency_cdf[kind], count: drive.latency_ns[kind]?.count ?? 1 }))
      .filter(({ index, cdf }) => drives[index].timed && cdf && cdf.latency_ns.length > 0);
    if (having.length === 0) return "No request of this kind completed on a drive that takes time.";
    const drawn = having.filter(({ index }) => isDrawn(index));
    if (drawn.length === 0) return noCurves;
    // One request of the drive that had most: nothing is rarer. Latencies are known to a billionth.
    const floorOf = (count) => Math.max(1e-9, Math.min(.1, 1 / count));
    const floor = floorOf(Math.max(...drawn.map(({ count }) => count)));
    // The axis begins where one request in a hundred of some drive is done: below, every curve lies on the ground. What
    // takes no time at all (a flush of nothing) has no place on it, and lifts the curve's beginning.
    const begins = ({ cdf }) => {
      const timeless = cdf.fraction[cdf.latency_ns.findLastIndex((latency) => latency < 1)] ?? 0;
      const first = cdf.fraction.findIndex((share, at) => cdf.latency_ns[at] >= 1 && share >= timeless + 0.01);
      return Math.max(1, cdf.latency_ns.at(first));
    };
    const ends = (value, side) => logTicks(value / 10, value * 10).concat(logTicks(value / 2.5, value * 2.5)).sort((a, b) => a - b)[side === "below" ? "findLast" : "find"]((tick) => (side === "below" ? tick <= value * 1.000001 : tick >= value * .999999));
    const least = ends(Math.min(...drawn.map(begins)), "below");
    const most = ends(Math.max(least * 1.1, ...drawn.map(({ cdf }) => cdf.latency_ns.at(-1))), "above");
    const ticked = (low, high) => {
      const ticks = logTicks(low, high);
      return { axisTick: { show: false, customValues: ticks }, axisLabel: { ...along(short("ns")), customValues: ticks } };
    };
    const tens = logTicks(floor, 1).filter((tail) => Number.isInteger(Math.round(Math.log10(tail) * 1e6) / 1e6) && tail >= floor * 1.8);
    const option = base();
    option.grid.left = 84;
    option.xAxis = axis("latency", { type: "log", min: least, max: most, minorSplitLine: { show: true, lineStyle: { color: css("--faint") } }, ...ticked(least, most) });
    option.yAxis = axis("share of requests that take at most this", { type: "log", inverse: true, min: floor, max: 1, nameGap: 66, axisTick: { show: false, customValues: [...tens, floor] }, axisLabel: { color: css("--soft"), fontSize: 11.5, formatter: quantile, customValues: [...tens, floor] } });
    // The latency of every drive at the quantile that is pointed at.
    const at = (cdf, tail) => cdf.latency_ns[cdf.fraction.findIndex((share) => 1 - share <= tail * (1 + 1e-9))] ?? cdf.latency_ns.at(-1);
    option.tooltip = { ...option.tooltip, trigger: "axis", axisPointer: { axis: "y", snap: false }, formatter: (points) => {
      const tail = Math.min(1, Math.max(floor, points[0].axisValue));
      return lines(quantile(Number(tail.toPrecision(2))), drawn, ({ count, cdf }) => (tail < floorOf(count) * .999 ? `fewer than ${Math.ceil(1 / tail)} requests` : single("ns")(at(cdf, tail))));
    } };
    option.series = drawn.map(({ index, cdf, count }) => {
      const points = [[Math.max(1, cdf.latency_ns[0]), 1]];
      cdf.latency_ns.forEach((latency, place) => {
        points.push([Math.max(1, latency), Math.min(1, Math.max(1 - cdf.fraction[place], floorOf(count)))]);
      });
      return line(index, points, { step: "end", showSymbol: false });
    });
    option.toolbox = zooming();
    const rows = drawn.flatMap(({ index, cdf }) => cdf.latency_ns.map((latency, place) => [names[index], latency, cdf.fraction[place]]));
    return { option, rows: [["drive", "latency_ns", "fraction"], ...rows], fit: (from, to) => ({ xAxis: ticked(from, to) }) };
  };
  // A tooltip: what is pointed at, and a line for each drive that is switched on.
  const lines = (head, of, value) => [head].concat(of.filter(({ index }) => switched[names[index]]).map((one) => (
    `<span class="chip" style="background:${paint(one.index)}"></span>${echarts.format.encodeHTML(names[one.index])} <b>${value(one)}</b>`
  ))).join("<br>");

  // Time in seconds where every drive takes time, else requests: a drive that only counts has no clock.
  const clocked = drives.every((drive) => drive.timed && drive.timeline.axis === "time");
  // How long the intervals are that are drawn as they are.
  const intervalsOf = (looks) => {
    if (looks !== thin) return "";
    const lengths = drives.filter((drive) => drive.timeline.time_ns.length > 0).map((drive) => drive.timeline.interval);
    const [least, most] = [Math.min(...lengths), Math.max(...lengths)];
    return `, intervals of ${least === most ? short("ns")(least) : `${short("ns")(least)} to ${short("ns")(most)}`}`;
  };
  const spans = (timeline) => timeline.time_ns.map((time, at) => time - (at ? timeline.time_ns[at - 1] : Math.max(0, time - timeline.interval)));
  // The intervals to draw: a first or last that is shorter than the others would stand for as much as they do.
  const whole = (timeline) => {
    const lengths = timeline.axis === "time" ? timeline.time_ns.map((time, at) => time - (timeline.time_ns[at - 1] ?? 0)) : timeline.requests;
    const partial = (at) => lengths[at] < .999 * timeline.interval && lengths.length > 3;
    return lengths.map((_, at) => at).filter((at) => (at > 0 && at < lengths.length - 1) || !partial(at));
  };
  // A drive's values over time. The y axis fits 99 % of all weight (bytes, or requests): a few intervals with hardly a write
  // in them would else press all others to the ground. What is beyond has a mark with its value.
  const overTime = ({ pick, weight, name, kind, looks, low = () => 0, high = [], logarithmic, element }) => {
    const option = base();
    const longest = Math.max(...drives.map((drive) => drive.timeline.time_ns.at(-1) ?? 0));
    const [unit, scale] = !clocked ? ["", 1] : longest >= 2e9 ? ["s", 1e9] : longest >= 2e6 ? ["ms", 1e6] : ["µs", 1e3];
    const having = drives.map((drive, index) => ({ index, values: pick(drive) })).filter(({ values }) => values?.some((value) => value !== null));
    if (having.length === 0) return "This run has no timeline of it.";
    const drawn = having.filter(({ index }) => isDrawn(index)).map(({ index, values }) => {
      const { timeline } = drives[index];
      const at = clocked ? timeline.time_ns.map((time) => time / scale) : timeline.requests_total;
      const weights = weight(timeline);
      const kept = whole(timeline);
      return { index, points: kept.map((place) => [at[place], values[place]]), weights: kept.map((place) => weights[place]), length: clocked ? timeline.interval / scale : timeline.interval };
    });
    if (drawn.length === 0) return noCurves;
    const inside = ([x, y], from, to) => y !== null && Number.isFinite(y) && x >= from && x <= to;
    // The y axis for a part of the run, with the marks of what is beyond it.
    const framed = (from, to) => {
      const pairs = drawn.flatMap(({ points, weights }) => points.map((point, at) => [point, weights[at]])).filter(([point]) => inside(point, from, to)).map(([point, weight]) => [point[1], weight]);
      const values = pairs.map(([value]) => value);
      const most = Math.max(0, ...values);
      const usual = weighted(pairs, .99);
      const top = Math.max(...high, usual > 0 && most > 1.3 * usual ? 1.08 * usual : most) || 1;
      const ends = low(Math.min(...values, ...high), top);
      const scaled = nice(kind, ...(Array.isArray(ends) ? ends : [ends, top]));
      const marks = drawn.map(({ index, points }) => {
        const beyond = points.filter((point) => inside(point, from, to) && point[1] > scaled.max);
        // One mark for each tenth of the axis, at the greatest there; the greatest of all has its value.
        const tenths = new Map();
        beyond.forEach((point) => {
          const tenth = Math.floor(10 * (point[0] - from) / (to - from || 1));
          if (!(tenths.get(tenth)?.[1] >= point[1])) tenths.set(tenth, point);
        });
        const peaks = [...tenths.values()].sort((a, b) => b[1] - a[1]);
        return { index, peaks };
      });
      let labelled = 0;
      return { scaled, marks: marks.map(({ index, peaks }) => ({ index, mark: {
        silent: true, animation: false, symbol: "triangle", symbolSize: [9, 8], symbolOffset: [0, 5], itemStyle: { color: paint(index) },
        data: peaks.map(([x, y], at) => ({
          coord: [x, scaled.max], value: y,
          label: at > 0 ? { show: false } : { show: true, formatter: single(kind)(y), color: paint(index), fontSize: 11, fontWeight: 600, position: x > from + .8 * (to - from) ? "left" : "right", distance: 6, offset: [0, 12 * labelled++] },
        })),
      } })) };
    };
    const [begin, end] = [0, Math.max(...drawn.map(({ points }) => points.at(-1)?.[0] ?? 0))];
    const frame = framed(begin, end);
    const yAxis = ({ scaled }) => ({ min: scaled.min, max: scaled.max, interval: scaled.interval, axisLabel: { color: css("--soft"), fontSize: 11.5, formatter: scaled.label } });
    option.series = drawn.map(({ index, points }, at) => line(index, points, { ...looks?.(), markPoint: frame.marks[at].mark }));
    const calm = option.series.map((series) => ({ series, unrest: unrest(series.data) })).sort((a, b) => b.unrest - a.unrest);
    calm.forEach(({ series }, place) => { series.z = 2 + place; });
    // The ends of the axis are those of the data, wherever they are: a label stands at an end that is a tick.
    const xAxis = (from, to) => {
      const ticks = nice(clocked ? "ratio" : "count", from, to || 1, 8);
      const isTick = (end, tick) => Math.abs(tick - end) < 1e-6 * (to - from);
      return { interval: ticks.interval, axisLabel: { ...along(ticks.label), showMinLabel: isTick(from, ticks.min), showMaxLabel: isTick(to, ticks.max) } };
    };
    option.xAxis = axis(clocked ? `virtual time (${unit})${intervalsOf(looks)}` : "requests", { type: "value", max: end > 0 ? end : null, splitLine: { show: false }, ...xAxis(begin, end) });
    option.yAxis = axis(name, { type: "value", nameGap: 56, ...yAxis(frame) });
    option.grid.left = 74;
    let value = frame.scaled.value;
    if (logarithmic) {
      const positive = drawn.flatMap(({ points }) => points.map((point) => point[1])).filter((one) => one > 0);
      if (positive.length > 0 && Math.max(...positive) > 30 * Math.min(...positive)) {
        const floor = 10 ** Math.floor(Math.log10(Math.min(...positive)));
        const top = logTicks(Math.max(...positive) / 2, Math.max(...positive) * 10).find((tick) => tick >= Math.max(...positive));
        const ticks = logTicks(floor, top);
        option.yAxis = axis(name, { type: "log", nameGap: 56, min: floor, max: top, axisTick: { show: false, customValues: ticks }, axisLabel: { color: css("--soft"), fontSize: 11.5, formatter: short(kind), customValues: ticks } });
        option.series.forEach((series) => { delete series.markPoint; series.data = series.data.map(([x, y]) => [x, y > 0 ? y : null]); });
        value = single(kind);
      }
    }
    const isLog = option.yAxis.type === "log";
    // The value of the interval of each drive that is pointed at, whatever its length: the library finds only that of the
    // drive whose interval ends nearest.
    const near = (points, x, length) => {
      const nearest = points.reduce((best, point) => (Math.abs(point[0] - x) < Math.abs(best[0] - x) ? point : best), points[0] ?? [Infinity, null]);
      return Math.abs(nearest[0] - x) <= 1.5 * length ? nearest[1] : null;
    };
    option.tooltip = { ...option.tooltip, trigger: "axis", axisPointer: { snap: false }, formatter: (found) => {
      const x = found[0].axisValue;
      return lines(clocked ? `${fixed(x, Math.max(0, 3 - Math.floor(Math.log10(end || 1))))} ${unit}` : single("count")(x), drawn, ({ points, length }) => shown(value)(near(points, x, length)));
    } };
    option.toolbox = zooming();
    const rows = drawn.flatMap(({ index, points }) => points.map(([x, y]) => [names[index], x, y]));
    const fit = (from, to) => {
      if (isLog) return { xAxis: xAxis(from, to) };
      const part = framed(from, to);
      ({ value } = part.scaled);
      return { xAxis: xAxis(from, to), yAxis: yAxis(part), series: part.marks.map(({ mark }) => ({ markPoint: mark })) };
    };
    return { option, rows: [["drive", clocked ? `virtual_time_${unit.replace("µ", "u")}` : "requests", name.replaceAll(" ", "_")], ...rows], fit, scaled: frame.scaled, element };
  };
  const perSecond = (key, even) => (drive) => {
    if (!drive.timed) return null;
    const [done, length] = [drive.timeline[key], spans(drive.timeline)].map(even);
    return done.map((value, at) => (length[at] > 0 ? value / length[at] * 1e9 : null));
  };
  const asItIs = (values) => values;
  const thin = () => ({ lineStyle: { width: 1, opacity: .8 } });
  const bytes = (timeline) => timeline.read_bytes.map((read, at) => read + timeline.write_bytes[at]);
  const rates = (even, looks) => ({
    requests: () => overTime({ pick: perSecond("requests", even), weight: bytes, name: "requests a second", kind: "rate", looks }),
    read: () => overTime({ pick: perSecond("read_bytes", even), weight: bytes, name: "bytes read a second", kind: "bytes", looks }),
    write: () => overTime({ pick: perSecond("write_bytes", even), weight: bytes, name: "bytes written a second", kind: "bytes", looks }),
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
    const theories = drives.map((drive, index) => ({ index, value: drive.theory?.write_amplification })).filter(({ index, value }) => value > 0 && isDrawn(index)).sort((a, b) => a.value - b.value);
    // At least one wide, so that chance is not blown up to a mountain range.
    const room = (least, most) => {
      const spare = Math.max(.05 * (most - least), (1 - (most - least)) / 2);
      return [Math.max(0, least - spare), most + spare];
    };
    const chart = overTime({ pick, weight: (timeline) => timeline.write_bytes, name: "write amplification", kind: "ratio", looks, low: room, high: theories.map(({ value }) => value) });
    if (typeof chart === "string" || theories.length === 0) return chart;
    // What theory says stands at the right, each value beside its line; values that are close are moved apart.
    const { option, scaled } = chart;
    option.grid.right = 92;
    const scale = (element.clientHeight - option.grid.top - option.grid.bottom) / (scaled.max - scaled.min);
    const places = theories.map(({ value }) => (value - scaled.min) * scale);
    for (let at = 1; at < places.length; at += 1) places[at] = Math.max(places[at], places[at - 1] + 14);
    theories.forEach(({ index, value }, at) => {
      const series = option.series.find(({ name }) => name === names[index]);
      if (!series) return;
      const shift = (value - scaled.min) * scale - places[at];
      series.markLine = {
        silent: true, symbol: "none", lineStyle: { color: paint(index), type: "dotted", width: 1.4 }, data: [{ yAxis: value }],
        label: { formatter: `theory ${scaled.value(value)}`, color: paint(index), fontSize: 11, position: "end", offset: [0, shift] },
      };
    });
    return chart;
  };
  const amplification = {
    window: amplificationOf(amplified(smooth)),
    interval: amplificationOf((drive) => drive.timeline.write_amplification, thin),
    whole: amplificationOf(amplified(running)),
  };
  // A mean of neighbours by requests, where they have a value; of the longest the longest.
  const calmed = (key) => (values, requests) => {
    if (key === "latency_max_ns") {
      const half = Math.max(1, Math.round(values.length / 60));
      return values.map((_, at) => Math.max(...values.slice(Math.max(0, at - half), at + half + 1)) || null);
    }
    const weights = values.map((value, at) => (value === null ? 0 : requests[at]));
    const [total, weight] = [smooth(values.map((value, at) => (value ?? 0) * weights[at])), smooth(weights)];
    return total.map((value, at) => (weight[at] > 0 ? value / weight[at] : null));
  };
  const latencyOverTime = ({ way, key, kind }) => overTime({
    pick: (drive) => {
      const columns = kind === "all" ? drive.timeline : drive.timeline.latency_by_op?.[kind];
      if (!drive.timed || !columns?.[key]) return null;
      return way === "smoothed" ? calmed(key)(columns[key], columns.requests) : columns[key];
    },
    weight: (timeline) => timeline.requests, name: "latency", kind: "ns", looks: way === "smoothed" ? null : thin, logarithmic: true,
  });
  const mapHits = {
    smoothed: () => overTime({ pick: (drive) => drive.timeline.map_hit_ratio && calmed("map")(drive.timeline.map_hit_ratio, drive.timeline.requests), weight: bytes, name: "hit ratio", kind: "share" }),
    interval: () => overTime({ pick: (drive) => drive.timeline.map_hit_ratio ?? null, weight: bytes, name: "hit ratio", kind: "share", looks: thin }),
  };

  // Names of rows: as wide as they are, at most two fifths of the chart, and from there on in lines, for which the chart grows.
  const rowNames = (element, labels, around, row) => {
    const letter = 6.6;
    const widest = letter * Math.max(...labels.map((label) => label.length));
    const width = Math.min(12 + widest, .4 * element.clientWidth);
    // Lines end between words, so they are not full.
    const lines = widest + 12 <= width ? 1 : Math.ceil(1 + widest / width);
    element.style.height = `${Math.max(240, around + labels.length * Math.max(row, 6 + 13 * lines))}px`;
    return { left: 10 + width, axisLabel: { color: css("--ink"), width, overflow: "break", lineHeight: 13, interval: 0 } };
  };
  // A bar for each drive; of a stack of several a bar for all of them together, and then one for each.
  const work = drives.flatMap((drive) => {
    const below = drive.drives ?? [];
    const together = below.length > 0 ? `${drive.name}, ${below.length} drives together` : drive.name;
    return [{ name: together, flash: drive.flash, drive }, ...below.map(({ name, flash }) => ({ name, flash, drive }))];
  });
  const byCause = (element, pick, name, kind) => {
    const labels = work.map((bar) => bar.name);
    const rows = work.map((bar) => pick(bar) ?? {});
    const causes = Object.keys(titles).concat(rows.flatMap(Object.keys).filter((cause) => !(cause in titles)))
      .filter((cause, at, all) => all.indexOf(cause) === at && rows.some((row) => row[cause] > 0));
    if (causes.length === 0) return "There were none.";
    const option = base();
    option.legend = { ...option.legend, show: true };
    const scaled = nice(kind, 0, Math.max(...rows.map((row) => sum(Object.values(row)))));
    const format = scaled.value;
    const { left, axisLabel } = rowNames(element, labels, 110, work.length <= Number(body.dataset.few) ? 34 : 24);
    option.grid = { left, right: 56, top: 40, bottom: 46 };
    option.yAxis = axis("", { type: "category", inverse: true, data: labels, axisLabel, splitLine: { show: false } });
    option.xAxis = axis(name, { type: "value", min: 0, max: scaled.max, interval: scaled.interval, axisLabel: along(scaled.label) });
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
  const programs = ({ flash }) => added(flash.programs.by_cause, flash.copybacks.by_cause);
  // A drive of a stack has its part of the stack's write amplification: the parts add up to the whole.
  const partOf = (bar) => {
    const { write_amplification: whole, flash } = bar.drive;
    if (!whole || bar.flash === flash) return whole?.by_cause;
    const pages = sum(Object.values(programs({ flash })));
    return Object.fromEntries(Object.entries(programs(bar)).map(([cause, count]) => [cause, pages > 0 ? whole.total * count / pages : 0]));
  };
  const causes = {
    amplification: (element) => byCause(element, partOf, "write amplification", "ratio"),
    programs: (element) => byCause(element, programs, "pages programmed or copied back", "count"),
    reads: (element) => byCause(element, ({ flash }) => flash.reads.by_cause, "pages read from flash", "count"),
    erases: (element) => byCause(element, ({ flash }) => flash.erases.by_cause, "blocks erased", "count"),
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
  const waited = (element, op) => {
    const rows = waitedRows(op);
    const share = (row, key) => (row.split.parts_ns[key] ?? 0) / row.split.mean_ns;
    const keys = [...new Set(rows.flatMap((row) => Object.keys(row.split.parts_ns)))];
    const most = (key) => Math.max(...rows.map((row) => share(row, key)));
    const ordered = keys.sort((a, b) => most(b) - most(a));
    const large = ordered.filter((key, at) => at < 11 && most(key) >= .005);
    const rest = ordered.filter((key) => !large.includes(key));
    const labels = rows.map((row) => `${row.name}  (mean ${single("ns")(row.split.mean_ns)})`);
    const option = base();
    option.legend = { ...option.legend, show: true };
    const { left, axisLabel } = rowNames(element, labels, 150, 30);
    option.grid = { left, right: 30, top: 46, bottom: 46 };
    option.yAxis = axis("", { type: "category", inverse: true, data: labels, axisLabel, splitLine: { show: false } });
    option.xAxis = axis("share of the mean latency", { type: "value", min: 0, max: 1, axisLabel: along(percent) });
    option.tooltip = { ...option.tooltip, trigger: "axis", axisPointer: { type: "shadow", shadowStyle: { color: css("--faint"), opacity: .6 } }, formatter: (bars) => {
      const row = rows[bars[0].dataIndex];
      const shownBars = bars.filter((bar) => bar.value > 0).sort((a, b) => b.value - a.value);
      return `${echarts.format.encodeHTML(labels[bars[0].dataIndex])}<br>${shownBars.map((bar) => `${bar.marker}${echarts.format.encodeHTML(bar.seriesName)} <b>${single("ns")(bar.value * row.split.mean_ns)}</b> (${percent(bar.value)})`).join("<br>")}`;
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
    const chosen = drawn.filter(({ index }) => isDrawn(index));
    if (chosen.length === 0) return noCurves;
    const share = nice("share", 0, Math.max(...chosen.map(({ wear: { blocks } }) => Math.max(...blocks) / sum(blocks))));
    const option = base();
    option.xAxis = axis("erases of a block", { type: "value", minInterval: 1, scale: true, splitLine: { show: false }, axisLabel: along(short("count")) });
    option.yAxis = axis("share of blocks", { type: "value", min: 0, max: share.max, interval: share.interval, nameGap: 50, axisLabel: { color: css("--soft"), formatter: share.label } });
    // Bins of drives differ: the bin of each that holds this count.
    option.tooltip = { ...option.tooltip, trigger: "axis", axisPointer: { snap: false }, formatter: (found) => {
      const count = Math.max(0, Math.round(found[0].axisValue));
      return lines(`${count} erases`, chosen, ({ wear: { bin, erases, blocks } }) => share.value((blocks[erases.findIndex((from) => count >= from && count < from + bin)] ?? 0) / sum(blocks)));
    } };
    option.toolbox = zooming();
    option.series = chosen.map(({ index, wear: { bin, erases, blocks } }) => {
      const all = sum(blocks);
      const points = [[erases[0], 0], ...erases.map((erase, at) => [erase, blocks[at] / all]), [erases.at(-1) + bin, 0]];
      return line(index, points, { step: "end", showSymbol: false, areaStyle: { opacity: chosen.length > 4 ? .05 : .14 } });
    });
    return option;
  };

  // By sub-test: what the tables have, from the element that has it for the charts.
  const divided = JSON.parse(document.getElementById("subtests")?.dataset.points ?? "[]");
  const bySubtest = (column, name, kind) => () => {
    // An interrupted drive has fewer sub-tests than the others, never others.
    const labels = divided.map((tests) => tests.map((test) => test[0])).sort((a, b) => b.length - a.length)[0];
    const option = base();
    option.series = divided.flatMap((tests, index) => (
      isDrawn(index) && tests.some((test) => test[column] !== null)
        ? [line(index, tests.map((test) => [test[0], test[column]]), { showSymbol: labels.length <= 60, symbolSize: 6 + 3 * Math.min(4, divided.length - 1 - index) })] : []
    ));
    if (option.series.length === 0) return few ? "No sub-test has any." : noCurves;
    const scaled = nice(kind, 0, Math.max(...divided.flat().map((test) => test[column] ?? 0)));
    // Where drives do the same, the marks of those below stay in sight.
    option.grid.left = 72;
    option.xAxis = axis("sub-test", { type: "category", data: labels, boundaryGap: labels.length <= 60, splitLine: { show: false } });
    option.yAxis = axis(name, { type: "value", min: 0, max: scaled.max, interval: scaled.interval, nameGap: 54, axisLabel: { color: css("--soft"), formatter: scaled.label } });
    option.tooltip = { ...option.tooltip, trigger: "axis", valueFormatter: shown(scaled.value), axisPointer: { label: { formatter: (at) => `sub-test ${at.value}` } } };
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

  // A metric of every drive by a parameter in which they differ: metrics are the columns of the headline, parameters what
  // the command line varied, where it did, or else all that differs between the descriptions.
  const varied = (() => {
    const several = (all) => Object.fromEntries(Object.entries(all).filter(([, values]) => new Set(values).size > 1));
    const overrides = drives.map((drive) => drive.overrides ?? {});
    const keys = [...new Set(overrides.flatMap(Object.keys))];
    const own = several(Object.fromEntries(keys.map((key) => [key, overrides.map((set) => (set[key] === undefined ? null : String(set[key])))])));
    return Object.keys(own).length > 0 ? own : several(JSON.parse(document.getElementById("differences")?.dataset.parameters ?? "{}"));
  })();
  const metrics = [...document.querySelectorAll("#headline th[data-metric]")].map((head) => ({
    name: head.dataset.metric, kind: head.dataset.unit, column: head.cellIndex,
  })).map((metric) => ({ ...metric, values: drives.map((_, index) => Number(document.querySelector(`#headline tr[data-drive="${index}"]`).cells[metric.column].dataset.value ?? Number.NaN)) }));
  // Which drives are repetitions of one.
  const repeated = new Map();
  drives.forEach(({ name, repetition }, index) => {
    const of = repetition?.of ?? name;
    repeated.set(of, [...(repeated.get(of) ?? []), index]);
  });
  const byParameter = (metric, parameter) => {
    const texts = varied[parameter].map((value) => value ?? "–");
    const each = metric.values.map((value, index) => ({ value, index, x: texts[index] })).filter(({ value }) => Number.isFinite(value));
    const points = [...repeated].map(([name, indices]) => {
      const values = indices.map((index) => metric.values[index]);
      return { name, value: sum(values) / values.length, index: indices[0], x: texts[indices[0]] };
    }).filter(({ value }) => Number.isFinite(value));
    if (points.length === 0) return "No drive has this metric.";
    const numeric = texts.every((text) => Number.isFinite(setting(text)));
    const labels = [...new Set(texts)].sort((a, b) => (numeric ? setting(a) - setting(b) : a.localeCompare(b, undefined, { numeric: true })));
    // What follows from the parameter itself (the size of a page from the kind of cell) does not part the lines.
    const others = Object.entries(varied).filter(([key, values]) => key !== parameter && labels.some((label) => new Set(values.filter((_, index) => texts[index] === label)).size > 1));
    const lineOf = (index) => others.map(([key, values]) => `${key} ${values[index] ?? "–"}`).join(", ");
    const groups = [...new Set(points.map(({ index }) => lineOf(index)))];
    // Drives that share a parameter and a line differ in something else: no line goes through them.
    const apart = groups.some((group) => { const xs = points.filter(({ index }) => lineOf(index) === group).map(({ x }) => x); return new Set(xs).size < xs.length; });
    const scaled = nice(metric.kind, 0, Math.max(...each.map(({ value }) => value)) || 1);
    const option = base();
    option.legend = { ...option.legend, show: groups.length > 1, selected: {}, right: 0, textStyle: { color: css("--ink") } };
    option.grid = { ...option.grid, left: 76, top: groups.length > 1 ? 40 : 18 };
    option.xAxis = axis(parameter, { type: "category", data: labels, splitLine: { show: false }, axisLabel: along(null) });
    option.yAxis = axis(metric.name, { type: "value", nameGap: 58, min: 0, max: scaled.max, interval: scaled.interval, axisLabel: { color: css("--soft"), formatter: scaled.label } });
    option.series = groups.map((group, at) => line(at, points.filter(({ index }) => lineOf(index) === group)
      .sort((a, b) => labels.indexOf(a.x) - labels.indexOf(b.x)).map(({ x, value, name }) => ({ name, value: [x, value] })), { name: group || metric.name, showSymbol: true, symbolSize: 7, lineStyle: { width: apart ? 0 : 1.8, type: dash(at), color: paint(at) } }));
    // Each repetition is a small point beside the mean of all.
    if (repeated.size < drives.length) {
      option.series.push(...groups.map((group, at) => ({
        type: "scatter", name: group || metric.name, z: 1, symbolSize: 4, itemStyle: { color: paint(at), opacity: .5 }, emphasis: { disabled: true },
        data: each.filter(({ index }) => lineOf(index) === group).map(({ x, value, index }) => ({ name: names[index], value: [x, value] })),
      })));
    }
    option.tooltip = { ...option.tooltip, trigger: "axis", formatter: (found) => {
      const said = (point) => `${point.marker}${echarts.format.encodeHTML(`${point.name}${group(point)}`)} <b>${scaled.value(point.value[1])}</b>`;
      const group = (point) => (groups.length > 1 ? `: ${point.seriesName}` : "");
      return [echarts.format.encodeHTML(`${parameter} ${found[0].axisValue}`), ...found.filter((point) => point.seriesType === "line").map(said)].join("<br>");
    } };
    return { option, rows: [["drive", ...Object.keys(varied), metric.name], ...each.map(({ index, value }) => [names[index], ...Object.values(varied).map((values) => values[index]), value])] };
  };

  // ---- putting them on the page ----
  const charts = [];
  // The menu to save a chart stands with its buttons, or where it has none, with its title.
  // Where nothing is to draw, the card of a chart that is spare is left out.
  const place = (element, draw, { curves = false, spare = false } = {}) => {
    const chart = { element, draw, curves, spare, instance: null, rows: [] };
    charts.push(chart);
    const head = element.closest("div:has(> .head), section").querySelector(".head");
    if (element.id && head) {
      let bar = head.querySelector(".choices, .choice") ?? head;
      if (bar.matches(".choice")) {
        const around = tools.make("div", "", { className: "choices" });
        bar.replaceWith(around);
        around.append(bar);
        bar = around;
      }
      tools.saving(chart, bar, () => css("--card"));
    }
    return chart;
  };
  // A chart's marks as a table: lines by point, bars by category.
  const tabled = ({ series, xAxis, yAxis }) => {
    const bars = series[0]?.type === "bar";
    const head = bars ? ["row", "part", xAxis.name] : ["drive", xAxis.name, yAxis.name];
    const rows = series.flatMap((one) => one.data.map((point, at) => (bars ? [yAxis.data[at], one.name, point] : [one.name, ...(point.value ?? point)])));
    return [head, ...rows];
  };
  const show = (chart) => {
    const made = chart.draw(chart.element);
    chart.instance?.dispose();
    chart.instance = null;
    chart.element.dataset.chart = typeof made === "string" ? "empty" : "drawn";
    const card = chart.element.closest(".pair > section");
    if (chart.spare && card.hidden !== (typeof made === "string")) {
      card.hidden = !card.hidden;
      charts.filter((beside) => beside !== chart && card.parentElement.contains(beside.element)).forEach(show);
    }
    if (typeof made === "string") {
      chart.element.replaceChildren(tools.make("p", made, { className: "empty" }));
      return;
    }
    const { option, rows, fit } = made.option ? made : { option: made };
    chart.rows = rows ?? tabled(option);
    chart.element.replaceChildren();
    // Names leave room for the signs.
    if (option.toolbox) option.legend.width = Math.max(120, chart.element.clientWidth - 72);
    const instance = echarts.init(chart.element, null, { renderer: "svg" });
    chart.instance = instance;
    instance.setOption(option);
    instance.on("legendselectchanged", ({ name, selected }) => { if (name in switched) turn(name, selected[name], chart); });
    if (!option.toolbox) return;
    const grip = () => instance.dispatchAction({ type: "takeGlobalCursor", key: "dataZoomSelect", dataZoomSelectActive: true });
    if (!matchMedia("(pointer: coarse)").matches) grip();
    chart.element.ondblclick = () => instance.dispatchAction({ type: "dataZoom", dataZoomIndex: 0, start: 0, end: 100 });
    instance.on("datazoom", () => {
      const { left, right } = option.grid;
      const [from, to] = [left, chart.element.clientWidth - right].map((x) => instance.convertFromPixel({ xAxisIndex: 0 }, x));
      if (fit) instance.setOption(fit(from, to));
    });
  };
  // Switches a drive's curves on or off, in the chart where that was asked for and in all others.
  const turn = (name, on, from) => {
    switched[name] = on;
    document.querySelectorAll("#headline tr[data-drive]").forEach((row) => {
      row.cells[0].firstElementChild.setAttribute("aria-pressed", String(switched[names[row.dataset.drive]]));
    });
    if (!few) {
      cells.forEach(({ cell, index }) => { cell.hidden = !isDrawn(index); });
      charts.filter((chart) => chart.curves).forEach(show);
      return;
    }
    charts.filter((other) => other !== from).forEach((other) => other.instance?.dispatchAction({ type: on ? "legendSelect" : "legendUnSelect", name }));
  };
  const togglers = () => document.querySelectorAll("#headline tr[data-drive]").forEach((row) => {
    const name = names[row.dataset.drive];
    const toggle = tools.button("", () => turn(name, !switched[name], null));
    toggle.title = `Show or hide ${name} in all charts`;
    toggle.append(...row.cells[0].childNodes);
    toggle.setAttribute("aria-pressed", String(switched[name]));
    row.cells[0].append(toggle);
  });
  const cells = [];
  const choices = (id, options, labels, extra) => {
    const chart = place(document.getElementById(id), Object.values(options)[0], extra);
    tools.choice(document.querySelector(`[data-for="${id}"]`), Object.keys(options), labels, (key) => {
      chart.draw = options[key];
      show(chart);
    });
  };
  const curves = { curves: true };
  const capital = (word) => word[0].toUpperCase() + word.slice(1);
  // A chart with several bars of buttons. Each bar sets one key to one of its values; a value has a label.
  const several = (id, bars, draw) => {
    const chosen = Object.fromEntries(bars.map(([key, values]) => [key, values[0]]));
    const places = document.querySelectorAll(`[data-for="${id}"]`);
    const chart = place(document.getElementById(id), () => draw(chosen), curves);
    bars.forEach(([key, values, labels], at) => tools.choice(places[at], values, labels, (value) => { chosen[key] = value; show(chart); }));
  };

  const kinds = ["all", "read", "write", "trim", "flush"].filter((kind) => kind === "all" || drives.some((drive) => drive.latency_cdf[kind]?.latency_ns.length));
  const smoothed = ["way", ["smoothed", "interval"], ["Smoothed", "Intervals"]];
  choices("latency-cdf", Object.fromEntries(kinds.map((kind) => [kind, () => tails(kind)])), kinds.map(capital), curves);
  if (document.getElementById("by-parameter")) {
    const pick = (label, values, first) => {
      const chosen = tools.make("select", "");
      chosen.append(...values.map((value) => tools.make("option", value, { value })));
      chosen.value = first;
      chosen.addEventListener("change", () => show(chart));
      const around = tools.make("label", `${label} `, { className: "pick" });
      around.append(chosen);
      document.getElementById("picks").append(around);
      return chosen;
    };
    const different = (key) => new Set(varied[key]).size;
    const keys = Object.keys(varied);
    const named = metrics.map(({ name }) => name);
    const metric = pick("Metric", named, named.find((name) => name === "Write amplification") ?? named[0]);
    const parameter = pick("by", keys, keys.reduce((most, key) => (different(key) > different(most) ? key : most), keys[0]));
    const chart = place(document.getElementById("by-parameter"), () => byParameter(metrics[named.indexOf(metric.value)], parameter.value));
  }
  if (document.getElementById("subtest-amplification")) {
    const amplifications = (column) => bySubtest(column, "write amplification", "ratio");
    choices("subtest-amplification", { real: amplifications(2), counted: amplifications(1) }, ["Really", "Counted"], curves);
  }
  if (document.getElementById("subtest-rate")) place(document.getElementById("subtest-rate"), bySubtest(3, "bytes written a second", "bytes"), curves);
  several("throughput", [smoothed, ["kind", ["requests", "read", "write"], ["Requests", "Read", "Write"]]], ({ way, kind }) => throughput[way][kind]());
  choices("write-amplification", amplification, ["Smoothed", "Intervals", "From the start"], curves);
  const lateOps = kinds.filter((kind) => kind === "all" || drives.some((drive) => drive.timeline.latency_by_op?.[kind]));
  several("latency-time", [smoothed, ["key", ["latency_p99_ns", "latency_mean_ns", "latency_max_ns"], ["p99", "Mean", "Max"]], ["kind", lateOps, lateOps.map(capital)]], latencyOverTime);
  if (document.getElementById("map-hits")) several("map-hits", [smoothed], ({ way }) => mapHits[way]());
  if (document.getElementById("waited-parts")) {
    const ops = ["read", "write", "trim", "flush"].filter((op) => drives.some((drive) => drive.latency_breakdown?.ops[op]?.mean.mean_ns > 0));
    choices("waited-parts", Object.fromEntries(ops.map((op) => [op, (element) => waited(element, op)])), ops.map((op) => (op === "flush" ? "Flushes" : `${capital(op)}s`)));
  }
  choices("causes", causes, ["Amplification", "Programs", "Reads", "Erases"]);
  place(document.getElementById("wear"), wear, { ...curves, spare: !few });
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
    cell.hidden = !isDrawn(index);
    cells.push({ cell, index });
    grid.append(cell);
    place(element, () => (isDrawn(index) ? heat(drive)() : noCurves), curves);
  });
  if (measured.length === 0 || !few) {
    grid.prepend(tools.make("p", measured.length === 0 ? "No drive of this run takes time, so nothing was ever busy." : "Of the drives chosen in the table at the top.", { className: "empty" }));
  }
  document.getElementById("wear").style.height = `${Math.min(420, Math.max(240, 110 + drives.length * 34))}px`;

  const showAll = () => charts.forEach(show);
  togglers();
  showAll();
  tools.theme(showAll);
  tools.copying();
  tools.sorting();
  let waiting = 0;
  window.addEventListener("resize", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => charts.forEach((chart) => (chart.element.matches("#causes, #waited-parts") ? show(chart) : chart.instance?.resize())), 100);
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
