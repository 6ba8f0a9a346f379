"""Result files to make reports of: what a run would leave, without running one.

The figures are invented (seeded, so every run of the test draws the same); only their shape is a result's. The last
samples are there to break a page: names with markup in them, no timeline, no requests, an interrupted run.
"""

import math
import random

CAUSES = ["gc", "host", "mapping", "merge", "metadata", "recovery", "retirement", "rmw", "wear_levelling"]
HOSTILE = "</script><script>document.body.dataset.broken='1'</script><img src=x onerror=\"document.body.dataset.broken='1'\">"


def by_cause(**present):
    return {cause: present.get(cause, 0) for cause in CAUSES}


def quantile(values, share):
    return values[min(len(values) - 1, int(share * len(values)))]


def summary(values):
    points = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p999": 0.999, "p9999": 0.9999}
    return {
        "count": len(values),
        "mean": sum(values) / len(values),
        "min": values[0],
        **{name: quantile(values, share) for name, share in points.items()},
        "max": values[-1],
    }


def cdf(values):
    shares = [1 - 10 ** (-step / 20) for step in range(81)] + [1.0]
    return {"latency_ns": [quantile(values, share) for share in shares], "fraction": shares}


def device(name, index=0, channels=4, dies=8, timed=True, intervals=200, complete=True, broken=False):
    rng = random.Random(index)
    target = 1.8 + 0.9 * (index % 5) + 0.17 * (index // 5)
    reads = sorted(int(60_000 * (1 + index / 6) * math.exp(rng.gauss(0, 0.35)) + (rng.random() < 0.01) * 3.5e6) for _ in range(8000))
    writes = sorted(int(250_000 * (1 + index / 9) * math.exp(rng.gauss(0, 0.5)) + (rng.random() < 0.03) * 6e6) for _ in range(12000))
    everything = sorted(reads + writes)
    requests = {"read": 400_000, "write": 600_000, "trim": 1_200, "flush": 88}
    interval = 50_000_000
    wave = [target * (1 - math.exp(-at / 25)) + 1 * math.exp(-at / 25) + rng.gauss(0, 0.04) for at in range(intervals)]
    iops = [45_000 / (1 + amplification / 4) * (1 + rng.gauss(0, 0.015)) for amplification in wave]
    done = [int(rate * interval / 1e9) for rate in iops]
    host = 600_000
    gc = int(host * (target - 1.05))
    erases = [max(0, int(rng.gauss(900 + 60 * index, 14 + 3 * index))) for _ in range(4096)]
    low, high = min(erases), max(erases)
    width = (high - low) // 64 + 1
    bins = [0] * ((high - low) // width + 1)
    for count in erases:
        bins[(count - low) // width] += 1
    mean = sum(erases) / len(erases)
    return {
        "name": name,
        "complete": complete,
        "timed": timed,
        "requests": requests,
        "bytes": {"read": 400_000 * 4096, "write": 600_000 * 4096, "trim": 1_200 * 65536, "flush": 0},
        "latency_ns": {"all": summary(everything), "read": summary(reads), "write": summary(writes), "trim": None, "flush": None},
        "virtual_time_ns": interval * intervals if timed else 0,
        "wall_time_s": 1.25,
        "wall_precondition_s": 3.5,
        "throughput": {
            "iops": sum(iops) / max(1, len(iops)), "read_iops": 0.4 * sum(iops) / max(1, len(iops)),
            "write_iops": 0.6 * sum(iops) / max(1, len(iops)),
            "read_bytes_per_s": 0.4 * 4096 * sum(iops) / max(1, len(iops)), "write_bytes_per_s": 0.6 * 4096 * sum(iops) / max(1, len(iops)),
        },
        "outstanding": {"mean": 31.7, "max": 32},
        "flash": {
            "reads": {"total": 400_000 + gc, "by_cause": by_cause(host=400_000, gc=gc)},
            "programs": {"total": host + gc + 40_000, "by_cause": by_cause(host=host, gc=gc, rmw=30_000, wear_levelling=10_000)},
            "erases": {"total": gc // 250, "by_cause": by_cause(gc=gc // 250)},
            "copybacks": {"total": 0, "by_cause": by_cause()},
        },
        "write_amplification": {
            "total": (host + gc + 40_000) / host,
            "by_cause": by_cause(host=1.0, gc=gc / host, rmw=0.05, wear_levelling=10_000 / host),
        },
        "theory": {"model": "greedy, uniform random", "write_amplification": target * 1.02} if index < 2 else None,
        "erases": {
            "total": sum(erases), "mean": mean, "min": low, "max": high,
            "stddev": math.sqrt(sum((count - mean) ** 2 for count in erases) / len(erases)),
        },
        "buffer": {"hits": 5200, "write_hits": 5000, "write_misses": 90_000, "read_hits": 200, "read_misses": 300_000, "evictions": 90_000, "full_pages": 80_000, "partial_pages": 10_000},
        "map_cache": {"hits": 0, "misses": 0, "loads": 0, "flushes": 0},
        "gc": {"foreground_victims": 5100, "background_victims": 0, "wear_levelling_victims": 12, "stall_ns": 1_750_000_000, "stalled_commands": 70, "grown_bad_blocks": 0},
        "utilization": {
            "channels": [0.3 + 0.02 * rng.random() for _ in range(channels)],
            "dies": [min(1, (0.55 + 0.08 * (index % 4)) + 0.15 * rng.random()) for _ in range(channels * dies)],
        },
        "memory": {"mapping_bytes": 8 << 20, "buffer_bytes": 1 << 20, "simulator_bytes": 117_000_000},
        "design": {"gc_valid_share_mean": 0.62},
        "over_provisioning": {"nominal": 0.07, "effective": 0.063},
        "precondition": {
            "written_bytes": 70 << 30, "window_bytes": 1 << 30, "windows": [3.1, 3.5, 3.55, 3.56], "steady": True,
            "notes": ["Brought to steady state in 4 windows of 1 GiB."],
        },
        "host": {"misaligned_requests": 17, "failed_requests": 0, "unmapped_sectors_read": 0, "trimmed_mapped_sectors": 9000, "padding_bytes": 65536},
        "checks": [
            {"name": "requests_generated_equal_completed", "passed": True, "detail": "1,001,288 generated, 1,001,288 completed."},
            {"name": "valid_pages_equal_mapped_pages", "passed": not broken, "detail": f"1,835,008 pages are valid and {1_835_008 + broken} are mapped."},
            {"name": "programs_equal_sum_over_causes", "passed": True, "detail": "1,640,000 programs."},
        ],
        "warnings": ["Steady state was not reached: the last two windows differ by 3 %."] if index % 3 == 1 else [],
        "configuration": {"name": name, "flash": {"channels": channels, "page_size": "4k"}, "gc": {"victim": "greedy"}},
        "timeline": {
            "axis": "time" if timed else "requests",
            "interval": interval if timed else 5_000,
            "time_ns": [interval * (at + 1) if timed else 0 for at in range(intervals)],
            "requests_total": [sum(done[: at + 1]) for at in range(intervals)],
            "requests": done,
            "read_bytes": [int(0.4 * count) * 4096 for count in done],
            "write_bytes": [int(0.6 * count) * 4096 for count in done],
            "iops": iops,
            "latency_mean_ns": [32e9 / rate for rate in iops],
            "latency_p99_ns": [None if at % 50 == 49 else int(150e9 / rate) for at, rate in enumerate(iops)],
            "latency_max_ns": [int(400e9 / rate * (1 + rng.random())) for rate in iops],
            "write_amplification": [None if at % 60 == 59 else value for at, value in enumerate(wave)],
            "reads": {"host": done},
            "programs": {"host": [int(0.6 * count) for count in done], "gc": [max(0, int(0.6 * count * (factor - 1))) for count, factor in zip(done, wave)]},
            "erases": [count // 250 for count in done],
            "gc_stall_ns": [0] * intervals,
        },
        "latency_cdf": {"all": cdf(everything), "read": cdf(reads), "write": cdf(writes)},
        "wear_histogram": {"bin": width, "erases": [low + width * at for at in range(len(bins))], "blocks": bins},
    }


def divided(name, index=0, tests=12, whole=12):
    """A watched drive under two layers of a host, in sub-tests, of which so many came to their end."""
    drive = device(name, index)
    pause, length, volume = 330_000_000_000, 60_000_000_000, 5 << 30
    names = ["initial"] + [str(place) for place in range(1, tests)]
    begun = [place * (pause + length) for place in range(tests)]
    amplification = [1.0 + (1.4 + 0.4 * index) * (1 - math.exp(-place / 3)) for place in range(tests)]
    pages = [int(volume / 4096 * factor) for factor in amplification]
    drive["virtual_time_ns"] = begun[-1] + length
    drive["bytes"] = {"read": 0, "write": volume * tests, "trim": 0, "flush": 0}
    drive["subtests"] = [
        {"name": label, "requests": volume // 4096, "written_bytes": volume, "read_bytes": 0, "begun_ns": at, "ended_ns": at + length,
         "write_bytes_per_s": volume / 60}
        for label, at in zip(names[:whole], begun)
    ]
    real = sum(pages)
    drive["ready_busy"] = {
        "line": name, "die": 0, "geometry": "4x2x1x2", "program_model": "multi", "pages_per_low": 2, "window_ns": [110_000, 850_000],
        "recorders": [
            {"sampling_ns": sampling, "programs": real // 16, "pages": real * factor, "write_amplification": 4096 * real * factor / (volume * tests),
             "percentage_error": factor - 1, "lows_missed": 0, "lows_merged": 12_345}
            for sampling, factor in ((1000, 1.012), (100, 1.001), (10_000, 0.98), (100_000, 0.2))
        ],
        "estimates": [
            {"method": method, "lines": 8, "programs_a_line": real / 16, "pages": real, "pages_interval": [real * 0.99, real * 1.01],
             "write_amplification": 4096 * real / (volume * tests), "percentage_error": 0.0}
            for method in ("window", "all-dies", name)
        ],
        "levels": {"sampling": 1.012, "classification": 1.0, "plane": 1.0, "die": 1.0, "chip": 1.0, "channel": 1.0},
        "real": {
            "pages": real, "write_amplification": 4096 * real / (volume * tests), "pages_by_die": [real // 8] * 8,
            "programs_by_die": [real // 16] * 8, "by_cause": by_cause(host=volume * tests // 4096, gc=real - volume * tests // 4096),
        },
        "tests": [
            {"programs": count // 16, "pages": count * 1.012, "real_pages": count, "by_cause": by_cause(host=count), "begun_ns": at + 5, "ended_ns": at + length}
            for count, at in zip(pages, begun)
        ],
    }
    traffic = {"requests": [0, 9000, 0, 0], "bytes": [0, 9000 * 4096, 0, 0]}
    drive["host_layers"] = [
        {"kind": "scheduler", "configuration": {"depth": depth, "merge_size": name}, "taken": traffic, "sent": traffic,
         "metrics": {"merged_requests": 7.0, "waiting_max": 48.0}}
        for depth in ("64", "16")
    ]
    return drive


def idle(name):
    """A drive that nothing was asked of."""
    blank = device(name, intervals=0)
    blank["requests"] = blank["bytes"] = {"read": 0, "write": 0, "trim": 0, "flush": 0}
    blank["latency_ns"] = {kind: None for kind in ("all", "read", "write", "trim", "flush")}
    for operations in blank["flash"].values():
        operations.update(total=0, by_cause=by_cause())
    blank.update(write_amplification=None, theory=None, latency_cdf={}, checks=[], warnings=[])
    blank["utilization"] = {"channels": [], "dies": []}
    blank["wear_histogram"] = {"bin": 1, "erases": [0], "blocks": [4096]}
    return blank


def alike(name, index):
    """Drives of which theory says nearly the same, and of whose requests some take no time at all."""
    drive = device(name, 0)
    # The first has one digit, to which a chart of three adds two zeros.
    drive["theory"]["write_amplification"] = 1.8 + 0.007 * index
    points = drive["latency_cdf"]["all"]
    points["latency_ns"] = [0] + points["latency_ns"]
    points["fraction"] = [0.04] + [max(0.05, share) for share in points["fraction"]]
    return drive


def spiky(name, index, interval=50_000_000):
    """A drive whose first and last intervals are short, the first with a burst, and which hardly writes in one interval between."""
    drive = device(name, index)
    line = drive["timeline"]
    line["interval"] = interval
    # The first begins late and the last is cut off.
    line["time_ns"] = [interval // 10 + interval * at for at in range(199)] + [interval // 10 + interval * 198 + interval // 50]
    line["requests"][-1] = 900
    line["write_amplification"][0] = 31.0
    line["write_bytes"][100] = 4096
    line["write_amplification"][100] = 6500.0 + index
    line["programs"]["gc"][100] = 6500
    return drive


def narrow(name, index):
    """A drive whose slowest request takes not even a hundred times as long as its fastest."""
    drive = device(name, index)
    points = drive["latency_cdf"]["all"]
    points["latency_ns"] = [int(1.2e6 * (latency / points["latency_ns"][0]) ** 0.4) for latency in points["latency_ns"]]
    return drive


def sweep():
    """Three parameters and all of their combinations, as variants of one drive."""
    variants = [(over, victim, size) for over in ("7%", "10%", "14%", "20%", "28%", "40%") for victim in ("greedy", "fifo", "d-choices") for size in ("8m", "64m")]
    devices = []
    for index, (over, victim, size) in enumerate(variants):
        variant = device(f"v{index}-{victim}", index, intervals=40)
        # Numbers of several lengths: sorted as text they are in another order.
        variant["throughput"]["iops"] *= 1 + index % 7
        variant["configuration"] = {"name": variant["name"], "capacity": {"over_provisioning": over}, "gc": {"victim": victim}, "buffer": {"size": size}}
        devices.append(variant)
    return devices


def repeated():
    """Variants with names that begin alike, three repetitions of each."""
    variants = [(over, victim) for over in ("7%", "14%", "28%") for victim in ("greedy", "fifo")]
    devices = []
    for over, victim in variants:
        name = f"demo-tlc over_provisioning={over} victim={victim}"
        for number in (1, 2, 3):
            one = device(f"{name} #{number}", len(devices), intervals=40)
            one["configuration"] = {"name": one["name"], "capacity": {"over_provisioning": over}, "gc": {"victim": victim}}
            one["overrides"] = {"capacity.over_provisioning": over, "gc.victim": victim}
            one["repetition"] = {"of": name, "number": number, "seed": number}
            devices.append(one)
    return devices


def stacked(name, index, shares):
    """A stack of several drives; the work of its flash is shared between them."""
    stack = device(name, index)
    stack["drives"] = []
    for place, share in enumerate(shares):
        flash = {kind: {"total": 0, "by_cause": {cause: int(share * count) for cause, count in of["by_cause"].items()}} for kind, of in stack["flash"].items()}
        for of in flash.values():
            of["total"] = sum(of["by_cause"].values())
        stack["drives"].append({"name": f"{name}.{place}", "flash": flash})
    stack["host_layers"] = [{"kind": "stripe", "configuration": {}, "taken": {"requests": [0] * 4, "bytes": [0] * 4}, "sent": {"requests": [0] * 4, "bytes": [0] * 4}, "metrics": {}}]
    return stack


def set_alike(name, index):
    """A drive of a run in which --set says the same of all drives, and their descriptions differ."""
    drive = device(name, index)
    drive["configuration"]["gc"]["victim"] = name
    drive["overrides"] = {"gc.pacing": "off"}
    return drive


def run(devices, **keys):
    return {
        "format": 2, "version": "0.1.0", "complete": True, "seed": 1,
        "command": ["ssdlab", "run", "--device", "tlc", "--workload", "rw=randwrite,bs=4k,iodepth=32", "--set", "name=it's a b"],
        "wall_started": "2026-11-26 06:12 UTC",
        "workload": "rw=randwrite,bs=4k,iodepth=32", "replay": "closed:32", "precondition": "steady",
        "devices": devices, **keys,
    }


def waited(name, index=0, **shape):
    """A drive whose requests say what they waited for, one of the parts by a name that would break a page."""
    of = device(name, index, **shape)

    def split(requests, mean, **parts):
        total = sum(parts.values())
        shares = {key.replace("__", "/"): mean * part / total for key, part in parts.items()}
        return {"from_ns": int(mean * 0.8), "requests": requests, "mean_ns": mean, "parts_ns": shares}

    small = {f"channel_{cause}": 0.01 for cause in CAUSES}
    read = {
        "mean": split(400_000, 9e4, array_read=6, behind_program_gc=2, transfer=1, link=0.5, **small),
        "tails": {
            "p99": split(4_000, 3.4e6, behind_program_gc=8, behind_erase_gc=1, array_read=0.2, suspend=0.1),
            "p999": split(400, 7e6, behind_program_gc=6, behind_erase_gc=4, array_read=0.1),
            "p9999": split(4, 9e6, behind_erase_gc=9, array_read=0.1),
        },
    }
    write = {"mean": split(600_000, 3e5, buffer_full__array_program=5, no_free_block__array_erase=2, buffer_latency=1), "tails": {}}
    waits = [{"part": part, "ns": ns} for part, ns in (("behind_erase_gc", 8_900_000), ("array_read", 100_000), (HOSTILE, 7))]
    slow = {"op": "read", "sector": 4096, "sectors": 8, "submitted_ns": 5_000_000, "latency_ns": 9_000_007, "waits": waits}
    return {**of, "latency_breakdown": {"ops": {"read": read, "write": write}, "slowest": [slow] * 30}}


def samples():
    """Each sample with how many charts it must show and how many of them say in words that there is nothing."""
    names = ["mlc-greedy", "tlc-960g", "tlc-cost-benefit", "qlc-4t", "slc-cache", "sata-240g", "waflash-256g", "openssd", "a-drive-with-a-very-long-name-that-has-to-be-cut-somewhere", "ten", "eleven", "twelve"]
    return {
        "one": (run([device("mlc-greedy")]), 7, 0),
        "three": (run([device(name, index) for index, name in enumerate(names[:3])]), 9, 0),
        "alike": (run([alike(name, index) for index, name in enumerate(names[:4])]), 10, 0),
        "twelve": (run([device(name, index, channels=(4, 8, 16)[index % 3]) for index, name in enumerate(names)]), 19, 17),
        "spiky": (run([spiky("long-intervals", 0), spiky("short-intervals", 1, interval=41_000_000), spiky('a "quoted", name', 2)]), 9, 0),
        "narrow": (run([narrow("one", 0), narrow("two", 1)]), 8, 0),
        "sweep": (run(sweep(), workload="rw=randwrite,bs=4k,iodepth=32,size=100%,io_size=2450%,norandommap,random_generator=tausworthe64", precondition="steady:../traces/rocksdb_fillrandom_overwrite_ext4.csv.zst"), 43, 41),
        "repeated": (run(repeated()), 25, 23),
        "stacked": (run([stacked("two & two", 0, (0.25, 0.75)), stacked("alone", 1, ()), stacked("four", 2, (0.25,) * 4)], host="stripe.toml"), 9, 0),
        "set-alike": (run([set_alike(name, index) for index, name in enumerate(("greedy", "fifo", "random"))]), 10, 0),
        "short": (run([device("one-interval", intervals=1), device("two-intervals", 1, intervals=2)]), 8, 0),
        "no-timeline": (run([device("no-timeline", intervals=0)]), 7, 3),
        "counting": (run([device("counts-only", timed=False), device("counts-too", 1, timed=False)]), 6, 3),
        "idle": (run([idle("idle")]), 6, 6),
        "hostile": (run([device(HOSTILE, broken=True), device("${x}{{y}}'\"&amp;\u2028", 1)], workload=HOSTILE, command=[HOSTILE]), 8, 0),
        "interrupted": (run([device("whole"), device("cut-short", 1, intervals=77, complete=False)], complete=False), 8, 0),
        "divided": (run([divided("sub-tests"), divided(names[8], 1, whole=7), device("whole", 2)], host="two-layers.toml"), 11, 0),
        "divided-hostile": (run([divided(HOSTILE, tests=70, whole=70)], host=HOSTILE), 9, 0),
        "two-subtests": (run([divided("too-few-for-a-curve", whole=2)]), 7, 0),
        "waited": (run([waited("one"), device("not-asked", 1), waited(HOSTILE, 2)]), 10, 0),
        "empty": (run([]), 6, 6),
    }
