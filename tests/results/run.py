#!/usr/bin/env python3
"""Hold the results of many small runs against recorded ones, to the nanosecond and the operation.

tests/results/run.py BINARY [--record] [--list] [NAME ...]

Each run is a line of `runs()`: a shipped drive made small, a design, a buffer, a scheduler, a fault, a trace or a
generator. What counts is kept in recorded.json: virtual time, latencies, flash operations by kind and cause, wear, and
the counters of buffer, collection and host. `--record` writes that file anew; do it only in a commit that means to change
results, and say so there. NAMEs pick runs by the start of their names.
"""

import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import tomllib

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
RECORDED = HERE / "recorded.json"
RECORDING = "examples/recordings/"

OVERWRITES = "rw=randwrite,bs=4k,iodepth=16,size=100%,norandommap,number_ios={count}"
MIXED = "rw=randrw,rwmixread=60,bs=4k,iodepth=16,size=100%,norandommap,number_ios={count}"
PARTIAL = "rw=randwrite,bsrange=512-16k,blockalign=512,iodepth=8,size=100%,norandommap,number_ios={count}"
TRIMS = "rw=trimwrite,bs=64k,iodepth=4,size=100%,number_ios={count}"
SEQUENTIAL = "rw=write,bs=128k,iodepth=4,size=100%,number_ios={count}"
ZONED = "rw=randwrite,bs=64k,iodepth=16,zonemode=zbd,size=100%,number_ios={count}"
SYNCED = "rw=randwrite,bs=4k,iodepth=4,fsync=8,size=100%,norandommap,number_ios={count}"

BUFFERS = (
    "none", "fifo", "lru", "mca", "pc-lru", "arc", "pc-arc", "lirs", "pc-lirs", "cflru", "fab", "bplru",
)
VICTIMS = "greedy", "cost-benefit", "fifo", "random", "d-choices"


def small(device, blocks=32, used=0.78):
    """Settings that make a shipped drive small: `blocks` blocks a plane of at most 64 pages, `used` of them the host's."""
    description = tomllib.loads((ROOT / "devices" / f"{device}.toml").read_text())
    flash, caches_map = description["flash"], "map_cache" in description.get("ftl", {})
    if caches_map:
        # Map blocks take some of a small drive.
        used *= 0.85
    pages = min(flash["pages_per_block"], 64)
    size = flash["page_size"]
    page = int(size[:-1]) * 1024 if isinstance(size, str) else size
    channels = min(flash["channels"], 4)
    chips = min(flash.get("chips_per_channel", 1), 2)
    planes = channels * chips * flash.get("dies_per_chip", 1) * flash.get("planes_per_die", 1)
    whole = planes * pages * page if has_segments(device) else 65536
    user = int(planes * blocks * pages * page * used) // whole * whole
    sets = [
        f"flash.channels={channels}", f"flash.chips_per_channel={chips}", f"flash.pages_per_block={pages}",
        f"flash.blocks_per_plane={blocks}", f"capacity.user={user}",
    ]
    if caches_map:
        sets.append("ftl.map_cache=20%")
    if "buffer" in tomllib.loads((ROOT / "devices" / f"{device}.toml").read_text()):
        sets.append("buffer.size=1m")
    if design(device) == "aftl-zoned":
        sets.append("ftl.zone_size=64m")
    return sets


def design(device):
    """The FTL design of a shipped drive."""
    description = tomllib.loads((ROOT / "devices" / f"{device}.toml").read_text())
    return description.get("ftl", {}).get("design", "page")


def has_segments(device):
    """Whether a drive takes appends to segments alone: block I/O goes through the layer `append`, or to zones."""
    return design(device).startswith("aftl")


def run(name, device, workload, *options, sets=(), count=12000, precondition="fill"):
    arguments = ["run", "-d", device, "-w", workload.format(count=count), "-p", precondition, "--no-snapshot", "--json"]
    if design(device) == "aftl":
        arguments += ["--host", str(HERE / "append.toml")]
    for value in [*small(device), *sets]:
        arguments += ["--set", value]
    return name, [*arguments, *options]


