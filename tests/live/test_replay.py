"""What a served drive did is what `run` does with the recording: the same flash operations, by kind and by cause."""

import json
import time

import nbd
from harness import check, need
from test_fio import fio

# The same counters under two names.
KINDS = {"read": "reads", "program": "programs", "erase": "erases", "copyback": "copybacks"}


def same(bench, pace, device, name, *job, stack=()):
    """Serves fio, records it, replays the recording on the same stack, and compares."""
    need(fio="fio")
    trace = bench.path(name)
    server = bench.serve(device, pace=pace, options=["--record", trace, *stack])
    fio(bench, server, *job, timeout=180)
    # A last request after the drive has come to rest, so that all work in the background is counted on both sides.
    client = nbd.Client(server.socket)
    client.flush()
    at_rest, before = server.figures(), None
    while before is None or at_rest["flash"] != before["flash"]:
        time.sleep(0.2)
        at_rest, before = server.figures(), at_rest
    client.read(0, 4096)
    client.close()
    served = server.figures()
    said = server.stop()
    check("recorded " in said, f"nothing about the recording: {said}")
    run = json.loads(bench.run(
        bench.ssdlab, "run", "-d", server.device, "-w", trace, "--replay", "timed", "--json", "--quiet", *stack,
        timeout=180,
    ))
    check(run["complete"] is True, "the replay is not complete")
    replayed = run["devices"][0]
    counts = {kind: sum(served["commands"][kind] for kind in kinds)
              for kind, kinds in {"read": ["read"], "write": ["write"], "trim": ["trim"], "flush": ["flush"]}.items()}
    requests = sum(1 for _ in open_trace(trace)) - 1
    layers = served["host_layers"]
    if layers:
        counts = dict(zip(counts, layers[0]["taken"]["requests"]))
    check(sum(counts.values()) == requests, f"the server counts {counts}, the recording has {requests} requests")
    differences = []
    for kind, plural in KINDS.items():
        live = {cause.replace("-", "_"): count for cause, count in served["flash"][kind]["by_cause"].items()}
        again = {cause: count for cause, count in replayed["flash"][plural]["by_cause"].items() if count}
        if live != again:
            differences.append(f"{plural}: served {live}, replayed {again}")
    for live, again in zip(layers, replayed["host_layers"], strict=True):
        for name, value in live["metrics"].items():
            if value != again["metrics"][name]:
                differences.append(f"{live['kind']}: {name}: served {value:.0f}, replayed {again['metrics'][name]:.0f}")
    check(not differences, "; ".join(differences))
    flash = {plural: replayed["flash"][plural]["total"] for plural in KINDS.values()}
    check(flash["erases"] > 0 or device != "tiny", "nothing was erased: the comparison is about little")
    return f"{counts}: {flash}"


def open_trace(path):
    """The lines of a recording."""
    with open(path, encoding="ascii") as lines:
        yield from lines


JOB = ("--rw=randtrimwrite", "--bsrange=512-32k", "--iodepth=8", "--size=12m", "--fsync=50", "--time_based=0")


# Whole pages for the most part, which the driver sequentializes.
PAGES = ("--rw=randrw", "--bssplit=4k/80:16k/10:512/5:256k/5", "--rwmixread=30", "--iodepth=8", "--size=8m", "--io_size=24m",
         "--fsync=50")


def test_at_once(bench):
    """Answered at once."""
    return same(bench, "none", "tiny", "trace.csv", *JOB, "--loops=3")


def test_in_model_time(bench):
    """Answered in the model's time."""
    return same(bench, "model*0.1", "tiny", "trace.csv", *JOB, "--loops=3")


def test_reads_and_writes(bench):
    """Reads among the writes, on a drive with a large buffer."""
    job = ("--rw=randrw", "--bs=4k", "--iodepth=16", "--size=8m", "--fsync=100")
    return same(bench, "model", "small", "trace.csv", *job)


def test_at_once_with_driver(bench):
    """With SHRD's driver between the socket and a drive with a log, answered at once: the driver's metrics are the same, too."""
    return same(bench, "none", "tiny", "trace.csv", *PAGES, stack=bench.with_driver(user="8m"))


def test_in_model_time_with_driver(bench):
    """The same in the model's time."""
    return same(bench, "model*0.1", "tiny", "trace.csv", *PAGES, stack=bench.with_driver(user="8m"))


def test_recorded_from_outside(bench):
    """`ssdlab record` on a running server sees every request of its clients until it is told to stop."""
    server = bench.serve("tiny")
    trace = bench.path("outside.csv")
    recorder = bench.start(bench.ssdlab, "record", server.control, "-o", trace, "--seconds", "600")
    client = nbd.Client(server.socket)
    marks = 0
    # It listens once a mark arrives.
    while not trace.exists() or trace.stat().st_size < 60:
        client.write(0, bytes(512))
        marks += 1
        check(marks < 100_000, "nothing is recorded")
    for page in range(100):
        client.write(page * 4096, b"\x07" * 4096, nbd.FUA if page % 10 == 0 else 0)
    client.trim(0, 65536)
    client.flush()
    client.close()
    recorder.terminate()
    check(recorder.wait(timeout=30) == 0, recorder.log.read_text())
    lines = [line.strip() for line in open_trace(trace)]
    writes = [line for line in lines if ",4096" in line]
    check(len(writes) == 100, f"{len(writes)} of 100 writes are in the recording")
    check(",F," in lines[-1] or lines[-1].split(",")[1] == "F", f"the last is {lines[-1]}")
    check(lines[-2].split(",")[1:] == ["T", "0", "65536"], f"before it {lines[-2]}")
    bench.run(bench.ssdlab, "run", "-d", server.device, "-w", trace, "--quiet")
    server.stop()
