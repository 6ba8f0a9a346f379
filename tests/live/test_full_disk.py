"""A full disk under the image: clients hear of it, nothing is lost, and writing goes on when there is space again."""

import errno
import os
import random
import threading
import time

import nbd
from harness import MIB, Failed, Skipped, check, need_root, wait_for
from oracle import SECTOR, Oracle, Writer, pattern


def small_disk(bench, size, name="disk"):
    """A tmpfs of some megabytes."""
    need_root()
    disk = bench.path(name)
    disk.mkdir(parents=True)
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


def look_again(server, oracle):
    """Starts the server after a cut, and looks at every sector; returns the client that did."""
    server.start()
    client = nbd.Client(server.socket)
    oracle.look_all(client, cut=True)
    return client


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
    client = look_again(server, oracle)

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
    client = look_again(server, oracle)
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
    full, space = "warning: small: the disk under its image is full", "note: small: the disk under its image has space again"
    wait_for(lambda: full in server.said(), "the server to say that the disk is full")
    conditions = [(one["of"], one["what"]) for one in server.figures()["conditions"]]
    check(len(conditions) == 1 and conditions[0][1].startswith("the disk under its image is full"), f"{conditions}")
    shown = bench.run(bench.ssdlab, "stat", "-n", "1", "-i", "0.1", server.control)
    check("\n  small: the disk under its image is full" in shown, f"stat shows {shown}")
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
    wait_for(lambda: space in server.said(), "the server to say that there is space")
    check(server.said().index(full) < server.said().index(space), f"out of order: {server.said()}")
    check(server.figures()["conditions"] == [], f"{server.figures()['conditions']}")
    check(flush(oracle, clients[0]) is None, "the last flush was refused")
    oracle.look_all(clients[1], cut=False)
    server.kill()
    oracle.cut()
    client = look_again(server, oracle)
    client.close()
    server.stop()
    return f"{refused} commands refused, then none"