def files(name, *options, used=0.78, sets=(), device="amf-16g-aftl", kind="alfs"):
    """A file run on a small drive of append-only segments, 64 MB at a time, or of blocks."""
    arguments = ["files", *options, "--device", device, "--fs", kind, "--fs-set", "cache=4m", "--json"]
    for value in [*small(device, blocks=64, used=used), *sets]:
        arguments += ["--device-set", value]
    return f"files/{name}", arguments


def file_runs():
    few = ("--set", "files=300", "--set", "mean_size=64k", "--threads", "8", "--operations", "6000")
    for personality in ("fileserver", "varmail", "webproxy", "webserver"):
        yield files(personality, personality, *few)
    hadoop = ("--set", "files=24", "--set", "mean_size=1m", "--set", "append_size=8k", "--threads", "2", "--operations", "400")
    for personality in ("dfsio", "terasort", "wordcount"):
        logs = () if personality == "dfsio" else ("--set", "log_files=4")
        yield files(personality, personality, *hadoop, *logs)
    postmark = ("--set", "files=400", "--set", "size_low=4k", "--set", "size_high=128k", "--set", "transactions=4000")
    yield files("postmark", "postmark", *postmark)
    yield files("cold", "webserver", *few, "--cold")
    yield files("direct", "fileserver", *few, "--direct")
    yield files("verify", "fileserver", *few, "--verify")
    yield files("jobs", "--jobs", "tests/results/files.fio")
    blocks = {"device": "amf-16g", "kind": "lfs"}
    segments = ("--fs-set", "segment=512k")
    for personality in ("fileserver", "varmail"):
        yield files(f"lfs/{personality}", personality, *few, *segments, **blocks)
    yield files("lfs/postmark", "postmark", *postmark, *segments, **blocks)
    yield files("lfs/dftl", "postmark", *postmark, *segments, "--verify", **blocks | {"device": "amf-16g-dftl"})
    blocks["kind"] = "journaling"
    small = ("--fs-set", "group=4m", "--fs-set", "journal=4m")
    for personality in ("fileserver", "varmail"):
        yield files(f"journaling/{personality}", personality, *few, *small, **blocks)
    ext3 = (*small, "--fs-set", "rules=ext3")
    yield files("journaling/ext3", "fileserver", *few, *ext3, **blocks)
    yield files("journaling/dftl", "postmark", *postmark, *small, "--verify", **blocks | {"device": "amf-16g-dftl"})


