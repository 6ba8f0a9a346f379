"""Pages of reproductions: a figure has a chart for each of its panels with a series for each of theirs, the paper's values are
marks, a table has no chart, the verdict comes first, and no text of a chart lies on another, on a phone neither."""

import json
import subprocess

# What is made for the test: figures and tables of each paper. Those at full size need no runs, and have published values.
PAGES = {
    "shrd-quick": ["shrd/figure07", "shrd/figure08", "shrd/figure09", "shrd/figure10", "shrd/section5", "--quick"],
    "waflash": ["waflash/table01", "waflash/figure01"],
    "amf-quick": ["amf/figure01", "amf/figure08", "amf/table02", "--quick"],
}

# Of a page: figures with their charts (title, names of series, marks), whether they have pictures, and how wide it is.
READ = """(() => {
    const chart = (element) => {
        const option = echarts.getInstanceByDom(element).getOption();
        const marks = option.series.filter((one) => one.type === "custom");
        return {
            title: element.parentElement.querySelector("h3").textContent,
            series: option.series.filter((one) => one.type !== "custom").map((one) => one.name),
            kinds: [...new Set(option.series.map((one) => one.type))].filter((kind) => kind !== "custom"),
            marks: marks.flatMap((one) => one.data.map((mark) => mark.slice(1, 3))),
            axes: [option.xAxis[0].name, option.yAxis[0].name],
            empty: element.querySelectorAll("svg path").length === 0,
            covered: covered([...element.querySelectorAll("svg text")]),
            texts: [...element.querySelectorAll("svg text")].map((text) => text.textContent),
        };
    };
    // Pairs of texts that lie on one another. Turned ones are the names on x: they are as far apart as their lines are high.
    const covered = (texts) => {
        const [turned, upright] = [[], []];
        for (const text of texts) {
            const { a, b } = text.getScreenCTM();
            const sine = Math.abs(b) / Math.hypot(a, b);
            if (sine < 0.01) upright.push(text);
            else if (sine < 0.99) turned.push({ text, sine });
        }
        const found = [];
        const boxes = upright.map((text) => ({ text: text.textContent, box: text.getBoundingClientRect() }));
        boxes.forEach((one, index) => boxes.slice(index + 1).forEach((other) => {
            const width = Math.min(one.box.right, other.box.right) - Math.max(one.box.left, other.box.left);
            const height = Math.min(one.box.bottom, other.box.bottom) - Math.max(one.box.top, other.box.top);
            if (width > 1 && height > 3) found.push(`${one.text} / ${other.text}`);
        }));
        turned.slice(1).forEach(({ text, sine }, index) => {
            const apart = (text.getBoundingClientRect().right - turned[index].text.getBoundingClientRect().right) * sine;
            if (apart < 10) found.push(`${turned[index].text.textContent} / ${text.textContent}`);
        });
        return found;
    };
    const cards = [...document.querySelectorAll("main > section.card")];
    return {
        order: cards.map((card) => card.id),
        headline: document.querySelector("#verdict h2")?.textContent ?? null,
        reasons: document.querySelectorAll("#verdict li").length,
        figures: Object.fromEntries(cards.filter((card) => !["verdict", "inputs"].includes(card.id)).map((card) => [card.id, {
            charts: [...card.querySelectorAll(".chart")].map(chart), pictures: card.querySelectorAll("svg.picture").length, places: card.querySelectorAll(".charts").length,
        }])),
        width: document.documentElement.scrollWidth,
        rows: Math.max(0, ...[...document.querySelectorAll("tbody tr")].map((row) => row.offsetHeight)),
        back: getComputedStyle(document.body).backgroundColor,
    };
})()"""


def make(ssdlab, name, scratch):
    """Makes a page; gives its path and what it was made of."""
    folder = scratch / name
    command = [ssdlab, "reproduce", *PAGES[name], "--out", folder, "--quiet"]
    made = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    if made.returncode != 0:
        raise RuntimeError(f"`ssdlab reproduce {' '.join(PAGES[name])}` ended with {made.returncode}: {made.stderr.strip()}")
    return folder / "report.html", json.loads((folder / "report.json").read_text(encoding="utf-8"))


def readable(name, found, width):
    """What of a figure's charts cannot be read at a width: texts that lie on one another, and names that the legend leaves out."""
    wrong = []
    for chart in found["charts"]:
        of = f"{name}, '{chart['title']}', {width} pixels wide"
        wrong += [f"{of}: one text lies on another: {pair}" for pair in chart["covered"]]
        wrong += [f"{of}: the legend does not show '{series}'" for series in chart["series"] if series not in chart["texts"]]
    return wrong