def test_a_mirror_drops_a_full_side(bench):
    """The disk under one side is full: clients hear nothing of it, and the log and `stat` say which side was dropped and why."""
    host = bench.path("mirror.toml")
    host.write_text('[[layer]]\nkind = "mirror"\ndrives = 2\n', encoding="utf-8")
    small_disk(bench, 12, "image/small.1")
    server = bench.serve("small", options=["--host", str(host)])
    client = nbd.Client(server.socket)
    oracle = Oracle(client.size // SECTOR)
    for megabytes in range(4, 33, 4):
        check(fill(oracle, client, megabytes) == (megabytes * MIB, None), f"{megabytes} MB: {server.said()}")
        check(flush(oracle, client) is None, f"a flush fails at {megabytes} MB: {server.said()}")
    dropped = "mirror: degraded: side small.1 was dropped: there was no space for its image"
    wait_for(lambda: f"warning: {dropped}" in server.said(), "the server to say that a side was dropped")
    check("warning: small.1: the disk under its image is full" in server.said(), f"the disk is not told: {server.said()}")
    shown = bench.run(bench.ssdlab, "stat", "-n", "1", "-i", "0.1", server.control)
    check(f"\n  {dropped}\n" in shown, f"stat shows {shown}")
    oracle.look_all(client, cut=False)
    # Started anew with space the side is made equal again.
    bench.run("mount", "-o", "remount,size=200m", bench.path("image") / "small.1")
    client.close()
    server.stop()
    server.start()
    client = nbd.Client(server.socket)
    oracle.look_all(client, cut=False)
    wait_for(lambda: (server.figures()["conditions"], client.flush())[0] == [], "the side to be in sync again")
    client.close()
    server.stop()


def test_stop_on_a_full_disk(bench):
    """A server that cannot flush when it is stopped says so with status 1; what a flush covered is there at the next start."""
    disk = small_disk(bench, 24)
    server = bench.serve("small", image=disk / "image")
    oracle = Oracle(nbd.Client(server.socket).size // SECTOR)
    client = nbd.Client(server.socket)
    check(fill(oracle, client, 2) == (2 * MIB, None), "two megabytes fit")
    check(flush(oracle, client) is None, "the flush fits")
    ballast = Ballast(disk)
    ballast.fill()
    fill(oracle, client, 8)
    check(flush(oracle, client) == errno.ENOSPC, "the disk is full")
    server.process.terminate()
    status = server.process.wait(timeout=60)
    check(status == 1, f"expected status 1, found {status}: {server.said()}")
    check("could not be flushed: no space left for the image" in server.said(), f"it is not said: {server.said()}")
    oracle.cut()
    ballast.free()
    ballast.close()
    client = look_again(server, oracle)
    client.write(0, b"\x11" * 4096)
    client.flush()
    server.stop()


class Ballast:
    """A file that takes all the space of a disk, or none."""

    def __init__(self, disk):
        self.disk = disk
        self.file = os.open(disk / "ballast", os.O_CREAT | os.O_WRONLY, 0o600)

    def fill(self, leave=0):
        """Takes what is free, but for some bytes."""
        for _ in range(100):
            found = os.statvfs(self.disk)
            free = found.f_bavail * found.f_frsize - leave
            if free <= 0:
                return
            try:
                os.posix_fallocate(self.file, 0, os.fstat(self.file).st_blocks * 512 + free)
            except OSError:
                pass

    def free(self):
        """Gives it all back."""
        os.truncate(self.file, 0)

    def close(self):
        """The file is closed; it stays."""
        os.close(self.file)


# Drives of different designs and buffers.
DRIVES = {
    "page": [], "unbuffered": ["buffer.policy=none"], "dftl": ["ftl.design=dftl", "ftl.mapping_unit=4k"],
    "fast": ["ftl.design=fast", "ftl.mapping_unit=4k", "ftl.allocation=dynamic"],
    "mvftl": ["ftl.design=mvftl", "ftl.mapping_unit=4k"], "superblocks": ["ftl.superblock=drive", "ftl.parity=page", "capacity.user=1m"],
}


def test_kill_full(bench):
    """Killed while others fill the disk under the image and free it: what was promised is there, and it goes on with space."""
    # Space for all images, when nothing else takes it.
    disk = small_disk(bench, 48)
    ballast = Ballast(disk)
    bench.later(ballast.close)
    subjects = {}
    for name, sets in DRIVES.items():
        server = bench.serve("micro", image=disk / name, options=[word for one in sets for word in ("--set", one)])
        client = nbd.Client(server.socket)
        subjects[name] = (server, Oracle(client.size // SECTOR), random.Random(f"{bench.seed} {name}"))
        client.close()
        server.stop()
    refused = kills = 0
    for number in bench.rounds(2 * len(DRIVES)):
        name = list(DRIVES)[number % len(DRIVES)]
        server, oracle, rng = subjects[name]
        server.start()
        clients = [nbd.Client(server.socket) for _ in range(rng.choice((1, 2)))]
        writer = Writer(oracle, clients, rng.random(), depth=rng.choice((1, 8, 32)), fua=rng.choice((0.1, 0.5)),
                        flush=rng.choice((0.05, 0.2)), trim=rng.choice((0.1, 0.5)), read=0.05)
        until = time.monotonic() + rng.uniform(0.1, 0.5)

        def others():
            while time.monotonic() < until:
                ballast.fill(rng.choice((0, 0, 4096, 65536)))
                time.sleep(rng.uniform(0, 0.05))
                if rng.random() < 0.6:
                    ballast.free()
                time.sleep(rng.uniform(0, 0.05))
            server.process.kill()
        power = threading.Thread(target=others)
        power.start()
        try:
            writer.run(lambda: True)
        except nbd.Gone:
            pass
        finally:
            power.join()
        kills += 1
        refused += len(writer.refused)
        wrong = {wrong for _, wrong in writer.refused}
        check(wrong <= {errno.ENOSPC}, f"{name}, kill {kills}: refused with {wrong}: {writer.refused[:5]}")
        for one in clients:
            one.socket.close()
        oracle.cut()
        server.process.wait(timeout=30)
        if rng.random() < 0.5:
            # It starts on a full disk, too.
            ballast.fill()
        else:
            ballast.free()
        try:
            client = look_again(server, oracle)
            ballast.free()
            version = oracle.sent(0, 64, False)
            client.write(0, b"".join(pattern(sector, version) for sector in range(64)))
            oracle.done(0, 64, version, False)
            check(flush(oracle, client) is None, "a flush is refused, and there is space")
            client.close()
        except Failed as failed:
            raise Failed(f"{name}, kill {kills}: {failed}") from None
        except nbd.Error as error:
            raise Failed(f"{name}, kill {kills}: there is space, and a command ends with {error}: {server.said()}") from None
        server.kill()
        oracle.cut()
    check(refused > 0, "the disk was never full")
    return f"{kills} kills, {refused} commands refused"


def test_records_on_a_full_disk(bench):
    """Trims on a full disk, whose records need space: they are refused, and with space it goes on, without a restart and after one."""
    disk = small_disk(bench, 40)
    ballast = Ballast(disk)
    bench.later(ballast.close)
    # Records of 2 KB for each trim, and blocks that are opened rarely.
    sets = ["flash.dies_per_chip=1", "flash.blocks_per_plane=64", "flash.pages_per_block=32", "capacity.user=12m", "ftl.mapping_unit=4k"]
    options = [word for one in sets for word in ("--set", one)]
    server = bench.serve("micro", image=disk / "image", options=options)
    client = nbd.Client(server.socket)
    oracle = Oracle(client.size // SECTOR)
    for _ in range(2):
        check(fill(oracle, client, 12)[1] is None, "a disk of 40 MB is full at once")
    check(flush(oracle, client) is None, "a flush is refused")
    rng = random.Random(bench.seed)

    def some(count):
        """Commands to 8 sectors each; how many were refused."""
        refused = 0
        for _ in range(count):
            first = rng.randrange(oracle.sectors // 8) * 8
            trims, fua = rng.random() < 0.5, rng.random() < 0.9
            version = oracle.sent(first, 8, trims)
            try:
                if trims:
                    client.call(nbd.TRIM, first * SECTOR, 8 * SECTOR, b"", nbd.FUA if fua else 0)
                else:
                    client.write(first * SECTOR, b"".join(pattern(sector, version) for sector in range(first, first + 8)))
            except nbd.Error as error:
                check(error.errno == errno.ENOSPC, f"refused with errno {error.errno}")
                oracle.refused(first, 8)
                refused += 1
            else:
                oracle.done(first, 8, version, trims and fua)
        return refused
    ballast.fill()
    refused = 0
    for _ in range(60):
        refused += some(500)
        if refused > 200:
            break
    check(refused > 0, "a full disk took everything")
    oracle.look_all(client, cut=False)
    ballast.free()
    check(some(300) == 0, f"there is space, and commands are refused: {server.said()}")
    oracle.look_all(client, cut=False)
    client.close()
    server.kill()
    oracle.cut()
    client = look_again(server, oracle)
    client.close()
    server.stop()
    return f"{refused} commands refused"
