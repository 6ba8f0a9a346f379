"""Real file systems on a served drive: mounted, filled, and their power cut while they are written to."""

import pathlib
import random
import sys
import time

import file_writer
from attach import Attached, need_attach
from harness import check


class Files:
    """What a file writer said, over all its runs."""

    def __init__(self):
        self.alive, self.gone = set(), set()
        self.counter = self.replaced = 0
        self.next = 1

    def hear(self, text):
        """Takes the writer's lines; a last one that is not whole was not said."""
        for line in text.split("\n")[:-1]:
            what, number = line.split()
            number = int(number)
            if what == "file":
                self.alive.add(number)
            elif what == "gone":
                self.alive.discard(number)
                self.gone.add(number)
            elif what in ("counter", "replaced"):
                setattr(self, what, number)
        # One more may have been under way.
        self.next = max(self.alive | self.gone | {0}) + 2

    def check(self, folder):
        """Everything that was said to be durable is there."""
        for number in sorted(self.alive):
            path = folder / f"file-{number}"
            check(path.exists(), f"file-{number} was synced, and is gone")
            good = path.read_bytes() == file_writer.contents(number)
            check(good, f"file-{number} was synced, and holds something else")
        if self.counter:
            counter = int((folder / "counter").read_bytes())
            check(self.counter <= counter <= self.next, f"the counter was synced at {self.counter}, and is {counter}")
        if self.replaced:
            latest = (folder / "latest").read_bytes()
            number = int(latest[:16])
            check(number >= self.replaced, f"`latest` was replaced by {self.replaced}, and is {number}")
            check(latest[16:] == file_writer.contents(number), f"`latest` is torn: {number}")


def cuts(bench, kind, count, pace="none", options=(), mount="defaults", device="medium", takes_trims=True):
    """Cuts the power `count` times under a writer of files; a stack with a disk takes no trims."""
    need_attach(kind)
    rng = random.Random(f"{bench.seed} {kind}")
    server = bench.serve(device, pace=pace, options=list(options))
    attached = Attached(bench, server, kind, mount).attach().mkfs().mount()
    files = Files()
    done = trims = 0
    for cut in bench.rounds(count):
        log = bench.path(f"said.{cut}")
        with open(log, "wb"):
            pass
        writer = bench.start(
            sys.executable, pathlib.Path(file_writer.__file__), attached.mountpoint, files.next, rng.random(), log=log,
        )
        time.sleep(rng.uniform(0.3, 2.0))
        check(writer.poll() is None, f"the writer ended by itself: {log.read_text()[-300:]}")
        if cut % 2 and takes_trims:
            # What is gone is trimmed while the writer writes, and must not come back or take others with it.
            bench.run("fstrim", attached.mountpoint)
            time.sleep(rng.uniform(0, 0.3))
        trims += server.figures()["commands"]["trim"]
        server.kill()
        writer.wait(timeout=60)
        attached.cut_and_check()
        files.hear(log.read_text())
        files.check(attached.mountpoint)
        done += 1
    attached.unmount()
    attached.detach()
    server.stop()
    check(files.alive, "the writer got nothing done")
    check(trims > 0 or done < 2 or not takes_trims, "fstrim trimmed nothing")
    return f"{done} cuts; {len(files.alive | files.gone)} files synced; {trims} trims"


def test_ext4_power_cuts(bench):
    """ext4: after each power cut it checks clean, and every file that was synced is there."""
    return cuts(bench, "ext4", 4)


def test_ext4_power_cuts_with_driver(bench):
    """ext4 with SHRD's driver between the socket and a drive with a log, and trims of all that is deleted: the same."""
    return cuts(bench, "ext4", 3, options=bench.with_driver(user="288m"), mount="discard")


def test_ext4_power_cuts_with_append(bench):
    """ext4 on append-only segments with a host that appends, and trims of all that is deleted: the same."""
    return cuts(bench, "ext4", 3, options=bench.with_append(), mount="discard", device="segments-medium")


def test_ext4_power_cuts_on_a_cache(bench):
    """ext4 on a solid-state cache of a disk in write-through, which takes no trims: the same."""
    return cuts(bench, "ext4", 2, options=bench.with_cache("cache", mode="write-through"), device="cache", takes_trims=False)


def test_xfs_power_cuts(bench):
    """xfs: the same."""
    return cuts(bench, "xfs", 3)


def test_xfs_power_cuts_with_driver(bench):
    """xfs with SHRD's driver, and trims of all that is deleted: the same."""
    return cuts(bench, "xfs", 2, options=bench.with_driver(user="304m"), mount="discard")


def test_btrfs_power_cuts(bench):
    """btrfs: the same."""
    return cuts(bench, "btrfs", 3)
