"""Figure 17 of WAFLASH on served drives: the way it goes, with tiny files and short turns."""

import json
import pathlib

from attach import need_attach
from harness import check, need

PERSONALITIES = ("Random Write", "Fileserver", "Webserver", "Webproxy")
QUICK = ("reproduce", "waflash/figure17-live", "--quick", "--out")


def test_personalities_in_turns(bench):
    """All four run on both drives, through the page cache and past it, and nothing is left behind."""
    need_attach("ext4")
    report = json.loads(bench.run(bench.ssdlab, *QUICK, bench.path("out"), "--json", "--quiet", timeout=240))
    points = report["figures"][0]["points"]
    rates = {
        (point["workload"], point["setting"], point["series"]): point["value"]
        for point in points if point["unit"] == "operations/s"
    }
    wanted = {
        (workload, setting, series)
        for workload in PERSONALITIES for setting in ("page cache", "direct I/O") for series in ("Baseline", "WAFLASH")
    }
    check(set(rates) == wanted, f"measured were {sorted(rates)}")
    check(all(rate > 0 for rate in rates.values()), f"some did nothing: {rates}")
    left = [path.name for path in bench.path("out").iterdir()]
    check(left == ["figure17-live"], f"left behind: {left}")
    mounts = pathlib.Path("/proc/self/mounts").read_text()
    check(str(bench.folder) not in mounts, f"still mounted: {mounts}")


def test_without_root(bench):
    """Who may not mount is told so, with status 2, and nothing is left."""
    need_attach("ext4")
    need(setpriv="util-linux")
    out = bench.path("out")
    out.mkdir()
    out.chmod(0o777)
    bench.folder.chmod(0o755)
    program = bench.path("ssdlab")
    program.write_bytes(bench.ssdlab.read_bytes())
    program.chmod(0o755)
    done = bench.attempt(
        "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", program, *QUICK, out, "--quiet",
        env={"XDG_RUNTIME_DIR": str(out), "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"},
    )
    check(done.returncode == 2, f"expected status 2, found {done.returncode}: {done.stderr}")
    check("root" in done.stderr and "panicked" not in done.stderr, f"not a reason: {done.stderr}")
    left = [path.name for path in out.iterdir() if path.name.startswith("live-")]
    check(not left, f"left behind: {left}")
