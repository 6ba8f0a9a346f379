"""What a reader does with a report: points at charts, zooms, saves, sorts, copies, changes the theme. Each probe is given a
browser with the page open and the result that the page was made of, and says what is wrong, as sentences."""

import base64
import csv
import io
import json
import re
import shlex
import time

# What a page cannot do with a file is taken from it here: the blobs that it saves.
CATCH = """
window.saved = [];
const made = URL.createObjectURL;
URL.createObjectURL = (blob) => { saved.push(blob); return made.call(URL, blob); };
HTMLAnchorElement.prototype.click = function () { saved.at(-1).named = this.download; };
0"""


def of_chart(browser, chart, script):
    """The value of an expression about a chart: `chart`, its `element` and its `option`."""
    return browser.run(f"""(() => {{
        const element = document.getElementById({json.dumps(chart)});
        const chart = echarts.getInstanceByDom(element);
        const option = chart?.getOption();
        return {script};
    }})()""")


def press(browser, chart, label):
    """Presses a button of a chart."""
    browser.run(f"""[...document.querySelectorAll('[data-for="{chart}"] button')].find((one) => one.textContent === {json.dumps(label)}).click()""")


def grid(browser, chart):
    """Where a chart's axes are on the screen: left, top, width and height."""
    browser.run(f"document.getElementById({json.dumps(chart)}).scrollIntoView({{ block: 'center' }})")
    return of_chart(browser, chart, """(() => {
        const box = element.getBoundingClientRect();
        const { left, right, top, bottom } = option.grid[0];
        return [box.x + left, box.y + top, box.width - left - right, box.height - top - bottom];
    })()""")


def tooltip(browser, chart, x, y):
    """The lines of the tooltip at a place that is given as shares of the chart's axes."""
    left, top, width, height = grid(browser, chart)
    browser.move(left + 1, top + 1)
    browser.move(left + x * width, top + y * height)
    return of_chart(browser, chart, """[...element.children].filter((one) => one !== element.firstElementChild && one.style.visibility !== "hidden" && one.style.opacity !== "0")
        .flatMap((one) => one.innerText.split("\\n")).map((line) => line.trim())""")


def labels(browser, chart, axis):
    """The labels of an axis, in order, as the page shows them: those left of the grid, or those below it."""
    here = "x < left && y < height - bottom + 6" if axis == "y" else "x >= left - 20 && y > height - 40"
    found = of_chart(browser, chart, f"""(() => {{
        const {{ left, bottom }} = option.grid[0];
        const box = element.getBoundingClientRect();
        const height = box.height;
        return [...element.querySelectorAll("svg text")].map((text) => {{ const at = text.getBoundingClientRect(); return [text.textContent, at.x - box.x, at.y - box.y + at.height / 2]; }})
            .filter(([, x, y]) => {here}).map(([text, x, y]) => [text, {'-y' if axis == 'y' else 'x'}]).sort((a, b) => a[1] - b[1]).map(([text]) => text);
    }})()""")
    return [text for text in found if re.match(r"^[\d.]+( |$)", text)]


def number(text):
    units = {"": 1, "k": 1e3, "M": 1e6, "G": 1e9, "%": 0.01, "ns": 1, "µs": 1e3, "ms": 1e6, "s": 1e9, "B/s": 1, "kB/s": 1e3, "MB/s": 1e6, "GB/s": 1e9}
    value, _, unit = text.partition(" ")
    return float(value) * units[unit]


def round_ticks(texts):
    """Whether an axis's labels are evenly spaced, by a round step, with one number of digits."""
    values = [number(text) for text in texts]
    gaps = {f"{after - before:.6g}" for before, after in zip(values, values[1:])}
    digits = {len(text.split(" ")[0].partition(".")[2]) for text in texts if number(text) != 0}
    is_round = len(gaps) == 1 and f"{float(next(iter(gaps))):e}"[0] in "125" and set(f"{float(next(iter(gaps))):e}"[1:].split("e")[0]) <= set(".0")
    return [] if is_round and len(digits) == 1 else [f"an axis is labelled {texts}"]


