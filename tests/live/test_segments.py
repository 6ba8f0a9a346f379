"""A bare drive with append-only segments, served: its rules, its report, and what is there after a power cut."""

import errno
import json
import mmap
import os
import pathlib
import re
import shutil
import threading
import urllib.request

import nbd
from harness import DEVICES, MIB, Failed, Server, Skipped, check, need, need_seeded
from segments import KEEP_SIZE, PUNCH_HOLE, ZERO_RANGE, FilePort, Host, NbdPort, rng_of, states

UNIT, SEGMENT, COUNT = 4096, 256 << 10, 160


def report(server, *options):
    """What `ssdlab stat --segments --json` says of the only drive."""
    bench = server.bench
    return json.loads(bench.run(bench.ssdlab, "stat", "--segments", "--json", *options, server.control))["drives"][0]


class FileServer(Server):
    """The same drive as a FUSE file."""

    def __init__(self, bench, *arguments, **options):
        need(fusermount3="fuse3")
        if not pathlib.Path("/dev/fuse").exists():
            raise Skipped("no /dev/fuse")
        self.mountpoint = bench.path("mnt")
        self.mountpoint.mkdir()
        bench.later(bench.attempt, bench.ssdlab, "mount", "--down", self.mountpoint)
        super().__init__(bench, *arguments, **options)

    @property
    def file(self):
        """The drive."""
        return self.mountpoint / "drive"

    listening = "\nfile: "

    def command(self):
        """The command line."""
        return [
            self.bench.ssdlab, "mount", "-d", self.device, "--image", self.image, "--control", self.control,
            "--time-scale", self.pace, "--file", *self.options, self.mountpoint,
        ]


def cuts(bench, count, server, port_of):
    """Kills a server again and again while a host appends; looks at every segment each time, and goes on."""
    rng = rng_of(bench.seed, type(server).__name__, count)
    host = Host(report(server))
    done = 0
    for cut in bench.rounds(count):
        port = port_of(server, rng)
        power = threading.Timer(rng.uniform(0.03, 0.5), server.kill)
        power.start()
        try:
            host.work(port, rng)
        except nbd.Gone:
            pass
        power.join()
        port.close()
        host.cut()
        # At once and in the model's time by turns: only there programs are in flight when the power goes.
        server.pace = rng.choice(("none", "model", "model*0.2"))
        server.start()
        port = port_of(server, rng)
        told = report(server)
        host.found_after_cut(port, states(told))
        check(any(told["segments"]["states"][state] for state in ("open", "full")) or cut == 0, "nothing was written")
        # What is closed refuses, the rest goes on.
        for segment, modelled in enumerate(host.segments):
            life = modelled.now
            if len(life.units) == host.units:
                continue
            if not life.closed:
                if life.units and rng.random() < 0.3:
                    host.append(port, segment, 1)
                continue
            offset = host.offset(segment, len(life.units))
            host.expect("closed")
            host.pending[port.send(segment, nbd.WRITE, offset, UNIT, bytes(UNIT))] = ("refused", "closed")
            if rng.random() < 0.5:
                host.trim(port, segment)
                host.append(port, segment, 3)
        host.wait(port)
        told = report(server)
        host.compare(states(told))
        found = {reason: number for reason, number in told["refused"].items() if number}
        check(found == host.refused, f"refusals are counted as {found}, expected {host.refused}")
        port.close()
        done += 1
    server.stop()
    commands = ", ".join(f"{number} {kind}" for kind, number in host.counts.items())
    return f"{done} cuts; {commands}; {host.closed} found closed, {host.came_back} trims came back"


def test_kill_over_nbd(bench):
    """Killed at any moment over NBD: what was answered is there, pointers and states are as told, and appends go on."""
    return cuts(bench, 8, bench.serve("segments"), lambda server, rng: NbdPort(server.socket, rng.randint(1, 3)))


