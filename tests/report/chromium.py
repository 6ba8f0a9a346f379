#!/usr/bin/env python3
"""Loads report.html in headless Chromium: its charts are drawn without a script error and without a request, and what a
reader does with them works.

    tests/report/chromium.py target/release/ssdlab [REPORT.html ...]

Makes a report of every sample result with `ssdlab report`, and some reproductions; with reports named it looks at these instead of
the reproductions. Where Chromium is not
installed it says so and ends well (status 0); with SSDLAB_REQUIRE_CHROMIUM=1 it fails instead. Python 3.11, no packages.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import browser  # noqa: E402
import probes  # noqa: E402
import reproductions  # noqa: E402
import samples  # noqa: E402

INSTALL = "install it (Debian, Ubuntu: apt-get install chromium) to run the report's test"


def look(chromium, page, charts=None, empty=None):
    """What is wrong with the page, as sentences."""
    chromium.open(page)
    body = chromium.run("({...document.body.dataset})")
    keys = {"charts": "charts", "charts-drawn": "chartsDrawn", "charts-empty": "chartsEmpty", "script-errors": "scriptErrors"}
    number = {name: int(body.get(key, "-1")) for name, key in keys.items()}
    wrong = [f"the browser says: {said}" for said in chromium.complaints()]
    if number["script-errors"] != 0:
        wrong.append(f"expected no script error, found {number['script-errors']} (-1: the script did not start)")
    if number["charts"] < 1 or number["charts-drawn"] != number["charts"]:
        wrong.append(f"{number['charts-drawn']} of {number['charts']} charts are drawn (-1: the script did not end)")
    if charts is not None and number["charts"] != charts:
        wrong.append(f"expected {charts} charts, found {number['charts']}")
    if empty is not None and number["charts-empty"] != empty:
        wrong.append(f"expected {empty} charts that say why they are empty, found {number['charts-empty']}")
    if "broken" in body:
        wrong.append("a name from the result ran as a script")
    return wrong + look_at_text(chromium.run("document.documentElement.outerHTML"))


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
    path = browser.found()
    if path is None:
        print(f"report: SKIPPED, no Chromium found; {INSTALL}")
        return 1 if os.environ.get("SSDLAB_REQUIRE_CHROMIUM") == "1" else 0
    passed, failed = 0, 0
    with tempfile.TemporaryDirectory(prefix="ssdlab-report-", ignore_cleanup_errors=True) as scratch:
        scratch = pathlib.Path(scratch)
        pages = [(report.name, report, None, (None, None)) for report in reports]
        for name, (result, *expected) in samples.samples().items():
            folder = scratch / name
            folder.mkdir()
            (folder / "result.json").write_text(json.dumps(result), encoding="utf-8")
            made = subprocess.run([ssdlab, "report", folder], capture_output=True, text=True, timeout=60, check=False)
            if made.returncode != 0:
                print(f"report {name}: FAILED, `ssdlab report` ended with {made.returncode}: {made.stderr.strip()}")
                failed += 1
                continue
            pages.append((name, folder / "report.html", result, expected))
        with browser.Browser(path, scratch / "browser") as chromium:
            for name, page, result, expected in pages:
                wrong = look(chromium, page, *expected)
                if result is not None:
                    for probe in probes.PROBES.get(name, []):
                        chromium.open(page)
                        try:
                            found = probe(chromium, page, result)
                        except (IndexError, KeyError, RuntimeError, TypeError, ValueError) as error:
                            # What a probe reads is not there, or in another form.
                            found = [f"{type(error).__name__}: {error}"]
                        wrong += [f"{probe.__name__}: {sentence}" for sentence in found]
                for sentence in wrong:
                    print(f"report {name}: FAILED, {sentence}")
                passed, failed = passed + (not wrong), failed + bool(wrong)
            for name, wrong in ({} if reports else reproductions.run(ssdlab, chromium, scratch)).items():
                for sentence in wrong:
                    print(f"reproduction {name}: FAILED, {sentence}")
                passed, failed = passed + (not wrong), failed + bool(wrong)
    print(f"report in Chromium: {passed} passed; {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