def tooltips_of_time(browser, _, result):
    """A tooltip names all drives, also those whose intervals have another length, with the value of their own interval."""
    wrong = []
    for chart in ("throughput", "write-amplification", "latency-time"):
        press(browser, chart, "Intervals")
        for x in (0.03, 0.11, 0.27, 0.414, 0.53, 0.63, 0.781):
            lines = tooltip(browser, chart, x, 0.5)
            for drive in result["devices"]:
                if not any(line.startswith(drive["name"]) and re.search(r" [\d.]+( \S+)?$", line) for line in lines):
                    wrong.append(f"the tooltip of {chart} at {x} has no value of {drive['name']}: {lines}")
    lines = tooltip(browser, "write-amplification", 0.27, 0.5)
    left, _, width, _ = grid(browser, "write-amplification")
    at = of_chart(browser, "write-amplification", f"chart.convertFromPixel({{ xAxisIndex: 0 }}, option.grid[0].left + {0.27 * width})") * 1e9
    for drive in result["devices"]:
        line = drive["timeline"]
        nearest = min(range(1, 199), key=lambda place: abs(line["time_ns"][place] - at))
        expected = line["write_amplification"][nearest]
        if not any(text == f"{drive['name']} {expected:.3f}" for text in lines):
            wrong.append(f"the tooltip does not say that {drive['name']} has {expected:.3f} at {at / 1e9:.3f} s: {lines}")
    return wrong


def tooltips_of_latency(browser, _, result):
    """A tooltip names all drives with their latency at the quantile that is pointed at."""
    wrong = []
    for y in (0.08, 0.31, 0.52, 0.77, 0.95):
        lines = tooltip(browser, "latency-cdf", 0.3, y)
        _, _, _, height = grid(browser, "latency-cdf")
        tail = of_chart(browser, "latency-cdf", f"chart.convertFromPixel({{ yAxisIndex: 0 }}, option.grid[0].top + {y * height})")
        for drive in result["devices"]:
            cdf = drive["latency_cdf"]["all"]
            expected = [next(at for at, share in zip(cdf["latency_ns"], cdf["fraction"]) if 1 - share <= tail * factor) for factor in (1.08, 0.92)]
            found = [number(line.removeprefix(f"{drive['name']} ")) for line in lines if line.startswith(drive["name"])]
            if len(found) != 1 or not 0.99 * expected[0] <= found[0] <= 1.01 * expected[1]:
                wrong.append(f"at a tail of {tail:.3g} {drive['name']} has {expected} ns, the tooltip says {lines}")
    return wrong


def axes_of_latency(browser, _, result):
    """Below two decades of latency 2 and 5 have labels; the quantiles end where one request is left."""
    wrong = []
    found = labels(browser, "latency-cdf", "x")
    cdfs = [drive["latency_cdf"]["all"]["latency_ns"] for drive in result["devices"]]
    spread = max(max(cdf) for cdf in cdfs) / min(min(cdf) for cdf in cdfs)
    marks = {f"{number(text):e}"[0] for text in found}
    if spread < 20 and not {"2", "5"} <= marks:
        wrong.append(f"latencies whose slowest is {spread:.3g} times the fastest are labelled {found}")
    count = max(drive["latency_ns"]["all"]["count"] for drive in result["devices"])
    top = labels(browser, "latency-cdf", "y")[-1]
    if abs(float(top.split(" ")[0]) / 100 - (1 - 1 / count)) > 0.05 / count:
        wrong.append(f"the quantiles of {count} requests end at {top}")
    return wrong