def test_kill_over_fuse(bench):
    """The same through the FUSE file."""
    return cuts(bench, 6, FileServer(bench, "segments"), lambda server, _rng: FilePort(server.file))


def test_the_check_can_fail(bench):
    """A drive that lost an answered append, and one whose flushed trim came back, are found: an older image is put in place."""
    rng = rng_of(bench.seed, "older image")
    found = []
    for lost in ("append", "trim"):
        server = bench.serve("segments", image=lost)
        host = Host(report(server))
        port = NbdPort(server.socket, 1)
        host.append(port, 7, rng.randint(3, 12))
        host.wait(port)
        port.close()
        server.kill()
        shutil.copytree(server.image, bench.path("before"))
        server.start()
        port = NbdPort(server.socket, 1)
        if lost == "append":
            host.append(port, 7, 1)
        else:
            host.trim(port, 7)
            host.wait(port)
            host.flush(port)
        host.wait(port)
        port.close()
        server.kill()
        shutil.rmtree(server.image)
        bench.path("before").rename(server.image)
        host.cut()
        server.start()
        port = NbdPort(server.socket, 1)
        try:
            host.found_after_cut(port, states(report(server)))
        except Failed as failed:
            check("segment 7 " in str(failed), f"another segment is named: {failed}")
            found.append(lost)
        port.close()
        server.kill()
    check(found == ["append", "trim"], f"found {found}")


def test_rules_over_nbd(bench):
    """Rules broken on purpose over NBD, several commands in flight: EINVAL, counted by reason, and nothing changes."""
    server = bench.serve("segments")
    rng = rng_of(bench.seed, "rules")
    client = nbd.Client(server.socket)
    check(client.block_sizes == (UNIT, UNIT, SEGMENT), f"block sizes are {client.block_sizes}")
    check(not client.flags & (1 << 6 | 1 << 11), "write zeroes is advertised")
    host = Host(report(server))
    check((host.unit, host.bytes, host.count) == (UNIT, SEGMENT, COUNT), "the report has another shape")
    port = NbdPort(server.socket, 3)
    rounds = iter(range(1500))
    host.work(port, rng, lambda: next(rounds, None) is not None)
    for _ in range(400):
        host.violate(port, rng)
        while len(host.pending) >= port.depth:
            host.receive(port)
    host.wait(port)
    told = report(server)
    host.compare(states(told))
    found = {reason: number for reason, number in told["refused"].items() if number}
    check(found == host.refused, f"refusals are counted as {found}, expected {host.refused}")
    wanted = {"overwrite", "gap", "crosses-segments", "part-of-write-unit", "part-of-segment", "unwritten"}
    check(set(found) == wanted, f"refused for {sorted(found)}")
    # What the drive has not: write zeroes, and a command behind its end.
    for kind, offset, length, data, wanted in (
            (nbd.WRITE_ZEROES, 0, UNIT, b"", errno.EINVAL), (nbd.WRITE, COUNT * SEGMENT, UNIT, bytes(UNIT), errno.ENOSPC),
            (nbd.READ, COUNT * SEGMENT, UNIT, b"", errno.EINVAL)):
        try:
            client.call(kind, offset, length, data)
            raise Failed(f"command {kind} was taken")
        except nbd.Error as error:
            check(error.errno == wanted, f"command {kind} at {offset} was answered with {error.errno}, expected {wanted}")
    host.compare(states(report(server)))
    port.close()
    client.close()
    server.stop()
    return f"{sum(found.values())} refusals: " + ", ".join(f"{reason} {number}" for reason, number in sorted(found.items()))