def runs():
    yield from file_runs()
    # Disks are no drives of a run.
    described = {path.stem: tomllib.loads(path.read_text()) for path in (ROOT / "devices").glob("*.toml")}
    devices = sorted(name for name, description in described.items() if "disk" not in description)
    for device in devices:
        workload = ZONED if design(device) == "aftl-zoned" else OVERWRITES
        yield run(f"device/{device}", device, workload, count=60000)
    for device in ("demo-slc", "demo-tlc", "waflash-256g-8k", "wa-ssd-s-32g"):
        yield run(f"mixed/{device}", device, MIXED, count=80000)
        yield run(f"partial/{device}", device, PARTIAL)
        yield run(f"trims/{device}", device, TRIMS, count=2000)
    for buffer in BUFFERS:
        yield run(f"buffer/page/{buffer}", "waflash-256g-8k", PARTIAL, sets=[f"buffer.policy={buffer}"])
        if buffer != "bplru":
            sets = [f"buffer.policy={buffer}", "ftl.design=mvftl"]
            yield run(f"buffer/mvftl/{buffer}", "waflash-256g-8k", PARTIAL, sets=sets)
    compacted = ["ftl.design=mvftl", "ftl.compaction=true"]
    yield run("mvftl/compaction", "waflash-256g-8k", PARTIAL, sets=compacted)
    yield run("mvftl/compaction-oob", "waflash-256g-8k", PARTIAL, sets=[*compacted, "ftl.compaction_index=oob"])
    for victim in VICTIMS:
        yield run(f"victim/{victim}", "bench-32g", OVERWRITES, sets=[f"gc.victim={victim}"], count=20000)
    for scheduler in ("fifo", "reads-first", "host-first", "single-fifo", "in-order"):
        yield run(f"scheduler/{scheduler}", "demo-tlc", MIXED, sets=[f"flash.scheduler={scheduler}"], count=80000)
    suspend = [
        "flash.scheduler=reads-first", "flash.program_suspend=true", "flash.erase_suspend=true",
        "flash.timing.suspend=10us", "flash.timing.resume=10us",
    ]
    yield run("scheduler/suspend", "demo-tlc", MIXED, sets=suspend, count=80000)
    merge = ["ftl.mapping_unit=4k", "ftl.allocation=round-robin", "buffer.policy=fifo", "buffer.size=2m"]
    for reads in ("page", "gather"):
        yield run(f"board/{reads}", "jasmine-8g", PARTIAL, sets=[*merge, f"controller.reads={reads}"], count=20000)
    # Lists of owners in place of OOB areas: early ones at flushes, and those that collection reads.
    lists = ["flash.oob=ecc", "ftl.owners=summary"]
    yield run("board/lists", "jasmine-8g", OVERWRITES, sets=lists, count=60000)
    yield run("board/lists-synced", "jasmine-8g", SYNCED, sets=lists, count=20000)
    for key in ("flash.copyback=true", "flash.copyback=checked", "flash.cache_program=true", "flash.multi_plane=off"):
        yield run(f"chips/{key}", "bench-32g", MIXED, sets=[key])
    faults = ["flash.faults.program_failure=0.0005", "flash.faults.erase_failure=0.002", "gc.free_blocks=3"]
    for device in ("demo-slc", "waflash-256g-8k"):
        yield run(f"faults/{device}", device, MIXED, sets=[*faults, "flash.faults.uncorrectable_read=0.001"], count=80000)
    yield run("faults/mvftl", "waflash-256g-8k", PARTIAL, sets=[*faults, "ftl.design=mvftl"], count=20000)
    yield run("synced/lru", "demo-slc", SYNCED)
    yield run("synced/none", "bench-32g", SYNCED)
    yield run("sequential", "tlc-nvme-1t", SEQUENTIAL, count=2000)
    yield run("streams", "bench-32g", OVERWRITES, sets=["ftl.streams=2"])
    yield run("shared-frontier", "bench-32g", OVERWRITES, sets=["ftl.separate_gc_frontier=false"], count=20000)
    yield run("allocation/static", "bench-32g", OVERWRITES, sets=["ftl.allocation=cwdp"])
    yield run("untimed", "bench-32g", OVERWRITES, sets=["flash.timing=none"], count=60000)
    yield run("untimed/mvftl", "waflash-256g-8k", PARTIAL, sets=["ftl.design=mvftl", "flash.timing=none"], count=20000)
    yield run("steady", "demo-slc", OVERWRITES, precondition="steady")
    yield run("footprint", "demo-slc", MIXED, precondition="footprint")
    yield run("verify/page", "demo-tlc", MIXED, "--verify", count=80000)
    yield run("verify/mvftl", "waflash-256g-8k", PARTIAL, "--verify", sets=["ftl.design=mvftl"])
    yield run("host/buffered", "demo-tlc", MIXED, "--host", "examples/hosts/buffered.toml", count=20000)
    yield run("host/direct", "demo-tlc", MIXED, "--host", "examples/hosts/direct.toml", count=20000)
    for trace in sorted(path.name for path in (ROOT / RECORDING).glob("*.csv.zst")):
        if "_direct" in trace:
            continue
        options = ["--limit", "6000", "--wrap", "--replay", "closed:8"]
        yield run(f"trace/{trace.split('.')[0]}", "demo-tlc", RECORDING + trace, *options)
    yield run("trace/timed", "demo-slc", RECORDING + "postgresql_pgbench_ext4.csv.zst", "--limit", "6000", "--wrap")
    for model in ("msnfs", "web", "financial1"):
        yield run(f"model/{model}", "waflash-256g-8k", f"model:{model},requests=6000", "--wrap", "--replay", "timed*0.1")