def axes_of_time(browser, _, result):
    """The axis fits 99 % of the bytes, what is beyond has a mark with its value, and short intervals at the ends are left out."""
    wrong = []
    smoothed = browser.run("""["throughput", "write-amplification", "latency-time"].map((chart) => document.querySelector(`[data-for="${chart}"] button[aria-pressed="true"]`).textContent)""")
    if smoothed != ["Smoothed"] * 3:
        wrong.append(f"charts over time begin with {smoothed}")
    press(browser, "write-amplification", "Intervals")
    press(browser, "throughput", "Intervals")
    for chart in ("throughput", "write-amplification", "latency-time"):
        wrong += round_ticks(labels(browser, chart, "y"))
    top = of_chart(browser, "write-amplification", "option.yAxis[0].max")
    if top > 12:
        wrong.append(f"the axis of write amplification reaches {top}")
    marks = of_chart(browser, "write-amplification", """option.series.map((series) => series.markPoint.data.filter((mark) => mark.label.show).map((mark) => mark.label.formatter))""")
    texts = of_chart(browser, "write-amplification", """[...element.querySelectorAll("svg text")].map((text) => text.textContent)""")
    expected = [[f"{drive['timeline']['write_amplification'][100]:.0f}"] for drive in result["devices"]]
    if marks != expected or not all(mark[0] in texts for mark in marks):
        wrong.append(f"expected the values {expected} at marks, found {marks}, and in the picture {texts}")
    for drive, ends in zip(result["devices"], of_chart(browser, "throughput", "option.series.map(({ data }) => [data[0][0], data.at(-1)[0]])")):
        times = drive["timeline"]["time_ns"]
        if [round(end * 1e9) for end in ends] != [times[1], times[-2]]:
            wrong.append(f"{drive['name']} is drawn from {ends[0]} s to {ends[1]} s, its whole intervals end from {times[1]} to {times[-2]} ns")
    return wrong


def digits(browser, _, __):
    """All numbers of a chart have one number of digits: ticks have their own, values theirs."""
    wrong = []
    for chart in ("throughput", "write-amplification", "latency-time", "wear"):
        wrong += round_ticks(labels(browser, chart, "y"))
        wrong += round_ticks(labels(browser, chart, "x"))
    theories = of_chart(browser, "write-amplification", """[...element.querySelectorAll("svg text")].map((text) => text.textContent).filter((text) => text.startsWith("theory"))""")
    values = [line.rpartition(" ")[2] for line in tooltip(browser, "write-amplification", 0.5, 0.5)[1:]]
    found = {len(text.rpartition(" ")[2].partition(".")[2]) for text in theories + values}
    if not theories or not values or len(found) != 1:
        wrong.append(f"theory is {theories}, the tooltip says {values}")
    return wrong


def zoom(browser, _, result):
    """Dragging chooses a part of the time, to which the y axis fits; a double click shows all again."""
    wrong = []
    press(browser, "throughput", "Intervals")
    shown = "[chart.convertFromPixel({ xAxisIndex: 0 }, option.grid[0].left), chart.convertFromPixel({ xAxisIndex: 0 }, element.clientWidth - option.grid[0].right)]"
    before = of_chart(browser, "throughput", shown)
    left, top, width, height = grid(browser, "throughput")
    browser.drag((left + 0.2 * width, top + 0.3 * height), (left + 0.4 * width, top + 0.6 * height))
    after = of_chart(browser, "throughput", shown)
    expected = [before[0] + share * (before[1] - before[0]) for share in (0.2, 0.4)]
    if any(abs(a - b) > 0.02 * before[1] for a, b in zip(after, expected)):
        wrong.append(f"after dragging over 20 % to 40 % of {before} the axis is {after}")
    texts = labels(browser, "throughput", "x")
    wrong += round_ticks(texts)
    if len(texts) < 3 or not all(after[0] - 0.1 <= number(text) <= after[1] + 0.1 for text in texts):
        wrong.append(f"the axis of {after} is labelled {texts}")
    browser.click(left + 0.3 * width, top + 0.5 * height)
    browser.click(left + 0.3 * width, top + 0.5 * height, count=2)
    again = of_chart(browser, "throughput", shown)
    if any(abs(a - b) > 1e-6 * before[1] for a, b in zip(again, before)):
        wrong.append(f"a double click leaves {again} of {before}")
    return wrong


def save(browser, chart, kind):
    """What a chart's menu saves: the file's name and its bytes."""
    browser.run(f"""[...document.getElementById({json.dumps(chart)}).closest("section").querySelectorAll(".save button")].find((one) => one.textContent === "{kind}").click()""")
    name, data = browser.run("""new Promise((done) => { const reader = new FileReader(); reader.onload = () => done([saved.at(-1).named, reader.result]); reader.readAsDataURL(saved.at(-1)); })""")
    return name, base64.b64decode(data.partition(",")[2])


