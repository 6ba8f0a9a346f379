// The charts of a reproduction. Reads #data and draws with ECharts as SVG; makes no request of any kind. When all is
// drawn it writes onto <body>: data-charts, data-charts-drawn and data-script-errors, as a run's page does.
"use strict";
(() => {
  const body = document.body;
  let errors = 0;
  window.addEventListener("error", () => { errors += 1; body.dataset.scriptErrors = String(errors); });
  body.dataset.scriptErrors = "0";
  const figures = JSON.parse(document.getElementById("data").textContent);
  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  // Whole numbers as they are: 262,144 of the tables is not 262,100.
  const short = (value) => (Number.isInteger(value) ? (value || 0).toLocaleString("en") : String(Number(value.toPrecision(4))));
  // On an axis three digits say enough.
  const tick = (value) => (Number.isInteger(value) ? short(value) : String(Number(value.toPrecision(3))));
  let drawn = 0;
  let asked = 0;
  // Bars of more names than this are too narrow for their labels side by side.
  const widest = 8;

  const base = () => ({
    animation: false,
    textStyle: { fontFamily: getComputedStyle(body).fontFamily, color: css("--soft") },
    legend: { top: 0, left: 0, padding: 2, itemGap: 8, itemWidth: 16, itemHeight: 8, textStyle: { color: css("--ink"), fontSize: 12, lineHeight: 14 } },
    grid: { left: 62, right: 16, top: 36, bottom: 46, containLabel: false },
    tooltip: { confine: true, backgroundColor: css("--card"), borderColor: css("--line"), textStyle: { color: css("--ink"), fontSize: 12.5 } },
  });
  const axis = (name, extra) => ({
    name, nameLocation: "middle", nameGap: 30, nameTextStyle: { color: css("--soft"), fontSize: 12 },
    axisLine: { show: false, lineStyle: { color: css("--line") } }, axisTick: { show: false },
    axisLabel: { color: css("--soft"), fontSize: 11.5, hideOverlap: true }, splitLine: { lineStyle: { color: css("--line") } }, ...extra,
  });
  const ink = document.createElement("canvas").getContext("2d");
  const lengthOf = (text, size) => {
    ink.font = `${size}px ${getComputedStyle(body).fontFamily}`;
    return ink.measureText(text).width;
  };
  // By the width of a chart: how many rows the legend takes with all its names, and whether the names on x are turned so that they
  // do not overlap.
  const fitted = (option, pixels) => {
    let [rows, taken] = [1, 0];
    for (const { name } of option.series) {
      const item = 16 + 5 + lengthOf(name, 12) + 8;
      if (taken > 0 && taken + item > pixels - 8) [rows, taken] = [rows + 1, 0];
      taken += item;
    }
    const top = 14 + 22 * rows;
    const { left, right } = option.grid;
    if (option.xAxis.type !== "category") return { height: 318 + 22 * rows, part: { grid: { top } } };
    const names = option.xAxis.data;
    const room = (pixels - left - right) / names.length;
    const longest = Math.min(Math.max(...names.map((name) => lengthOf(name, 11.5))), 130);
    const rotate = longest + 8 < room ? 0 : room > 26 ? 32 : 60;
    const deep = rotate === 0 ? 26 : 22 + longest * Math.sin((rotate * Math.PI) / 180);
    const bottom = deep + (option.xAxis.name ? 22 : 0);
    const part = { grid: { top, bottom }, xAxis: { nameGap: bottom - 18, axisLabel: { rotate, width: 130 } } };
    return { height: 292 + 22 * rows + deep, part };
  };
  const draw = (place, title, option, wide) => {
    asked += 1;
    const box = document.createElement("div");
    if (wide) box.className = "wide";
    const head = document.createElement("h3");
    head.textContent = title;
    const chart = document.createElement("div");
    chart.className = "chart";
    box.append(head, chart);
    place.append(box);
    const instance = echarts.init(chart, null, { renderer: "svg" });
    const fit = () => {
      const { height, part } = fitted(option, chart.clientWidth);
      chart.style.height = `${Math.round(height)}px`;
      instance.resize();
      return part;
    };
    const part = fit();
    instance.setOption(option);
    instance.setOption(part);
    window.addEventListener("resize", () => instance.setOption(fit()));
    if (chart.querySelectorAll("path").length > 0) drawn += 1;
  };

  const says = ({ low, high }) => (low === null ? `up to ${high}` : high === null ? `at least ${low}` : low === high ? String(low) : `${low} to ${high}`);
  // What the paper says of a value: a line across for its value, two with a bar between for the ends of a range, an arrow where
  // the range is open. Offset and width are those of the bar that it is held against.
  const mark = (offset, width) => (params, api) => {
    const [low, high] = [api.value(1), api.value(2)].map((end) => (Number.isNaN(end) ? null : end));
    const at = (value) => api.coord([api.value(0), value]);
    const [x, y] = at(low ?? high);
    const { center, half } = { center: x + offset(api), half: width(api) / 2 };
    const ends = [low, high].filter((end, index) => end !== null && (index === 0 || end !== low)).map((end) => at(end)[1]);
    const style = { fill: css("--ink"), stroke: css("--card"), lineWidth: 1 };
    const children = ends.map((y) => ({ type: "rect", shape: { x: center - half, y: y - 1.5, width: 2 * half, height: 3 }, style }));
    if (ends.length === 2) children.push({ type: "rect", shape: { x: center - 1, y: Math.min(...ends), width: 2, height: Math.abs(ends[0] - ends[1]) }, style: { fill: css("--ink") } });
    if (low === null || high === null) {
      const way = high === null ? -1 : 1;
      children.push({ type: "polygon", shape: { points: [[center - 4, y + 4 * way], [center + 4, y + 4 * way], [center, y + 11 * way]] }, style });
    }
    return { type: "group", children };
  };
  const paper = (data, offset, width, name) => ({
    type: "custom", name, renderItem: mark(offset, width), encode: { x: 0, y: [1, 2], tooltip: [] }, data, color: css("--ink"), itemStyle: { color: css("--ink") }, z: 5, tooltip: { show: false },
  });
  const said = "the paper";
  const lineOf = (name, index, count, data, scattered) => ({
    type: "line", name, showSymbol: scattered || data.length < 24, showAllSymbol: scattered, symbol: ["circle", "rect", "triangle", "diamond"][index % 4], symbolSize: scattered ? 3 : 6, color: css(`--d${index % 12}`),
    lineStyle: { width: scattered ? 0 : 1.8, type: count > 4 && index % 2 ? "dashed" : "solid" }, data,
  });
  const numbered = (option, name, xs, log) => {
    const positive = xs.filter((x) => x > 0);
    option.xAxis = axis(name, {
      type: log ? "log" : "value", logBase: log ? 2 : 10, min: log && positive.length > 0 ? Math.min(...positive) : undefined, max: "dataMax",
      axisLabel: { color: css("--soft"), fontSize: 11.5, formatter: tick, hideOverlap: true, padding: [0, 6] },
    });
  };
  const upright = (option, name, extra = {}) => {
    option.yAxis = axis(name, { type: "value", nameGap: 46, axisLabel: { color: css("--soft"), fontSize: 11.5, formatter: tick }, ...extra });
  };

  // A panel: bars of each series at each name, or a line of each series over numbers; and what the paper says of a value. A
  // series has one colour in all panels of its figure.
  const panel = (place, { title, x, scale, y, series }, known) => {
    const paint = (name) => (known.includes(name) ? known.indexOf(name) : known.push(name) - 1);
    const option = base();
    const tip = (lines) => lines.filter(Boolean).join("<br>");
    const text = (word) => Object.assign(document.createElement("i"), { textContent: word }).innerHTML;
    const row = (name, value) => `${text(name)}: <b>${short(value.y)}</b>${value.published ? ` (${said}: ${text(says(value.published))})` : ""}`;
    const marked = series.flatMap((one, index) => one.values.filter((value) => value.published).map((value) => ({ value, index })));
    const ends = ({ low, high }) => [low ?? NaN, high ?? NaN];
    const names = [...new Set(series.flatMap((one) => one.values.map((value) => value.x)))];
    const at = (place) => series.flatMap((one) => one.values.filter((value) => value.x === place).map((value) => row(one.name, value)));
    if (scale === "names") {
      option.xAxis = axis(x, { type: "category", data: names, axisLabel: { color: css("--soft"), fontSize: 11.5, interval: 0, overflow: "truncate" }, splitLine: { show: false } });
      option.tooltip = { ...option.tooltip, trigger: "axis", axisPointer: { type: "shadow" }, formatter: ([{ dataIndex }]) => tip([text(names[dataIndex]), ...at(names[dataIndex])]) };
      option.series = series.map((one) => ({
        type: "bar", name: one.name, color: css(`--d${paint(one.name) % 12}`), barMaxWidth: 48, data: names.map((name) => one.values.find((value) => value.x === name)?.y ?? null),
      }));
      const layout = (api) => api.barLayout({ barGap: "30%", barCategoryGap: "20%", barMaxWidth: 48, count: series.length });
      const data = marked.map(({ value, index }) => [names.indexOf(value.x), ...ends(value.published), index]);
      if (data.length > 0) option.series.push(paper(data, (api) => layout(api)[api.value(3)].offsetCenter, (api) => Math.max(5, Math.min(layout(api)[api.value(3)].width, 40)), said));
    } else {
      numbered(option, x, names, scale === "log");
      option.tooltip = { ...option.tooltip, trigger: "axis", formatter: ([{ axisValue }]) => tip([`${text(x)}: ${short(Number(axisValue))}`, ...at(Number(axisValue))]) };
      option.series = series.map((one) => lineOf(one.name, paint(one.name), series.length, one.values.map((value) => [value.x, value.y]), false));
      const data = marked.map(({ value }) => [value.x, ...ends(value.published)]);
      if (data.length > 0) option.series.push(paper(data, () => 0, () => 16, said));
    }
    // From zero: else small differences look large. The paper's highest value stays below the top.
    upright(option, y, { scale: false, boundaryGap: marked.length > 0 ? [0, "8%"] : [0, 0] });
    draw(place, title, option, scale === "names" && (names.length > widest || names.length * series.length > 30));
  };
  const lines = (place, chart) => {
    const option = base();
    numbered(option, chart.x, chart.curves.flatMap((curve) => curve.points.map(([x]) => x)), chart.x_log);
    if (chart.x_log) option.xAxis.logBase = 10;
    upright(option, chart.y);
    option.tooltip = { ...option.tooltip, trigger: "axis", valueFormatter: (value) => (typeof value === "number" ? short(value) : "–") };
    option.series = chart.curves.map((curve, index) => lineOf(curve.name, index, chart.curves.length, curve.points.filter(([x]) => !chart.x_log || x > 0), chart.is_scattered));
    draw(place, chart.title, option, false);
  };
  for (const figure of figures) {
    const place = document.querySelector(`[data-figure="${figure.id}"]`);
    const known = [];
    figure.panels.forEach((one) => panel(place, one, known));
    figure.curves.forEach((chart) => lines(place, chart));
  }
  body.dataset.charts = String(asked);
  body.dataset.chartsDrawn = String(drawn);
})();
