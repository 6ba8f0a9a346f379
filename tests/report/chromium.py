#!/usr/bin/env python3
"""Loads report.html in headless Chromium and finds its charts drawn, without a script error and without a request.

    tests/report/chromium.py target/release/ssdlab [REPORT.html ...]

Makes a report of every sample result with `ssdlab report`, and also looks at the reports named. Where Chromium is not
installed it says so and ends well (status 0); with SSDLAB_REQUIRE_CHROMIUM=1 it fails instead. Python 3.11, no packages.
"""

import html.parser
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import samples  # noqa: E402

NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome", "chrome")
INSTALL = "install it (Debian, Ubuntu: apt-get install chromium) to run the report's test"


class Body(html.parser.HTMLParser):
    """The first <body>'s attributes: the page's own account of itself."""

    def __init__(self):
        super().__init__()
        self.attributes = None

    def handle_starttag(self, tag, attributes):
        if tag == "body" and self.attributes is None:
            self.attributes = dict(attributes)


def load(browser, page, scratch):
    """The page's DOM after its scripts ran, and what the browser complained of."""
    command = [
        browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
        # Any request that the page made in spite of its policy would have to fail.
        "--host-resolver-rules=MAP * ~NOTFOUND", f"--user-data-dir={scratch}",
        "--enable-logging=stderr", "--v=0", "--window-size=1400,2600", "--dump-dom", page.as_uri(),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    console = [line for line in done.stderr.splitlines() if ":CONSOLE" in line]
    return done.stdout, console


def look(browser, page, scratch, charts=None, empty=None):
    """What is wrong with the page, as sentences."""
    dom, console = load(browser, page, scratch)
    parser = Body()
    parser.feed(dom)
    body = parser.attributes or {}
    number = {key: int(body.get(f"data-{key}", "-1")) for key in ("charts", "charts-drawn", "charts-empty", "script-errors")}
    wrong = [f"the browser's console says: {line}" for line in console]
    if number["script-errors"] != 0:
        wrong.append(f"expected no script error, found {number['script-errors']} (-1: the script did not start)")
    if number["charts"] < 1 or number["charts-drawn"] != number["charts"]:
        wrong.append(f"{number['charts-drawn']} of {number['charts']} charts are drawn (-1: the script did not end)")
    if charts is not None and number["charts"] != charts:
        wrong.append(f"expected {charts} charts, found {number['charts']}")
    if empty is not None and number["charts-empty"] != empty:
        wrong.append(f"expected {empty} charts that say why they are empty, found {number['charts-empty']}")
    if "data-broken" in body:
        wrong.append("a name from the result ran as a script")
    return wrong + look_at_text(dom)


def look_at_text(dom):
    """Whether labels can be read, and where the axis of latencies begins."""
    wrong = []
    labels = re.findall(r'<text[^>]*translate\(([\d.]+) ([\d.]+)\)[^>]*>theory [\d.]+</text>', dom)
    heights = sorted(float(height) for _, height in labels)
    if any(after - before < 12 for before, after in zip(heights, heights[1:])):
        wrong.append(f"labels of theory lie on one another, at heights {heights}")
    if re.search(r">(1|10|100) ns</text>", dom):
        wrong.append("the axis of latencies begins at nanoseconds, where no request of the samples is")
    return wrong


def main(arguments):
    if not arguments:
        print(__doc__.strip(), file=sys.stderr)
        return 2
    ssdlab, *reports = [pathlib.Path(argument).resolve() for argument in arguments]
    browser = next(filter(None, map(shutil.which, NAMES)), None)
    if browser is None:
        print(f"report: SKIPPED, no Chromium found; {INSTALL}")
        return 1 if os.environ.get("SSDLAB_REQUIRE_CHROMIUM") == "1" else 0
    passed, failed = 0, 0
    with tempfile.TemporaryDirectory(prefix="ssdlab-report-", ignore_cleanup_errors=True) as scratch:
        scratch = pathlib.Path(scratch)
        pages = [(report.name, report, None, None) for report in reports]
        for name, (result, charts, empty) in samples.samples().items():
            folder = scratch / name
            folder.mkdir()
            (folder / "result.json").write_text(json.dumps(result), encoding="utf-8")
            made = subprocess.run([ssdlab, "report", folder], capture_output=True, text=True, timeout=60, check=False)
            if made.returncode != 0:
                print(f"report {name}: FAILED, `ssdlab report` ended with {made.returncode}: {made.stderr.strip()}")
                failed += 1
                continue
            pages.append((name, folder / "report.html", charts, empty))
        for name, page, charts, empty in pages:
            wrong = look(browser, page, scratch / "browser", charts, empty)
            for sentence in wrong:
                print(f"report {name}: FAILED, {sentence}")
            passed, failed = passed + (not wrong), failed + bool(wrong)
    print(f"report in Chromium: {passed} passed; {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
