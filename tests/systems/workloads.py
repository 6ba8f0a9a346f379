"""Random workloads: fio's options as a line or a job file, and traces with every operation.

A workload is `{"jobs": [{key: value}, ...]}`, `{"lines": [...]}` or `{"text": ...}`.
"""

import pathlib
import re

from keys import Stream

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "workloads.md"

# Most requests that a job sends, and most lines of a trace.
REQUESTS = (1, 10, 60, 250, 600)

DIRECTIONS = (
    "read", "write", "trim", "randread", "randwrite", "randtrim", "rw", "randrw", "trimwrite", "randtrimwrite",
)
ZONED_DIRECTIONS = ("write", "randwrite", "rw", "randrw", "trim", "read")
SIZES = ("512", "1k", "3k", "4k", "4k", "4k", "8k", "16k", "64k", "128k")


def direction(r, zoned):
    if zoned:
        return r.choice(ZONED_DIRECTIONS)
    name = r.choice(DIRECTIONS + ("randwrite", "randrw", "write", "randwrite"))
    if r.chance(0.1) and not name.endswith("trimwrite"):
        return f"{name}:{r.choice((1, 2, 8) if name.startswith('rand') else ('4k', '64k', '-4k'))}"
    return name


def three(r, one):
    """A value for all, or one for reads, writes and trims each."""
    return one() if r.chance(0.8) else ",".join(str(one()) for _ in range(r.choice((2, 3))))


def distribution(r):
    return r.choice((
        "random", "zipf:1.1", "zipf:0.8:0.3", "pareto:0.3", "normal:20", "zoned:90/10:10/90", "zoned_abs:60/64k:40/1m",
    ))


# A value of each key of fio that shapes requests, and how often it is drawn: of the random stream, and of zones or not.
FIO = {
    "rw": (1, direction),
    "bs": (0.8, lambda r, zoned: three(r, lambda: r.choice(("4k", "16k", "64k") if zoned else SIZES))),
    "number_ios": (1, lambda r, zoned: r.choice(REQUESTS)),
    "iodepth": (0.7, lambda r, zoned: r.choice((1, 2, 8, 32, 32, 256, 1000))),
    "norandommap": (0.4, lambda r, zoned: 1),
    "io_size": (0.4, lambda r, zoned: r.choice(("50%", "100%", "200%", "64k", "1m"))),
    "size": (0.4, lambda r, zoned: r.choice(("3z", "5z") if zoned else ("10%", "50%", "100%", "64k", "33.3%"))),
    "offset": (0.1, lambda r, zoned: "1z" if zoned else r.choice(("4k", "10%", "512"))),
    "offset_increment": (0.05, lambda r, zoned: "1z" if zoned else r.choice(("4k", "10%"))),
    "offset_align": (0.05, lambda r, zoned: r.choice(("512", "4k"))),
    "rw_sequencer": (0.05, lambda r, zoned: r.choice(("sequential", "identical"))),
    "rwmixread": (0.15, lambda r, zoned: r.choice((0, 10, 50, 90, 100))),
    "rwmixwrite": (0.05, lambda r, zoned: r.choice((0, 30, 100))),
    "bsrange": (0.15, lambda r, zoned: r.choice(("4k-16k",) if zoned else ("512-16k", "4k-64k", "512-64k,4k-8k"))),
    "bssplit": (0.1, lambda r, zoned: r.choice(("4k/60:16k/40", "512/10:4k/:64k/20", "4k/50:8k/50,512/100"))),
    "bs_unaligned": (0.05, lambda r, zoned: 1),
    "bs_is_seq_rand": (0.05, lambda r, zoned: 1),
    "ba": (0.1, lambda r, zoned: r.choice(("512", "4k", "3k"))),
    "ioengine": (0.2, lambda r, zoned: r.choice(("libaio", "io_uring", "io_uring_cmd", "psync", "sync", "mmap", "sg"))),
    "writefua": (0.1, lambda r, zoned: r.choice((0, 1))),
    "io_submit_mode": (0.1, lambda r, zoned: r.choice(("inline", "offload"))),
    "loops": (0.1, lambda r, zoned: r.choice((1, 2, 5))),
    "numjobs": (0.15, lambda r, zoned: r.choice((2, 3, 5))),
    "runtime": (0.1, lambda r, zoned: r.choice(("1ms", "20ms", "1s", "100us"))),
    "time_based": (0.05, lambda r, zoned: 1),
    "startdelay": (0.08, lambda r, zoned: r.choice(("10ms", "1-2", "1"))),
    "stonewall": (0.1, lambda r, zoned: 1),
    "thinktime": (0.12, lambda r, zoned: r.choice((1, 100, 20_000, 200_000))),
    "thinktime_blocks": (0.1, lambda r, zoned: r.choice((1, 8, 64))),
    "thinktime_blocks_type": (0.05, lambda r, zoned: r.choice(("complete", "issue"))),
    "thinktime_iotime": (0.05, lambda r, zoned: r.choice(("1ms", "1"))),
    "rate": (0.1, lambda r, zoned: three(r, lambda: r.choice(("64k", "10m", "1g")))),
    "rate_iops": (0.1, lambda r, zoned: three(r, lambda: r.choice((1, 100, 10_000, 1_000_000)))),
    "rate_process": (0.08, lambda r, zoned: r.choice(("linear", "poisson"))),
    "fsync": (0.2, lambda r, zoned: r.choice((1, 3, 16))),
    "fdatasync": (0.08, lambda r, zoned: r.choice((1, 5))),
    "end_fsync": (0.1, lambda r, zoned: 1),
    "fsync_on_close": (0.05, lambda r, zoned: 1),
    "sync": (0.15, lambda r, zoned: r.choice(("sync", "dsync", "none", 1))),
    "random_generator": (0.1, lambda r, zoned: r.choice(("tausworthe", "lfsr", "tausworthe64"))),
    "randseed": (0.15, lambda r, zoned: r.randrange(1 << 32)),
    "random_distribution": (0.2, lambda r, zoned: distribution(r)),
    "percentage_random": (0.12, lambda r, zoned: three(r, lambda: r.choice((0, 10, 50, 100)))),
    "write_hint": (0.15, lambda r, zoned: r.choice(("none", "short", "medium", "long", "extreme"))),
    "zonemode": (0.08, lambda r, zoned: "zbd" if zoned else r.choice(("none", "strided", "zbd"))),
    "zonesize": (0.04, lambda r, zoned: r.choice(("64k", "128k", "256k"))),
    "zonecapacity": (0.02, lambda r, zoned: r.choice(("64k", "128k"))),
    "zonerange": (0.03, lambda r, zoned: r.choice(("64k", "256k"))),
    "zoneskip": (0.03, lambda r, zoned: r.choice(("64k", "2z"))),
    "read_beyond_wp": (0.05, lambda r, zoned: 1),
    "max_open_zones": (0.04, lambda r, zoned: r.choice((1, 2, 4))),
    "job_max_open_zones": (0.03, lambda r, zoned: r.choice((1, 3))),
    "ignore_zone_limits": (0.02, lambda r, zoned: 1),
    "zone_reset_threshold": (0.03, lambda r, zoned: r.choice((0, 0.3, 1))),
    "zone_reset_frequency": (0.03, lambda r, zoned: r.choice((0, 0.2, 1))),
    "kb_base": (0.03, lambda r, zoned: 1024),
    "filename": (0.05, lambda r, zoned: "/dev/sdx"),
    "name": (0.05, lambda r, zoned: r.choice(("x", "job-1"))),
}
# Keys that zones need, that need zones, or that end a job late without one of the others.
ZONES = ("zonesize", "zonecapacity", "zonerange", "zoneskip", "read_beyond_wp", "max_open_zones", "job_max_open_zones",
         "ignore_zone_limits", "zone_reset_threshold", "zone_reset_frequency")


