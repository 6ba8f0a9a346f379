"""What each kind of command promises: answered, killed at once, looked at."""

import random

import nbd
from harness import Failed, check, need_seeded
from oracle import SECTOR, Oracle, pattern

# Each kind of command by itself, as in the table of docs/serving.md: the operation, and whether it is sent with FUA.
KINDS = {
    "write": (nbd.WRITE, False),
    "write with FUA": (nbd.WRITE, True),
    "trim": (nbd.TRIM, False),
    "trim with FUA": (nbd.TRIM, True),
    "write zeroes": (nbd.WRITE_ZEROES, False),
    "write zeroes with FUA": (nbd.WRITE_ZEROES, True),
    "flush": (nbd.FLUSH, False),
    "flush with FUA": (nbd.FLUSH, True),
}

# Sectors that commands are drawn from: few, so that they meet.
WINDOW = 2048

# Seeded bugs of the served path, and the tries of each kind in which one must be found.
BUGS = {
    "answer-before-files": 3,
    "fua-of-writes-only": 3,
    "flush-settles-too-little": 3,
    "record-after-page": 10,
}


class Subject:
    """A served drive that is killed on an answer again and again."""

    def __init__(self, bench, buffer, image, bug=None):
        self.buffered = buffer != "none"
        self.server = bench.serve("tiny", image=image, options=["--set", f"buffer.policy={buffer}"], bug=bug)
        self.client = nbd.Client(self.server.socket)
        self.oracle = Oracle(self.client.size // SECTOR)

    def place(self, rng):
        """Some sectors, near the others that are drawn: mostly whole 4 KB units, whose trim changes the mapping alone."""
        count = rng.choice((1, 8, 8, 16, 64, rng.randint(1, 64)))
        first = rng.randrange(WINDOW - count)
        return (first // 8 * 8 if count % 8 == 0 else first), count

    def send(self, rng, kind, fua, place=None):
        """One command from its request to its answer; returns what follows from the answer."""
        if kind == nbd.FLUSH:
            covered = self.oracle.flush_sent()
            self.client.call(nbd.FLUSH, flags=nbd.FUA if fua else 0)
            return lambda: self.oracle.flush_done(covered)
        first, count = place or self.place(rng)
        version = self.oracle.sent(first, count, kind != nbd.WRITE)
        data = b"".join(pattern(sector, version) for sector in range(first, first + count)) if kind == nbd.WRITE else b""
        self.client.call(kind, first * SECTOR, count * SECTOR, data, nbd.FUA if fua else 0)
        durable = fua or kind == nbd.WRITE and not self.buffered
        return lambda: self.oracle.done(first, count, version, durable)

    def cut(self, rng, kind, fua):
        """Some commands, then one of a kind; the server is killed on its answer, and all sectors are looked at."""
        for _ in range(rng.randrange(4)):
            self.send(rng, *rng.choice(list(KINDS.values())))()
        if kind == nbd.FLUSH:
            for _ in range(rng.randint(1, 3)):
                self.send(rng, rng.choice((nbd.WRITE, nbd.TRIM, nbd.WRITE_ZEROES)), False)()
        place = self.place(rng)
        if kind in (nbd.TRIM, nbd.WRITE_ZEROES):
            # Something is there that could come back.
            self.send(rng, nbd.WRITE, True, place)()
        answered = self.send(rng, kind, fua, place)
        self.server.process.kill()
        answered()
        self.server.process.wait(timeout=30)
        self.client.socket.close()
        self.oracle.cut()
        self.server.start()
        self.client = nbd.Client(self.server.socket)
        self.oracle.look_all(self.client, cut=True)


def kept(bench, buffer):
    """Each kind of command keeps its promise."""
    tries = bench.tries or 8
    for name, (kind, fua) in KINDS.items():
        rng = random.Random(f"{bench.seed} {name} {buffer}")
        subject = Subject(bench, buffer, name.replace(" ", "-"))
        for number in range(tries):
            try:
                subject.cut(rng, kind, fua)
            except Failed as failed:
                raise Failed(f"{name}, kill {number}: {failed}") from None
        subject.client.close()
        subject.server.stop()
    return f"{len(KINDS)} kinds, {tries} kills each"


def test_kept_with_a_buffer(bench):
    """Each kind of command keeps what its answer promises when the server is killed on that answer."""
    return kept(bench, "lru")


def test_kept_without_a_buffer(bench):
    """The same on a drive without a write buffer."""
    return kept(bench, "none")


def test_seeded_bugs_are_found(bench):
    """Seeded bugs of the served path are found by the same kills, each within a stated number of tries."""
    need_seeded(bench)
    found = []
    for bug, tries in BUGS.items():
        rng = random.Random(f"{bench.seed} {bug}")
        subject = Subject(bench, "lru", bug, bug=bug)
        kills = 0
        try:
            for _ in range(tries):
                for kind, fua in KINDS.values():
                    kills += 1
                    subject.cut(rng, kind, fua)
            raise LookupError(f"{bug} is not found by {kills} kills")
        except Failed:
            found.append(f"{bug} by kill {kills} of {tries * len(KINDS)}")
        except LookupError as missed:
            raise Failed(str(missed)) from None
        if subject.server.process.poll() is None:
            subject.server.kill()
    check(len(found) == len(BUGS), "a bug was left out")
    return "; ".join(found)