def saving(browser, _, result):
    """CSV has every point that is drawn; PNG and SVG are pictures of the chart."""
    wrong = []
    browser.run(CATCH)
    press(browser, "write-amplification", "Intervals")
    name, text = save(browser, "write-amplification", "CSV")
    rows = list(csv.DictReader(io.StringIO(text.decode())))
    expected = [
        (drive["name"], at / 1e9, value)
        for drive in result["devices"]
        for at, value in list(zip(drive["timeline"]["time_ns"], drive["timeline"]["write_amplification"]))[1:-1]
    ]
    found = [(row["drive"], float(row["virtual_time_s"]), float(row["write_amplification"]) if row["write_amplification"] else None) for row in rows]
    if name != "ssdlab-write-amplification.csv" or len(found) != len(expected):
        wrong.append(f"expected {len(expected)} rows, found {len(found)} in {name}")
    else:
        different = [pair for pair in zip(found, expected) if pair[0][0] != pair[1][0] or abs(pair[0][1] - pair[1][1]) > 1e-9 or pair[0][2] != pair[1][2]]
        if different:
            wrong.append(f"{len(different)} rows differ, the first: {different[0]}")
    rows = list(csv.reader(io.StringIO(save(browser, "latency-cdf", "CSV")[1].decode())))
    cdf = [(drive["name"], at, share) for drive in result["devices"] for at, share in zip(drive["latency_cdf"]["all"]["latency_ns"], drive["latency_cdf"]["all"]["fraction"])]
    if rows[0] != ["drive", "latency_ns", "fraction"] or [(name, int(at), float(share)) for name, at, share in rows[1:]] != cdf:
        wrong.append("the CSV of latencies is not the distribution of the result")
    rows = list(csv.reader(io.StringIO(save(browser, "causes", "CSV")[1].decode())))
    bars = {(row, cause.split(" ")[0].lower()): float(value) for row, cause, value in rows[1:]}
    for drive in result["devices"]:
        if bars.get((drive["name"], "host")) != drive["write_amplification"]["by_cause"]["host"]:
            wrong.append(f"the CSV of causes has {bars}")
    name, picture = save(browser, "write-amplification", "SVG")
    if not name.endswith(".svg") or b"<svg" not in picture or b"virtual time" not in picture or b"theory" not in picture:
        wrong.append(f"{name} is no picture of the chart: {picture[:80]}")
    name, picture = save(browser, "write-amplification", "PNG")
    size = of_chart(browser, "write-amplification", "[element.clientWidth, element.clientHeight]")
    found = [int.from_bytes(picture[at:at + 4], "big") for at in (16, 20)]
    if not picture.startswith(b"\x89PNG") or found != [2 * side for side in size] or len(picture) < 10_000:
        wrong.append(f"{name} has {len(picture)} bytes and {found} pixels, the chart {size}")
    return wrong


def sorting(browser, _, result):
    """A click on a head of the headline sorts by it: greatest first, least first, as it was."""
    wrong = []
    def names():
        return browser.run("""[...document.querySelectorAll("#headline tbody tr")].map((row) => row.cells[0].textContent)""")
    original = [drive["name"] for drive in result["devices"]]
    keys = {
        "Write amplification": lambda drive: drive["write_amplification"]["total"],
        "Requests a second": lambda drive: drive["throughput"]["iops"],
        "Read latency, p99.9": lambda drive: drive["latency_ns"]["read"]["p999"],
    }
    for head, key in keys.items():
        values = {drive["name"]: key(drive) for drive in result["devices"]}
        for order in ("descending", "ascending", None):
            browser.run(f"""document.querySelector('#headline th[data-metric="{head}"] button').click()""")
            found = names()
            expected = original if order is None else sorted(values.values(), reverse=order == "descending")
            if (found if order is None else [values[name] for name in found]) != expected or sorted(found) != sorted(original):
                wrong.append(f"by {head}, {order}: {found}")
            said = browser.run(f"""document.querySelector('#headline th[data-metric="{head}"]').getAttribute("aria-sort")""")
            if said != order:
                wrong.append(f"by {head} the head says {said}, expected {order}")
    # A drive that theory says nothing of stands last, either way.
    for _ in range(2):
        browser.run("""document.querySelector('#headline th[data-metric="Write amplification by theory"] button').click()""")
        known = {drive["name"] for drive in result["devices"] if drive["theory"]}
        if set(names()[:len(known)]) != known:
            wrong.append(f"by theory, which {known} have: {names()}")
    return wrong