def test_rules_over_fuse(bench):
    """The same through the FUSE file; zero range is not supported, and no write is completed by a read."""
    server = FileServer(bench, "segments")
    rng = rng_of(bench.seed, "rules fuse")
    host = Host(report(server))
    port = FilePort(server.file)
    rounds = iter(range(600))
    host.work(port, rng, lambda: next(rounds, None) is not None)
    reads = server.figures()["commands"]["read"]
    for _ in range(300):
        draw = host.broken_rule(rng)
        if draw and draw[1] != nbd.READ:
            segment, kind, offset, length, reason = draw
            host.expect(reason)
            host.pending[port.send(segment, kind, offset, length, b"\xee" * length)] = ("refused", reason)
            host.wait(port)
    check(server.figures()["commands"]["read"] == reads, "a write led to a read")
    size = COUNT * SEGMENT
    calls = [
        (lambda: port.fallocate(ZERO_RANGE | KEEP_SIZE, 0, SEGMENT), errno.EOPNOTSUPP),
        (lambda: port.fallocate(0, 0, SEGMENT), errno.EOPNOTSUPP),
        (lambda: port.fallocate(PUNCH_HOLE | KEEP_SIZE, size - SEGMENT, 2 * SEGMENT), errno.EINVAL),
        (lambda: os.pwrite(port.file, bytes(2 * UNIT), size - UNIT), errno.ENOSPC),
        (lambda: os.pwrite(port.file, bytes(UNIT), size), errno.ENOSPC),
    ]
    for call, wanted in calls:
        try:
            call()
            raise Failed(f"a call was taken that is to fail with {errno.errorcode[wanted]}")
        except OSError as error:
            check(error.errno == wanted, f"errno {error.errno}, expected {errno.errorcode[wanted]}")
    told = report(server)
    host.compare(states(told))
    found = {reason: number for reason, number in told["refused"].items() if number}
    check(found == host.refused, f"refusals are counted as {found}, expected {host.refused}")
    # Where data is, and where not.
    whole = os.pread(port.file, UNIT, 0) if host.segments[0].now.units else b""
    check(len(whole) in (0, UNIT), "a read of a unit")
    for segment in range(8):
        count = len(host.segments[segment].now.units)
        if count:
            check(os.lseek(port.file, segment * SEGMENT, os.SEEK_DATA) == segment * SEGMENT, "no data where it is")
        if count < host.units:
            end = segment * SEGMENT + count * UNIT
            check(os.lseek(port.file, end, os.SEEK_HOLE) == end, "no hole where nothing is written")
    port.close()
    server.stop()
    return ", ".join(f"{reason} {number}" for reason, number in sorted(found.items()))


