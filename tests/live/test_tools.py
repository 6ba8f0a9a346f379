"""The usual NBD tools: nbdinfo, nbdcopy, qemu-img."""

import json
import random

import nbd
from harness import MIB, check, need


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