def copying(browser, _, result):
    """The button copies the command as a shell reads it."""
    browser.run("""document.querySelector(".command button").click()""")
    time.sleep(0.1)
    found = browser.run("navigator.clipboard.readText()")
    header = browser.run("""document.querySelector("header").innerText""")
    wrong = [] if result["wall_started"] in header else [f"the date is not in {header}"]
    return wrong if shlex.split(found) == result["command"] else wrong + [f"copied {found!r}, the command is {result['command']}"]


def themes(browser, page, _):
    """Light and dark whatever the system has, and as the system has it; charts too."""
    wrong = []
    def looks():
        return browser.run("""[getComputedStyle(document.body).backgroundColor, document.querySelector("#latency-cdf svg text").getAttribute("fill")].join()""")
    def choose(theme):
        browser.run(f"""[...document.querySelectorAll("#theme button")].find((one) => one.textContent === "{theme}").click()""")
    light = looks()
    choose("Dark")
    dark = looks()
    if any(a == b for a, b in zip(light.split("),"), dark.split("),"))):
        wrong.append(f"light is {light}, dark is {dark}")
    choose("Auto")
    if looks() != light:
        wrong.append(f"auto on a light system is {looks()}")
    browser.prefer("dark")
    time.sleep(0.1)
    if looks() != dark:
        wrong.append(f"auto on a dark system is {looks()}")
    choose("Light")
    if looks() != light:
        wrong.append(f"light on a dark system is {looks()}")
    browser.open(page, dark=True)
    if looks() != dark:
        wrong.append(f"a dark system begins with {looks()}")
    return wrong


def switching(browser, _, result):
    """A drive's name shows and hides it in all charts; of many drives no curve is drawn at first."""
    wrong = []
    many = len(result["devices"]) > 8
    def drawn(chart):
        return of_chart(browser, chart, """(option?.series ?? []).map(({ name }) => name).filter((name) => option.legend[0].selected[name] !== false)""")
    def toggle(index):
        browser.run(f"""document.querySelector('#headline tr[data-drive="{index}"] td.name button').click()""")
    names = [drive["name"] for drive in result["devices"]]
    chosen = [] if many else names
    for index in (None, 1, 2, 1):
        if index is not None:
            toggle(index)
            chosen = [name for at, name in enumerate(names) if (name in chosen) != (at == index)]
        for chart in ("latency-cdf", "throughput", "write-amplification", "latency-time", "wear"):
            if sorted(drawn(chart)) != sorted(chosen):
                wrong.append(f"{chart} draws {drawn(chart)}, expected {chosen}")
    return wrong