# What of a drive's result counts. Wall times, estimates, configuration, checks and prose do not.
KEPT = (
    "requests", "bytes", "latency_ns", "virtual_time_ns", "flash", "write_amplification", "erases", "buffer", "map_cache",
    "gc", "utilization", "over_provisioning", "host", "controller",
)


def flatten(value, name, into):
    """Leaves by dotted key; zeroes and nulls are left out, so that a counter that is added later changes nothing."""
    if isinstance(value, dict):
        for key, inner in value.items():
            flatten(inner, f"{name}.{key}" if name else key, into)
    elif isinstance(value, list):
        into[name] = json.dumps(value)
    elif value:
        into[name] = value


# What counts of the file system of a file run: all but its keys and its way over time.
NOT_KEPT = ("keys", "kind", "timeline", "capacity")


def measured(result):
    """The entries of a result that count, each with what is kept of it."""
    for device in result.get("devices", result.get("drives", ())):
        yield {key: device[key] for key in KEPT if key in device}
    if system := result.get("file_system"):
        yield {f"fs.{key}": value for key, value in system.items() if key not in NOT_KEPT}
        yield {f"files.{key}": result[key] for key in ("seconds", "operations", "turns", "skipped", "by_operation")}


def measure(binary, name, arguments, cache):
    environment = dict(os.environ, SSDLAB_CACHE=cache)
    done = subprocess.run([binary, *arguments], cwd=ROOT, capture_output=True, text=True, env=environment)
    if done.returncode != 0:
        return f"exit code {done.returncode}: {done.stderr.strip()}\n  {' '.join(arguments)}"
    kept = {}
    for entry in measured(json.loads(done.stdout)):
        flatten(entry, "", kept)
    return kept


def differences(found, expected):
    for key in sorted(found.keys() | expected.keys()):
        was, now = expected.get(key, 0), found.get(key, 0)
        if was != now:
            yield f"{key}: recorded {was}, now {now}"


def main():
    flags = {argument for argument in sys.argv[1:] if argument.startswith("--")}
    words = [argument for argument in sys.argv[1:] if not argument.startswith("--")]
    if unknown := flags - {"--record", "--list"}:
        sys.exit(f"error: unknown option {sorted(unknown)[0]}; known: --list, --record")
    if "--list" in flags:
        for name, arguments in runs():
            print(f"{name:36} ssdlab {' '.join(arguments)}")
        return 0
    if not words:
        sys.exit(__doc__)
    binary, prefixes = str(pathlib.Path(words[0]).resolve()), tuple(words[1:])
    chosen = [(name, arguments) for name, arguments in runs() if not prefixes or name.startswith(prefixes)]
    recorded = json.loads(RECORDED.read_text()) if RECORDED.exists() else {}
    failed = 0
    with tempfile.TemporaryDirectory(prefix="ssdlab-results-") as cache:
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            results = pool.map(lambda case: measure(binary, *case, cache), chosen)
            for (name, arguments), found in zip(chosen, results):
                if isinstance(found, str):
                    failed += 1
                    print(f"FAILED {name}: {found}")
                elif "--record" in flags:
                    recorded[name] = found
                elif name not in recorded:
                    failed += 1
                    print(f"FAILED {name}: not recorded")
                elif lines := list(differences(found, recorded[name])):
                    failed += 1
                    print(f"FAILED {name}: {len(lines)} values differ: ssdlab {' '.join(arguments)}")
                    for line in lines[:8]:
                        print(f"  {line}")
    if "--record" in flags and not failed:
        names = {name for name, _ in runs()}
        kept = {name: recorded[name] for name in sorted(recorded) if name in names}
        lines = (f"{json.dumps(name)}: {json.dumps(values, sort_keys=True)}" for name, values in kept.items())
        RECORDED.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    print(f"results: {len(chosen) - failed} passed; {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