def figure(name, stated, found):
    """What is wrong with a figure of the page."""
    wrong = []
    panels, curves = stated["panels"], stated["curves"]
    titles = [chart["title"] for chart in found["charts"]]
    if titles != [one["title"] for one in panels + curves]:
        wrong.append(f"{name}: found the charts {titles}, expected one for each of {[one['title'] for one in panels + curves]}")
        return wrong
    if bool(found["places"]) != bool(panels or curves) or found["pictures"] != len(stated["pictures"]):
        wrong.append(f"{name}: {found['places']} places for charts and {found['pictures']} pictures of {len(stated['pictures'])}")
    for panel, chart in zip(panels, found["charts"]):
        of = f"{name}, '{panel['title']}'"
        if chart["series"] != [one["name"] for one in panel["series"]]:
            wrong.append(f"{of}: series {chart['series']}, expected {[one['name'] for one in panel['series']]}")
        if chart["kinds"] != ["bar" if panel["scale"] == "names" else "line"]:
            wrong.append(f"{of}: drawn as {chart['kinds']}, its x is {panel['scale']}")
        if chart["axes"] != [panel["x"], panel["y"]]:
            wrong.append(f"{of}: axes {chart['axes']}, expected {[panel['x'], panel['y']]}")
        said = [value["published"] for one in panel["series"] for value in one["values"] if "published" in value]
        ends = [[span["low"], span["high"]] for span in said]
        if [[end if isinstance(end, (int, float)) else None for end in mark] for mark in chart["marks"]] != ends:
            wrong.append(f"{of}: marks {chart['marks']}, expected {ends}")
        if not chart["title"] or chart["title"] == "values" or chart["empty"]:
            wrong.append(f"{of}: a chart without a title, or with nothing in it")
    return wrong


def look(chromium, page, report):
    """What is wrong with a page, as sentences."""
    wrong = []
    chromium.open(page)
    wrong += [f"the browser says: {said}" for said in chromium.complaints()]
    found = chromium.run(READ)
    verdict = report["verdict"]
    if verdict["judged"] and (found["order"][0] != "verdict" or not found["headline"].startswith(f"{verdict['within']} of {verdict['judged']} published values within")):
        wrong.append(f"the page begins with {found['order'][0]}, '{found['headline']}', expected {verdict['within']} of {verdict['judged']} values")
    if found["reasons"] != len(verdict["outside"]):
        wrong.append(f"{found['reasons']} lines say what is outside, expected {len(verdict['outside'])}")
    for stated in report["figures"]:
        wrong += figure(stated["id"], stated, found["figures"][stated["id"]])
    chromium.open(page, width=390, mobile=True)
    narrow = chromium.run(READ)
    for width, at in ((1400, found), (390, narrow)):
        for name, of_figure in at["figures"].items():
            wrong += readable(name, of_figure, width)
    if narrow["width"] > 390:
        wrong.append(f"on a phone of 390 pixels the page is {narrow['width']} wide")
    if narrow["rows"] > 130:
        wrong.append(f"on a phone a table's row is {narrow['rows']} pixels high: its sentences break after each word")
    chromium.open(page, dark=True)
    if chromium.run(READ)["back"] == found["back"]:
        wrong.append("a dark page is as light as a light one")
    return wrong


def expected(report):
    """What the pages of this test are there for: that they have it."""
    wrong = []
    by_id = {one["id"]: one for one in report["figures"]}
    marks = sum("published" in value for one in report["figures"] for panel in one["panels"] for series in panel["series"] for value in series["values"])
    for table in [one for name, one in by_id.items() if name.startswith(("table", "section"))]:
        if table["panels"] or not table["points"]:
            wrong.append(f"{table['id']}: a table with {len(table['panels'])} panels and {len(table['points'])} values")
    if report["paper"] == "waflash" and marks == 0:
        wrong.append("no value of Figure 1 has the paper's beside it")
    if report["paper"] == "shrd" and [panel["scale"] for panel in by_id["figure07"]["panels"]] != ["log", "log", "log", "names"]:
        wrong.append("Figure 7 is not lines over the size of the cache")
    return wrong


def run(ssdlab, chromium, scratch):
    """What is wrong with each page, by name."""
    results = {}
    for name in PAGES:
        try:
            page, report = make(ssdlab, name, scratch)
            results[name] = look(chromium, page, report) + expected(report)
        except (IndexError, KeyError, RuntimeError, TypeError, ValueError) as error:
            results[name] = [f"{type(error).__name__}: {error}"]
    return results