def metric_by_parameter(browser, page, result):
    """A chart of any metric by any parameter that varies: by what differs, or by the overrides where a result has them."""
    wrong = []
    def choose(which, value):
        browser.run(f"""(() => {{ const one = document.querySelectorAll("#picks select")[{which}]; one.value = {json.dumps(value)}; one.dispatchEvent(new Event("change")); }})()""")
    def options(which):
        return browser.run(f"""[...document.querySelectorAll("#picks select")[{which}].options].map((one) => one.value)""")
    if options(1) != ["buffer.size", "capacity.over_provisioning", "gc.victim"]:
        wrong.append(f"parameters are {options(1)}")
    choose(0, "Write latency, p99")
    choose(1, "capacity.over_provisioning")
    if labels(browser, "by-parameter", "x") != ["7%", "10%", "14%", "20%", "28%", "40%"]:
        # Labels of a category need not be numbers with a space: read them from the option.
        found = of_chart(browser, "by-parameter", "option.xAxis[0].data")
        if found != ["7%", "10%", "14%", "20%", "28%", "40%"]:
            wrong.append(f"over-provisioning is in the order {found}")
    series = of_chart(browser, "by-parameter", "option.series.map(({ name, data }) => [name, data.map((point) => [point.name, ...point.value])])")
    if len(series) != 6 or any(len(points) != 6 for _, points in series):
        wrong.append(f"expected a line for each of 3 policies and 2 sizes, found {[name for name, _ in series]}")
    drives = {drive["name"]: drive for drive in result["devices"]}
    for line, points in series:
        for name, over, value in points:
            own = drives[name]["configuration"]
            if drives[name]["latency_ns"]["write"]["p99"] != value or own["capacity"]["over_provisioning"] != over or line != f"buffer.size {own['buffer']['size']}, gc.victim {own['gc']['victim']}":
                wrong.append(f"{name} is in the line {line} at {over} with {value}")
    wrong += round_ticks(labels(browser, "by-parameter", "y"))
    # As a sweep leaves it: what the command line varied stands in each drive's entry.
    text = page.read_text(encoding="utf-8")
    before, element, rest = text.partition('<script type="application/json" id="result">')
    embedded, end, after = rest.partition("</script>")
    run = json.loads(embedded)
    for index, drive in enumerate(run["devices"]):
        drive["overrides"] = {"gc.window": index % 4, "gc.victim": drive["configuration"]["gc"]["victim"]}
    altered = page.with_name("overrides.html")
    altered.write_text(before + element + json.dumps(run).replace("<", "\\u003c") + end + after, encoding="utf-8")
    browser.open(altered)
    if options(1) != ["gc.window", "gc.victim"]:
        wrong.append(f"with overrides, parameters are {options(1)}")
    return wrong


def on_a_phone(browser, page, _):
    """Nothing scrolls sideways but tables, which show it; the title and what was run break after commas and not inside words."""
    wrong = []
    browser.open(page, width=390, height=900, mobile=True)
    width = browser.run("document.documentElement.scrollWidth")
    if width > 390:
        wrong.append(f"the page is {width} pixels wide")
    broken = browser.run("""(() => {
        const found = [];
        const texts = [...document.querySelectorAll("h1, .facts b")].flatMap((element) => [...element.childNodes]).filter((node) => node.nodeType === Node.TEXT_NODE);
        for (const node of texts) {
            for (const word of node.textContent.matchAll(/[^\\s,]+,?/g)) {
                const range = document.createRange();
                range.setStart(node, word.index);
                range.setEnd(node, word.index + word[0].length);
                const lines = new Set([...range.getClientRects()].map((line) => Math.round(line.y)));
                if (lines.size > 1) found.push(word[0]);
            }
        }
        return found;
    })()""")
    if broken:
        wrong.append(f"the title breaks inside {broken}")
    table = browser.run("""(() => { const table = document.getElementById("headline").parentElement; table.scrollIntoView({ block: "center" }); const box = table.getBoundingClientRect(); const row = document.querySelector("#headline tbody tr").getBoundingClientRect(); return [box.right, row.y + 3 + scrollY, table.scrollWidth, table.clientWidth]; })()""")
    if table[2] <= table[3]:
        wrong.append(f"the headline of {table[2]} pixels does not scroll in {table[3]}")
    def edge():
        picture = base64.b64encode(browser.screenshot(clip={"x": table[0] - 3, "y": table[1], "width": 1, "height": 1})).decode()
        return browser.run(f"""new Promise((done) => {{
            const image = new Image();
            image.onload = () => {{ const canvas = document.createElement("canvas").getContext("2d"); canvas.drawImage(image, 0, 0); done([...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3)); }};
            image.src = "data:image/png;base64,{picture}";
        }})""")
    before = edge()
    browser.run("""document.getElementById("headline").parentElement.scrollLeft = 1e6""")
    time.sleep(0.1)
    after = edge()
    if not sum(before) < sum(after) - 40 or after != [255, 255, 255]:
        wrong.append(f"the edge of the headline is {before} where there is more, and {after} at its end")
    return wrong