def documented():
    """The keys of fio that docs/workloads.md lists as working, which a test of the workloads holds to the code."""
    table = PAGE.read_text().split("\n## Keys\n")[1].split("\n## ")[0]
    return [re.findall(r"`([^`]+)`", row.split("|")[1])[0] for row in table.splitlines() if row.startswith("| `")]


def draw(seed, capacity, zones=None, purpose="workload"):
    """A workload for a device of `capacity` bytes; `zones` is the size of a zone of a drive with zones."""
    r = Stream(seed, purpose)
    if zones:
        if r.chance(0.4):
            return zone_trace(r, capacity, zones)
        return {"jobs": jobs(seed, purpose, r, True), "file": r.chance(0.4)}
    if r.chance(0.5):
        return {"jobs": jobs(seed, purpose, r, False), "file": r.chance(0.4)}
    return trace(r, capacity)


def jobs(seed, purpose, r, zoned):
    return [job(seed, f"{purpose}/{number}", zoned) for number in range(r.choice((1, 1, 1, 2, 4)))]


def job(seed, purpose, zoned):
    drawn = {}
    density = Stream(seed, purpose, "density").choice((0.2, 0.6, 1, 2))
    for key, (share, value) in FIO.items():
        r = Stream(seed, purpose, key)
        if r.chance(share * (density if share < 1 else 1)):
            drawn[key] = value(r, zoned)
    if zoned:
        drawn["zonemode"] = "zbd"
        for key in ("zonesize", "zonecapacity", "zonerange", "random_distribution", "loops", "zoneskip"):
            drawn.pop(key, None)
    elif drawn.get("zonemode", "none") == "none" and "zonesize" not in drawn:
        for key in ZONES:
            drawn.pop(key, None)
    elif drawn.get("zonemode") != "none":
        drawn.setdefault("zonesize", "128k")
        for key in ZONES:
            r = Stream(seed, purpose, "zones", key)
            if r.chance(0.3):
                drawn[key] = FIO[key][1](r, zoned)
    if drawn.get("writefua"):
        drawn["ioengine"] = "sg"
    if "fsync" in drawn:
        drawn.pop("fdatasync", None)
    if "bsrange" in drawn:
        drawn.pop("bssplit", None)
    if "thinktime" not in drawn:
        for key in ("thinktime_blocks", "thinktime_blocks_type", "thinktime_iotime"):
            drawn.pop(key, None)
    if "rate" in drawn:
        drawn.pop("rate_iops", None)
    if drawn.get("zonemode", "none") != "none":
        drawn["rw"] = drawn["rw"].split(":")[0]
    if "time_based" in drawn:
        drawn.setdefault("runtime", "20ms")
    return drawn


