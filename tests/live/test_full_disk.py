"""A full disk under the image: clients hear of it, nothing is lost, and writing goes on when there is space again."""

import errno
import time

import nbd
from harness import MIB, Skipped, check, need_root
from oracle import SECTOR, Oracle, Writer, pattern


def small_disk(bench, size):
    """A tmpfs of some megabytes."""
    need_root()
    disk = bench.path("disk")
    disk.mkdir()
    done = bench.attempt("mount", "-t", "tmpfs", "-o", f"size={size}m", "tmpfs", disk)
    if done.returncode != 0:
        raise Skipped(f"no tmpfs can be mounted: {done.stderr.strip()}")
    bench.later(bench.run, "umount", "--lazy", disk)
    return disk


def fill(oracle, client, megabytes):
    """Writes from the start on, 64 KB at a time; returns how far it came and the errno that ended it."""
    step = 128
    for first in range(0, megabytes * MIB // SECTOR, step):
        version = oracle.sent(first, step, False)
        try:
            client.write(first * SECTOR, b"".join(pattern(sector, version) for sector in range(first, first + step)))
        except nbd.Error as error:
            oracle.refused(first, step)
            return first * SECTOR, error.errno
        oracle.done(first, step, version, False)
    return megabytes * MIB, None


def flush(oracle, client):
    """A flush; returns its errno, if any."""
    covered = oracle.flush_sent()
    try:
        client.flush()
    except nbd.Error as error:
        oracle.flush_failed(covered)
        return error.errno
    oracle.flush_done(covered)
    return None


def test_full_and_grown(bench):
    """Writes end with ENOSPC or EIO, reads go on, a restart finds all that was flushed, and with space it goes on."""
    disk = small_disk(bench, 20)
    server = bench.serve("small", image=disk / "image")
    client = nbd.Client(server.socket)
    oracle = Oracle(client.size // SECTOR)
    written = 0
    wrong = None
    # Flushed now and then, so that there is something that must not be lost.
    for megabytes in range(4, 48, 4):
        written, wrong = fill(oracle, client, megabytes)
        wrong = wrong or flush(oracle, client)
        if wrong:
            break
    check(wrong in (errno.ENOSPC, errno.EIO), f"a disk of 20 MB took {written // MIB} MB, error {wrong}")
    check(written >= 4 * MIB, f"it was full after {written} bytes")
    check(server.process.poll() is None, f"the server ended: {server.said()}")
    # Reads go on, of what was written and of what was not.
    oracle.look_all(client, cut=False)
    figures = server.figures()
    check(figures["failed_commands"] > 0, "no failed command is counted")

    # Power is cut while it is full: what was flushed is there.
    client.close()
    server.kill()
    oracle.cut()
    server.start()
    client = nbd.Client(server.socket)
    oracle.look_all(client, cut=True)

    # More space, the same server: writing goes on.
    bench.run("mount", "-o", "remount,size=200m", disk)
    wrong = "never tried"
    for _ in range(20):
        _, wrong = fill(oracle, client, 48)
        wrong = wrong or flush(oracle, client)
        if not wrong:
            break
        time.sleep(0.2)
    check(wrong is None, f"there is space again, and writing ends with errno {wrong}: {server.said()}")
    oracle.look_all(client, cut=False)
    client.close()
    server.kill()
    oracle.cut()
    server.start()
    client = nbd.Client(server.socket)
    oracle.look_all(client, cut=True)
    client.close()
    server.stop()
    return f"full after {figures['bytes']['write'] // MIB} MB"


def test_full_goes_on_without_restart(bench):
    """Full and grown again in one life, with many commands under way: what was acknowledged is there to the end."""
    disk = small_disk(bench, 12)
    server = bench.serve("small", image=disk / "image")
    clients = [nbd.Client(server.socket) for _ in range(2)]
    oracle = Oracle(clients[0].size // SECTOR)
    writer = Writer(oracle, clients, bench.seed, depth=16, trim=0.1)
    until = time.monotonic() + 20
    writer.run(lambda: not writer.refused and time.monotonic() < until)
    check(writer.refused, "a disk of 12 MB was never full")
    check({wrong for _, wrong in writer.refused} <= {errno.ENOSPC, errno.EIO}, f"refused with {writer.refused[:5]}")
    # Still full: more is refused, nothing is lost, reads are good.
    stop = time.monotonic() + 0.5
    writer.run(lambda: time.monotonic() < stop)
    refused = len(writer.refused)
    bench.run("mount", "-o", "remount,size=300m", disk)
    stop = time.monotonic() + 1.0
    writer.run(lambda: time.monotonic() < stop)
    writer.refused.clear()
    stop = time.monotonic() + 1.0
    writer.run(lambda: time.monotonic() < stop)
    check(not writer.refused, f"there is space, and commands are refused: {writer.refused[:5]}")
    check(flush(oracle, clients[0]) is None, "the last flush was refused")
    oracle.look_all(clients[1], cut=False)
    server.kill()
    oracle.cut()
    server.start()
    client = nbd.Client(server.socket)
    oracle.look_all(client, cut=True)
    client.close()
    server.stop()
    return f"{refused} commands refused, then none"
