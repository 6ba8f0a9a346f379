"""The usual NBD tools: nbdinfo, nbdcopy, qemu-img."""

import json
import random
import re
import urllib.request

import nbd
from harness import MIB, check, need, wait_for


def random_file(bench, name, size, seed):
    """A file of random bytes with some pages of zeroes among them."""
    rng = random.Random(seed)
    data = bytearray(rng.randbytes(size))
    for _ in range(size // (256 << 10)):
        at = rng.randrange(size // 4096) * 4096
        data[at:at + 4096] = bytes(min(4096, size - at))
    path = bench.path(name)
    path.write_bytes(data)
    return path


def test_nbdinfo(bench):
    """nbdinfo sees the size, what the export can do, and a map of what is written and what is not."""
    need(nbdinfo="libnbd-bin")
    server = bench.serve()
    export = json.loads(bench.run("nbdinfo", "--json", server.uri))["exports"][0]
    check(export["export-size"] == 48 * MIB, f"size {export['export-size']}")
    for key in ("can_flush", "can_fua", "can_trim", "can_zero", "can_multi_conn", "can_cache"):
        check(export[key] is True, f"{key} is {export[key]}")
    check(export["is_read_only"] is False, "it is read-only")
    check("small" in export.get("description", ""), f"the description is {export.get('description')!r}")
    listed = json.loads(bench.run("nbdinfo", "--list", "--json", server.uri))["exports"]
    check("ssdlab" in [one["export-name"] for one in listed], f"the exports are {listed}")

    empty = json.loads(bench.run("nbdinfo", "--map", "--json", server.uri))
    found = [(one["offset"], one["length"], one["type"]) for one in empty]
    check(found == [(0, 48 * MIB, 3)], f"the map of an empty drive is {found}")
    client = nbd.Client(server.socket)
    client.write(4 * MIB, b"\xa5" * MIB)
    client.trim(4 * MIB + 65536, 65536)
    client.close()
    extents = json.loads(bench.run("nbdinfo", "--map", "--json", server.uri))
    found = [(one["offset"], one["length"], one["type"]) for one in extents]
    hole = 3
    wanted = [
        (0, 4 * MIB, hole), (4 * MIB, 65536, 0), (4 * MIB + 65536, 65536, hole),
        (4 * MIB + 131072, MIB - 131072, 0), (5 * MIB, 43 * MIB, hole),
    ]
    check(found == wanted, f"the map is {found}, expected {wanted}")
    server.stop()


def test_nbdcopy(bench):
    """Random data to the drive and back with nbdcopy is the same, also after a power cut and over a new connection."""
    need(nbdcopy="libnbd-bin")
    server = bench.serve()
    source = random_file(bench, "source", 48 * MIB, bench.seed)
    bench.run("nbdcopy", "--flush", source, server.uri)
    server.kill()
    server.start()
    bench.run("nbdcopy", server.uri, "back")
    check(bench.path("back").read_bytes() == source.read_bytes(), "what came back is not what was sent")
    other = bench.serve(image="other")
    # From one drive to another: reads, writes and holes at once.
    bench.run("nbdcopy", "--flush", "--connections=4", "--requests=32", server.uri, other.uri)
    bench.run("nbdcopy", other.uri, "again")
    check(bench.path("again").read_bytes() == source.read_bytes(), "the second drive holds something else")
    server.stop()
    other.stop()


def test_qemu_img(bench):
    """qemu-img converts onto the drive and from it, compares, and finds a difference of one byte."""
    need(qemu__img="qemu-utils")
    server = bench.serve()
    source = random_file(bench, "source", 48 * MIB, f"{bench.seed} qemu")
    bench.run("qemu-img", "convert", "-n", "-f", "raw", "-O", "raw", source, server.uri)
    bench.run("qemu-img", "compare", "-f", "raw", "-F", "raw", source, server.uri)
    bench.run("qemu-img", "convert", "-f", "raw", "-O", "qcow2", server.uri, "back.qcow2")
    bench.run("qemu-img", "compare", "-f", "raw", "-F", "qcow2", source, "back.qcow2")
    client = nbd.Client(server.socket)
    page = bytearray(client.read(20 * MIB, 512))
    page[77] ^= 0x10
    client.write(20 * MIB, bytes(page))
    client.close()
    bench.run("qemu-img", "compare", "-f", "raw", "-F", "raw", source, server.uri, status=1)
    server.stop()


def mapped(bench, server):
    """What nbdinfo says is data, as (offset, length)."""
    extents = json.loads(bench.run("nbdinfo", "--map", "--json", server.uri))
    check(sum(one["length"] for one in extents) == 48 * MIB, "the map has gaps")
    return [(one["offset"], one["length"]) for one in extents if one["type"] == 0]


def test_block_status_with_driver(bench):
    """Block status follows the redirection table of SHRD's driver: before remaps, after them, and after a power cut."""
    need(nbdinfo="libnbd-bin")
    server = bench.serve(options=bench.with_driver())
    client = nbd.Client(server.socket)
    page = 4096
    pages = set()

    def write(first, count=1):
        client.write(first * page, b"\xa5" * (count * page))
        pages.update(range(first, first + count))

    def trim(first, count=1):
        client.trim(first * page, count * page)
        pages.difference_update(range(first, first + count))

    def wanted():
        runs = []
        for one in sorted(pages):
            if runs and sum(runs[-1]) == one * page:
                runs[-1] = (runs[-1][0], runs[-1][1] + page)
            else:
                runs.append((one * page, page))
        return runs

    def look(when):
        found = mapped(bench, server)
        check(found == wanted(), f"{when}: the map is {found}, expected {wanted()}")

    look("empty")
    rng = random.Random(bench.seed)
    some = rng.sample(range(2000), 24)
    for one in some:
        write(one)
    # Beyond the threshold, at its own address; two of its pages are in the log after that, and one of them beside it.
    write(4096, 64)
    write(4100)
    write(4159, 2)
    look("in the log")
    trim(some[0])
    trim(4100)
    trim(4160)
    look("trimmed")
    write(some[0])
    look("written again")
    metrics = server.figures()["host_layers"][0]["metrics"]
    check(metrics["remaps"] == 0 and metrics["table_entries"] == 25, f"the driver has {metrics}")
    # More than the log holds.
    for one in rng.sample(range(6000, 8000), 120):
        write(one)
    look("remapped")
    trim(some[1])
    client.flush()
    remaps = server.figures()["host_layers"][0]["metrics"]["remaps"]
    check(remaps > 0, "nothing was remapped")
    client.close()
    server.kill()
    server.start()
    look("after a power cut")
    server.stop()
    return f"{len(pages)} pages, {remaps:.0f} remaps"


def test_stat_with_driver(bench):
    """`stat`, its JSON and the metrics for Prometheus say what SHRD's driver did."""
    server = bench.serve(options=[*bench.with_driver(), "--prometheus", "127.0.0.1:0"])
    stat = bench.start(bench.ssdlab, "stat", "-i", "0.05", server.control)
    wait_for(lambda: "read/s" in stat.log.read_text(), "the first line of stat")
    client = nbd.Client(server.socket)
    for one in range(200):
        client.write(one % 50 * 3 * 4096, bytes([one]) * 4096)
    client.read(199 % 50 * 3 * 4096, 4096)
    client.flush()
    client.close()
    [layer] = server.figures()["host_layers"]
    taken, own = layer["taken"]["requests"], layer["metrics"]
    check((layer["kind"], layer["configuration"]["remap_entries"]) == ("shrd", "16"), f"the layer is {layer}")
    check(taken == [1, 200, 0, 1], f"it took {taken}")
    check(own["small_writes"] == own["packed_requests"] == 200, f"its metrics are {own}")
    check(own["remaps"] > 0 and own["reads_of_log"] == 1, f"its metrics are {own}")
    address = re.search(r"http://\S+/metrics", server.said())[0]
    with urllib.request.urlopen(address, timeout=30) as answer:
        text = answer.read().decode()
    for name, value in own.items():
        line = f'ssdlab_layer_metric{{layer="shrd",number="0",metric="{name}"}} {value:g}\n'
        check(line in text, f"no line {line!r} in {text}")
    line = 'ssdlab_layer_requests_total{layer="shrd",number="0",way="taken",command="write"} 200\n'
    check(line in text, f"no line {line!r} in {text}")
    line = wait_for(lambda: re.search(r"  shrd: took \d+ requests, sent .*, small_writes 200.*\n", stat.log.read_text()),
                    "stat to tell of 200 writes")
    server.stop()
    return line[0].strip()