HEADER = "time_us,op,offset_bytes,length_bytes"
OPERATIONS = ("R", "W", "WF", "T", "TF", "Z", "ZF", "F")
LENGTHS = (1, 1, 2, 3, 7, 8, 8, 8, 9, 16, 17, 64, 200, 1000)


def writes_much(workload, capacity):
    """Whether a few passes of it write a small drive once."""
    lines = [line.split(",") for line in workload.get("lines", ())]
    written = sum(int(line[3]) for line in lines if line[1] in ("W", "WF"))
    return written * 4 > capacity or any(
        job["number_ios"] >= 250 and job["rw"].startswith(("write", "randwrite")) and not job.keys() & {
            "io_size", "size", "runtime", "bs", "bsrange", "bssplit", "fsync", "fdatasync", "sync", "zonemode",
            "zonesize",
        } for job in workload.get("jobs", ())
    )


def trace(r, capacity):
    """Commands of all kinds with wild weights, in a part of the device or all of it."""
    sectors = max(capacity // 512, 1)
    weights = [r.choice((0, 1, 1, 3, 10)) for _ in OPERATIONS]
    if not any(weights):
        weights[1] = 1
    hot = r.choice((sectors, sectors, max(sectors // 10, 1), min(sectors, 16)))
    longest = r.choice((1, 8, 64, 1000))
    aligned, gap, pause = r.chance(0.5), r.choice((0, 3, 5.7, 8.3)), r.choice((0, 0.3, 1))
    at, lines = 0, []
    for _ in range(r.choice(REQUESTS)):
        if r.chance(pause):
            at += int(10 ** r.uniform(0, gap))
        operation = r.choices(OPERATIONS, weights)[0]
        if operation == "F":
            lines.append(f"{at / 1000},F,0,0")
            continue
        length = min(r.choice(LENGTHS), longest, sectors)
        offset = r.randrange(max(hot - length + 1, 1))
        if aligned:
            offset -= offset % 8
        lines.append(f"{at / 1000},{operation},{min(offset, sectors - length) * 512},{length * 512}")
    return {"lines": lines}


ACTIONS = ("append", "append", "append", "finish", "reset", "open", "close", "R", "report")


def zone_trace(r, capacity, zones):
    """Commands of the set `zoned`; many are refused by the drive, which is an answer like others."""
    count = max(capacity // zones, 1)
    at, lines = 0, []
    for _ in range(r.choice(REQUESTS)):
        at += int(10 ** r.uniform(0, 5)) if r.chance(0.4) else 0
        action, zone = r.choice(ACTIONS), r.randrange(count)
        if action == "report":
            lines.append(f"{at / 1000},zoned:report,0,0,0 {count}")
        elif action == "R":
            lines.append(f"{at / 1000},R,{zone * zones},{r.choice((512, 4096, 16384))}")
        else:
            length = r.choice((4096, 16384, 65536)) if action == "append" else zones
            lines.append(f"{at / 1000},zoned:{action},{zone * zones},{length}")
    return {"lines": lines}


def takes_variable(workload):
    """Has the first job of a job file take its block size from the variable SIZE, if it is one and says no other."""
    first = workload["jobs"][0] if workload.get("file") else {}
    if not first or any(key in first for key in ("bsrange", "bssplit")):
        return False
    first["bs"] = "${SIZE}"
    return True


def argument(workload, folder, name):
    """What `--workload` is given; writes the file that it names, if any."""
    if "text" in workload:
        return workload["text"]
    if "lines" in workload:
        (folder / f"{name}.csv").write_text("\n".join([HEADER, *workload["lines"]]) + "\n")
        return f"{name}.csv"
    jobs = workload["jobs"]
    if len(jobs) == 1 and not workload["file"]:
        return ",".join(f"{key}={value}" for key, value in jobs[0].items())
    text = "".join(
        f"[job{number}]\n" + "".join(f"{key}={value}\n" for key, value in job.items() if key != "name")
        for number, job in enumerate(jobs)
    )
    (folder / f"{name}.fio").write_text(text)
    return f"{name}.fio"