def test_extended_attributes(bench):
    """The file's extended attributes have the shape, the states, and a report, whole and by range."""
    need(getfattr="attr")
    server = FileServer(bench, "segments")
    rng = rng_of(bench.seed, "attributes")
    host = Host(report(server))
    port = FilePort(server.file)
    rounds = iter(range(400))
    host.work(port, rng, lambda: next(rounds, None) is not None)

    def attribute(name):
        return bench.run("getfattr", "--only-values", "-n", f"user.ssdlab.segments.{name}", "--absolute-names", server.file)
    shape = {"count": COUNT, "sectors": SEGMENT // 512, "bytes": SEGMENT, "write_unit": UNIT}
    for name, value in shape.items():
        check(attribute(name) == str(value), f"{name} is {attribute(name)}")
    told = report(server)
    counts = "".join(f"{state} {told['segments']['states'][state]}\n" for state in ("free", "open", "full", "closed"))
    check(attribute("states") == counts, f"states are {attribute('states')}")

    def parse(text):
        for line in text.splitlines():
            numbers, state, written = line.split()
            first, last = (numbers.split("-") + [numbers])[:2]
            yield from ((number, state, int(written)) for number in range(int(first), int(last) + 1))
    wanted = [(number, *one) for number, one in enumerate(states(told))]
    check(list(parse(attribute("report"))) == wanted, f"the report is {attribute('report')}")
    for first, last in ((0, 0), (0, COUNT - 1), *(sorted(rng.sample(range(COUNT), 2)) for _ in range(5))):
        check(list(parse(attribute(f"report.{first}-{last}"))) == wanted[first:last + 1], f"the report of {first} to {last}")
    check(list(parse(attribute("report.3"))) == wanted[3:4], "the report of one segment")
    for name in ("report.0-160", "report.9-3", "report.x", "reports", ""):
        gone = bench.attempt("getfattr", "-n", f"user.ssdlab.segments.{name}", "--absolute-names", server.file)
        check(gone.returncode == 1, f"there is an attribute {name!r}: {gone.stdout}")
    dump = bench.attempt("getfattr", "-d", "--absolute-names", server.file)
    check(dump.returncode == 0, f"getfattr: {dump.stderr} {server.said()}")
    dump = dump.stdout
    check([name for name in (*shape, "states", "report") if f"user.ssdlab.segments.{name}=" not in dump] == [], dump)
    port.close()
    server.stop()


def test_a_report_beyond_64_kib(bench):
    """A report that is longer than an attribute may be is E2BIG, and is read by ranges."""
    text = (DEVICES / "segments.toml").read_text()
    # 5,120 segments of 16 KiB, no two neighbours alike.
    for old, new in (("blocks_per_plane = 172", "blocks_per_plane = 5600"), ("pages_per_block = 16", "pages_per_block = 4"),
                     ("\nchannels = 2", "\nchannels = 1"), ("chips_per_channel = 2", "chips_per_channel = 1"),
                     ('user = "40m"', 'user = "80m"')):
        check(old in text, f"{old} is not in the description")
        text = text.replace(old, new)
    path = bench.path("many.toml")
    path.write_text(text)
    server = FileServer(bench, str(path))
    host = Host(report(server))
    file = os.open(server.file, os.O_RDWR)
    for segment in range(host.count):
        os.pwrite(file, bytes(host.unit * (1 + segment % 2)), host.offset(segment, 0))
    names = os.listxattr(server.file)
    whole = states(report(server))
    length = sum(len(f"{number} {state} {written}\n") for number, (state, written) in enumerate(whole))
    name = "user.ssdlab.segments.report"
    check(length > 65536 and name not in names, f"a report of {length} bytes is listed")
    try:
        os.getxattr(server.file, name)
        raise Failed(f"a report of {length} bytes was given")
    except OSError as error:
        check(error.errno == errno.E2BIG, f"errno {error.errno}, expected E2BIG")
    parts = b""
    for first in range(0, host.count, 2048):
        parts += os.getxattr(server.file, f"{name}.{first}-{min(first + 2048, host.count) - 1}")
    wanted = "".join(f"{number} {state} {written}\n" for number, (state, written) in enumerate(whole))
    check(parts.decode() == wanted, "the ranges of the report are not the report")
    os.close(file)
    server.stop()
    return f"{host.count} segments, {length} bytes"


def test_order_on_the_file(bench):
    """Many writes in flight on the file, and writes that the kernel splits, reach the drive in the order of arrival."""
    need(fio="fio")
    server = FileServer(bench, "segments-medium")
    segment = report(server)["segments"]["bytes"]
    check(segment == 2 * MIB, f"segments of {segment} bytes")
    job = ["--ioengine=libaio", "--direct=1", "--iodepth=32", "--rw=write", "--verify=crc32c", "--verify_fatal=1",
           f"--filename={server.file}", f"--randseed={bench.seed}"]
    bench.run("fio", "--name=small", "--bs=16k", "--size=64m", *job, timeout=120)
    bench.run("fio", "--name=split", "--bs=2m", "--size=64m", "--offset=64m", *job, timeout=120)
    file = os.open(server.file, os.O_RDWR)
    with mmap.mmap(-1, segment) as buffer:
        buffer[:] = rng_of(bench.seed).randbytes(segment)
        check(os.pwrite(file, buffer, 128 * MIB) == segment, "a write of a segment is short")
        check(os.pread(file, segment, 128 * MIB) == buffer[:], "a segment holds something else")
    os.close(file)
    told = report(server)
    check(told["segments"]["states"]["full"] == 65, f"states are {told['segments']['states']}")
    check(not any(told["refused"].values()), f"refused: {told['refused']}")
    server.stop()


def test_tools(bench):
    """nbdinfo tells sizes and what is written; fio appends; nbdcopy reads the whole drive where unwritten sectors read as zeroes."""
    need(nbdinfo="libnbd-bin", nbdcopy="libnbd-bin", fio="fio")
    server = bench.serve("segments")

    def fio(uri):
        return bench.run("fio", "--name=append", "--ioengine=nbd", f"--uri={uri}", "--rw=write", "--bs=64k", "--iodepth=16",
                         "--size=10m", "--verify=crc32c", "--verify_fatal=1", f"--randseed={bench.seed}")

    def extents(uri):
        found = json.loads(bench.run("nbdinfo", "--map", "--json", uri))
        return [(one["offset"], one["length"], one["type"]) for one in found]
    export = json.loads(bench.run("nbdinfo", "--json", server.uri))["exports"][0]
    sizes = [export[f"block_size_{size}"] for size in ("minimum", "preferred", "maximum")]
    check(sizes == [UNIT, UNIT, SEGMENT], f"block sizes are {sizes}")
    for key, value in {"can_zero": False, "can_trim": True, "can_flush": True, "can_fua": True, "is_read_only": False}.items():
        check(export[key] is value, f"{key} is {export[key]}")
    # A hole that is not said to read as zeroes: a read of it is refused.
    check(extents(server.uri) == [(0, 40 * MIB, 1)], f"the map is {extents(server.uri)}")
    fio(server.uri)
    check(extents(server.uri) == [(0, 10 * MIB, 0), (10 * MIB, 30 * MIB, 1)], f"the map is {extents(server.uri)}")
    copied = bench.attempt("nbdcopy", server.uri, bench.path("back"))
    check(copied.returncode != 0 and "Invalid argument" in copied.stderr, f"nbdcopy: {copied.returncode} {copied.stderr}")
    server.stop()

    zeroes = bench.serve("segments", image="zeroes", options=["--set", "interface.read_unwritten=zeroes"])
    client = nbd.Client(zeroes.socket)
    data = rng_of(bench.seed, "zeroes").randbytes(3 * SEGMENT + 5 * UNIT)
    for number in range(0, len(data), UNIT):
        client.write(SEGMENT + number, data[number:number + UNIT])
    check(extents(zeroes.uri) == [(0, SEGMENT, 3), (SEGMENT, len(data), 0), (SEGMENT + len(data), 39 * MIB + 3 * SEGMENT - len(data), 3)],
          f"the map is {extents(zeroes.uri)}")
    bench.run("nbdcopy", zeroes.uri, bench.path("whole"))
    wanted = bytes(SEGMENT) + data
    check(bench.path("whole").read_bytes() == wanted + bytes(40 * MIB - len(wanted)), "the copy holds something else")
    check(client.read(39 * MIB, SEGMENT) == bytes(SEGMENT), "what is not written does not read as zeroes")
    client.close()
    # Onto a drive: in order, by one connection, one request at a time.
    other = bench.serve("segments", image="other")
    bench.run("nbdcopy", "--synchronous", "--connections=1", "--flush", bench.path("whole"), other.uri)
    check(report(other)["segments"]["states"]["full"] > 0, "nothing was copied")
    bench.run("nbdcopy", other.uri, bench.path("again"))
    check(bench.path("again").read_bytes() == bench.path("whole").read_bytes(), "the second copy holds something else")
    zeroes.stop()
    other.stop()


def metrics(server):
    """The metrics for Prometheus, as {name with labels: value}."""
    address = re.search(r"http://\S+/metrics", server.said())[0]
    with urllib.request.urlopen(address, timeout=30) as answer:
        lines = answer.read().decode().splitlines()
    return {line.rsplit(" ", 1)[0]: float(line.rsplit(" ", 1)[1]) for line in lines if not line.startswith("#")}


def test_stat_and_metrics(bench):
    """`stat --segments`, as text and by selection, `stat` and the metrics say the same."""
    server = bench.serve("segments", options=["--prometheus", "127.0.0.1:0"])
    host = Host(report(server))
    port = NbdPort(server.socket, 2)
    rounds = iter(range(500))
    rng = rng_of(bench.seed, "stat")
    host.work(port, rng, lambda: next(rounds, None) is not None)
    told = report(server)

    def stat(*options, status=0):
        return bench.run(bench.ssdlab, "stat", "--segments", *options, server.control, status=status)
    lines = stat().splitlines()
    counts = ", ".join(f"{state} {told['segments']['states'][state]}" for state in ("free", "open", "full", "closed"))
    check(lines[0] == f"segments: {COUNT} segments of {SEGMENT} bytes, write unit {UNIT} bytes", lines[0])
    check(lines[1] == f"  {counts}" and lines[2].startswith("  refused: ") and len(lines) == 3, "\n".join(lines))
    first, last = sorted(rng.sample(range(COUNT), 2))
    listed = [line.split() for line in stat("--range", f"{first}-{last}").splitlines()[4:]]
    wanted = [[str(number), state, str(written)] for number, (state, written) in enumerate(states(told))]
    check(listed == wanted[first:last + 1], f"segments {first} to {last} are listed as {listed}")
    listed = [line.split() for line in stat("--state", "open,full").splitlines()[4:]]
    check(listed == [one for one in wanted if one[1] in ("open", "full")], f"open and full segments are listed as {listed}")
    runs = report(server, "--state", "open")["segments"]["runs"]
    check(sum(run["count"] for run in runs) == told["segments"]["states"]["open"], f"the open ones are {runs}")
    for options, words in ((["--range", "0-160"], "the segments 0 to 159"), (["--drive", "other"], "expected segments"),
                           (["--state", "half"], "free, open, full, closed"), (["--range", "9-3"], "such as 7 or 0-99")):
        done = bench.attempt(bench.ssdlab, "stat", "--segments", *options, server.control)
        check(done.returncode == 2 and words in done.stderr, f"{options}: {done.returncode} {done.stderr}")
    found = metrics(server)
    for state, number in told["segments"]["states"].items():
        check(found[f'ssdlab_segments{{drive="segments",state="{state}"}}'] == number, f"the metrics have {found}")
    for reason, number in told["refused"].items():
        label = f'ssdlab_refused_commands_total{{drive="segments",set="segments",reason="{reason}"}}'
        check(found[label] == number == host.refused.get(reason, 0), f"{label} is {found.get(label)}, expected {number}")
    [of] = server.figures()["command_sets"]
    check(of["refused"] == told["refused"] and of["segments"]["states"] == told["segments"]["states"], f"JSON has {of}")
    shown = bench.run(bench.ssdlab, "stat", "-n", "1", "-i", "0.05", server.control)
    check(f"  segments: segments {counts}" in shown, f"stat shows {shown}")
    port.close()
    server.stop()
    # A drive without segments says so.
    other = bench.serve("tiny", image="other")
    done = bench.attempt(bench.ssdlab, "stat", "--segments", other.control)
    check(done.returncode == 2 and "no drive with segments" in done.stderr, f"{done.returncode} {done.stderr}")
    other.stop()


def test_under_append(bench):
    """Under the layer `append` the tools see a block device, and stat and metrics the drives' segments, by drive."""
    need(nbdinfo="libnbd-bin")
    host = bench.path("two.toml")
    host.write_text('[[layer]]\nkind = "stripe"\n' + 2 * '[[layer.below]]\nkind = "append"\nover_provisioning = "10%"\n')
    server = bench.serve("segments", options=["--host", str(host), "--prometheus", "127.0.0.1:0"])
    export = json.loads(bench.run("nbdinfo", "--json", server.uri))["exports"][0]
    check(export["can_zero"] is True and export["block_size_minimum"] == 512, f"the export is {export}")
    client = nbd.Client(server.socket)
    rng = rng_of(bench.seed, "append")
    for _ in range(60):
        client.write(rng.randrange(client.size // UNIT - 64) * UNIT, rng.randbytes(64 * UNIT))
    client.flush()
    client.close()
    drives = json.loads(bench.run(bench.ssdlab, "stat", "--segments", "--json", server.control))["drives"]
    names = [drive["drive"] for drive in drives]
    check(len(set(names)) == 2, f"the drives are {names}")
    found = metrics(server)
    for drive in drives:
        counts = drive["segments"]["states"]
        check(counts["open"] + counts["full"] > 0 and sum(counts.values()) == COUNT, f"{drive['drive']} has {counts}")
        check(not any(drive["refused"].values()), f"{drive['drive']} refused {drive['refused']}")
        states(drive)
        for state, number in counts.items():
            check(found[f'ssdlab_segments{{drive="{drive["drive"]}",state="{state}"}}'] == number, f"the metrics have {found}")
    only = json.loads(bench.run(bench.ssdlab, "stat", "--segments", "--json", "--drive", names[1], server.control))["drives"]
    check([drive["drive"] for drive in only] == names[1:], f"asked for {names[1]}, told of {only}")
    text = bench.run(bench.ssdlab, "stat", "--segments", server.control)
    check(all(f"{name}: {COUNT} segments" in text for name in names), text)
    server.stop()


def test_mount_is_refused(bench):
    """A mount of a file system on the bare drive is refused before an image is made, and the hint names `append` and --file."""
    mountpoint = bench.path("there")
    mountpoint.mkdir()
    for options in ([], ["--fs", "ext4"], ["--file", "--fs", "ext4"]):
        done = bench.attempt(bench.ssdlab, "mount", "-d", DEVICES / "segments.toml", "--image", bench.path("none"), *options, mountpoint)
        check(done.returncode == 2 and "layer 'append'" in done.stderr and "--file" in done.stderr, f"{done.returncode} {done.stderr}")
        check(not bench.path("none").exists(), "an image was made")


# Seeded bugs of the served path, and the kills within which each must be found.
BUGS = {"answer-before-files": 12, "fua-of-writes-only": 12, "flush-settles-too-little": 24}


def test_seeded_bugs_are_found(bench):
    """Seeded bugs of the served path are found by kills on answers of appends, trims with FUA and flushes, within so many kills."""
    need_seeded(bench)
    found = []
    for bug, most in BUGS.items():
        rng = rng_of(bench.seed, bug)
        server = bench.serve("segments", image=bug)
        host = Host(report(server))
        for kill in range(most):
            server.stop()
            server.bug = bug
            server.start()
            port = NbdPort(server.socket, 1)
            segment = rng.randrange(COUNT)
            if host.segments[segment].now.closed or len(host.segments[segment].now.units) == host.units:
                host.trim(port, segment)
            host.append(port, segment, 1, fua=True)
            # Alone: what comes together is put into the files together.
            host.wait(port)
            if kill % 3:
                host.trim(port, segment, fua=kill % 3 == 1)
            if kill % 3 == 2:
                host.wait(port)
                host.flush(port)
            host.wait(port)
            server.kill()
            port.close()
            host.cut()
            # The report is read from a server without bugs: it must find what the other one promised.
            server.bug = None
            server.start()
            port = NbdPort(server.socket, 1)
            try:
                host.found_after_cut(port, states(report(server)))
            except Failed:
                found.append(f"{bug} by kill {kill + 1} of {most}")
                break
            finally:
                port.close()
        else:
            raise Failed(f"{bug} is not found by {most} kills")
        server.kill()
    return "; ".join(found)
