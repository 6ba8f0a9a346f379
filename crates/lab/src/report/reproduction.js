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
  const short = (value) => String(Number(value.toPrecision(4)));
  const unique = (values) => [...new Set(values)];
  // Charts of more categories than this are cut into several.
  const widest = 16;
  let drawn = 0;
  let asked = 0;

  const base = () => ({
    animation: false,
    textStyle: { fontFamily: getComputedStyle(body).fontFamily, color: css("--soft") },
    legend: { type: "scroll", top: 0, left: 0, itemWidth: 16, itemHeight: 8, textStyle: { color: css("--ink") }, pageTextStyle: { color: css("--soft") } },
    grid: { left: 62, right: 16, top: 36, bottom: 46, containLabel: false },
    tooltip: { confine: true, backgroundColor: css("--card"), borderColor: css("--line"), textStyle: { color: css("--ink"), fontSize: 12.5 } },
  });
  const axis = (name, extra) => ({
    name, nameLocation: "middle", nameGap: 30, nameTextStyle: { color: css("--soft"), fontSize: 12 },
    axisLine: { show: false, lineStyle: { color: css("--line") } }, axisTick: { show: false },
    axisLabel: { color: css("--soft"), fontSize: 11.5, hideOverlap: true }, splitLine: { lineStyle: { color: css("--line") } }, ...extra,
  });
  const draw = (place, title, option, wide = false) => {
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
    instance.setOption(option);
    window.addEventListener("resize", () => instance.resize());
    if (chart.querySelectorAll("path").length > 0) drawn += 1;
  };

  const spans = ["all", "best", "least", "mean"];
  const answers = (point, published) =>
    (spans.includes(published.workload) ? published.workload === "all" && point.stands_for !== "" : published.workload === point.stands_for)
    && published.series === point.series
    && (published.page_size === "any" || published.page_size === point.page_size)
    && (published.setting === "any" || published.setting === point.setting);

  // One chart for each unit and setting, or, where there are more settings than rows (sub-tests, buffer sizes), for each
  // unit and row: bars of ours, and where the paper gives a value or a range for a bar, its ends. What all bars have in
  // common stands above the chart, not under each bar.
  const bars = (place, figure) => {
    const row = (point) => [point.workload, point.page_size].filter(Boolean).join(", ");
    for (const unit of unique(figure.points.map((point) => point.unit))) {
      const ofUnit = figure.points.filter((point) => point.unit === unit);
      const turned = unique(ofUnit.map((point) => point.setting)).length > unique(ofUnit.map(row)).length;
      const [over, under] = turned ? [row, (point) => point.setting] : [(point) => point.setting, row];
      for (const chart of unique(ofUnit.map(over))) {
        const points = ofUnit.filter((point) => over(point) === chart);
        const pages = unique(points.map((point) => point.page_size));
        const common = turned || pages.length > 1 ? "" : pages[0];
        const label = turned || !common ? under : (point) => point.workload;
        const labels = unique(points.map(label));
        const title = [chart, common, unit].filter(Boolean).join(", ");
        // Cut into parts of one length: no part of a bar or two.
        const size = Math.ceil(labels.length / Math.ceil(labels.length / widest));
        for (let from = 0; from < labels.length; from += size) {
          const shown = labels.slice(from, from + size);
          const names = unique(points.map((point) => point.series));
          const option = base();
          option.grid.bottom = 104;
          option.xAxis = axis("", { type: "category", data: shown, axisLabel: { color: css("--soft"), fontSize: 11, rotate: 32, interval: 0, width: 140, overflow: "truncate" }, splitLine: { show: false } });
          option.yAxis = axis(unit, { type: "value", nameGap: 44, axisLabel: { color: css("--soft"), formatter: short } });
          option.tooltip = { ...option.tooltip, trigger: "axis", axisPointer: { type: "shadow" }, valueFormatter: (value) => (typeof value === "number" ? `${short(value)} ${unit}` : "–") };
          option.series = names.map((name, index) => ({
            type: "bar", name, color: css(`--d${index % 12}`),
            data: shown.map((at) => points.find((point) => label(point) === at && point.series === name)?.value ?? null),
          }));
          const ends = [];
          for (const point of points) {
            const published = figure.published.find((one) => answers(point, one));
            if (!published) continue;
            for (const end of [published.value.low, published.value.high]) if (end !== null && shown.includes(label(point))) ends.push([shown.indexOf(label(point)), end, names.indexOf(point.series)]);
          }
          // A mark lies on the bar that it is held against; gaps as ECharts leaves them between bars.
          const mark = (params, api) => {
            const bar = api.barLayout({ barGap: "30%", barCategoryGap: "20%", count: names.length })[api.value(2)];
            const [x, y] = api.coord([api.value(0), api.value(1)]);
            const width = Math.max(4, Math.min(bar.width, 26));
            return { type: "rect", shape: { x: x + bar.offsetCenter - width / 2, y: y - 1.5, width, height: 3 }, style: { fill: css("--ink"), stroke: css("--card"), lineWidth: 1 } };
          };
          if (ends.length > 0) option.series.push({ type: "custom", name: "the paper: value, or ends of its range", renderItem: mark, encode: { x: 0, y: 1, tooltip: 1 }, data: ends, color: css("--ink"), z: 5 });
          draw(place, title || "values", option, names.length > 4 || shown.length * names.length > 24);
        }
      }
    }
  };
  const lines = (place, chart) => {
    const option = base();
    const values = chart.curves.flatMap((curve) => curve.points.map(([x]) => x)).filter((x) => x > 0);
    option.xAxis = axis(chart.x, { type: chart.x_log ? "log" : "value", min: chart.x_log && values.length > 0 ? Math.min(...values) : undefined, max: "dataMax", axisLabel: { color: css("--soft"), formatter: short, hideOverlap: true, padding: [0, 6] } });
    option.yAxis = axis(chart.y, { type: "value", nameGap: 44, axisLabel: { color: css("--soft"), formatter: short } });
    option.tooltip = { ...option.tooltip, trigger: "axis", valueFormatter: (value) => (typeof value === "number" ? short(value) : "–") };
    option.series = chart.curves.map((curve, index) => ({
      type: "line", name: curve.name, showSymbol: chart.is_scattered, showAllSymbol: chart.is_scattered, symbol: "circle", symbolSize: 3, color: css(`--d${index % 12}`),
      lineStyle: { width: chart.is_scattered ? 0 : 1.8, type: index % 2 ? "dashed" : "solid" },
      data: curve.points.filter(([x]) => !chart.x_log || x > 0),
    }));
    draw(place, chart.title, option);
  };
  for (const figure of figures) {
    const place = document.querySelector(`[data-figure="${figure.id}"]`);
    bars(place, figure);
    figure.curves.forEach((chart) => lines(place, chart));
  }
  body.dataset.charts = String(asked);
  body.dataset.chartsDrawn = String(drawn);
})();