def repetitions(browser, _, result):
    """A line joins the means over repetitions; each repetition has a point."""
    browser.run("""(() => { const one = document.querySelectorAll("#picks select")[0]; one.value = "Write latency, p99"; one.dispatchEvent(new Event("change")); })()""")
    series = of_chart(browser, "by-parameter", "option.series.map(({ type, name, data, lineStyle }) => ({ type, name, width: lineStyle?.width, points: data.map((point) => point.value) }))")
    drives = result["devices"]
    wrong = []
    for victim in ("greedy", "fifo"):
        own = [[drive["overrides"]["capacity.over_provisioning"], drive["latency_ns"]["write"]["p99"]] for drive in drives if drive["overrides"]["gc.victim"] == victim]
        means = {over: sum(value for of, value in own if of == over) / 3 for over, _ in own}
        found = {one["type"]: one for one in series if one["name"] == f"gc.victim {victim}"}
        if [over for over, _ in found["line"]["points"]] != list(means) or not found["line"]["width"] or any(abs(value / means[over] - 1) > 1e-9 for over, value in found["line"]["points"]):
            wrong.append(f"the line of {victim} is {found['line']}, expected the means {means}")
        if sorted(found["scatter"]["points"]) != sorted(own):
            wrong.append(f"the points of {victim} are {found['scatter']['points']}, expected {own}")
    return wrong


def long_names(browser, page, result):
    """Names that begin alike are whole in the headline and beside the bars; no card stands empty beside many bars."""
    wrong = []
    for width in (1400, 390):
        browser.open(page, width=width, mobile=width < 500)
        cut = browser.run("""[...document.querySelectorAll("#headline td.name, #headline td.name button")].filter((one) => one.scrollWidth > one.clientWidth).length""")
        if cut > 0:
            wrong.append(f"{width} pixels wide, {cut} names of the headline are cut")
        labels = browser.run("""[...document.querySelectorAll("#causes svg text")].map((one) => one.textContent).join("").replace(/\\s/g, "")""")
        missing = [drive["name"] for drive in result["devices"] if drive["name"].replace(" ", "") not in labels]
        if missing:
            wrong.append(f"{width} pixels wide, beside the bars there is no {missing}")
        hidden = """document.getElementById("wear").closest("section").hidden"""
        if not browser.run(hidden):
            wrong.append("the card of wear is there without a drive in it")
        browser.run("""document.querySelector('#headline tr[data-drive="1"] td.name button').click()""")
        if browser.run(hidden) or browser.run("""document.querySelector("#wear svg") === null"""):
            wrong.append("the wear of a drive that was chosen is not drawn")
    return wrong


def bars_of_drives(browser, _, result):
    """Below layers each drive has a bar, and those of a stack add up to the stack's."""
    wrong = []
    expected = []
    for drive in result["devices"]:
        below = drive["drives"]
        expected.append(f"{drive['name']}, {len(below)} drives together" if below else drive["name"])
        expected += [one["name"] for one in below]
    for button, tolerance in (("Amplification", 1e-3), ("Programs", 20), ("Reads", 20), ("Erases", 20)):
        press(browser, "causes", button)
        names, series = of_chart(browser, "causes", "[option.yAxis[0].data, option.series.map((one) => one.data)]")
        if names != expected:
            return wrong + [f"{button}: the bars are {names}, expected {expected}"]
        lengths = [sum(part) for part in zip(*series)]
        place = 0
        for drive in result["devices"]:
            whole, parts = lengths[place], lengths[place + 1:place + 1 + len(drive["drives"])]
            place += 1 + len(parts)
            told = drive["write_amplification"]["total"]
            if button == "Amplification" and abs(whole - told) > 1e-9:
                wrong.append(f"the bar of {drive['name']} has {whole}, expected {told}")
            if parts and (abs(sum(parts) - whole) > tolerance or min(parts) <= 0):
                wrong.append(f"{button}: the bars {parts} of {drive['name']} do not add up to {whole}")
    return wrong


PROBES = {
    "one": [copying, themes, axes_of_latency],
    "three": [switching, axes_of_latency],
    "alike": [digits],
    "narrow": [axes_of_latency],
    "spiky": [tooltips_of_time, tooltips_of_latency, axes_of_time, zoom, saving],
    "repeated": [repetitions, long_names],
    "stacked": [bars_of_drives],
    "sweep": [sorting, switching, metric_by_parameter, on_a_phone],
}
