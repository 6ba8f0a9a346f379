"""Knows what every sector of a drive may hold after a power cut.

Each write, trim or write-zeroes gets a number, its version; a written sector holds its own number and the version, a
trimmed one zeroes. What was answered before a flush was sent is durable once the flush is answered, a command with FUA
once it is answered itself. After a cut a sector holds its newest durable version or a later one that was sent.
"""

import random
import select
import struct

import nbd
from harness import Failed

SECTOR = 512
ZEROES = bytes(SECTOR)


def pattern(sector, version):
    """The contents of a sector."""
    return struct.pack("<QQ", sector, version) * (SECTOR // 16)


class Oracle:
    """The sectors of one drive. No two commands under way may touch the same sector."""

    def __init__(self, sectors):
        self.sectors = sectors
        self.version = 0
        # Per sector: the versions it may hold, the oldest first, as (version, zeroes). The first is durable.
        self.may = [[(0, True)] for _ in range(sectors)]
        self.answered = []
        # Sectors of a command that was refused: with the power on, too, they may hold any of these.
        self.unsure = set()

    def sent(self, first, count, zeroes):
        """A command for these sectors leaves; returns its version."""
        self.version += 1
        for sector in range(first, first + count):
            self.may[sector].append((self.version, zeroes))
        return self.version

    def done(self, first, count, version, durable):
        """The command was answered well."""
        self.unsure.difference_update(range(first, first + count))
        if durable:
            self._settle(first, count, version)
        else:
            self.answered.append((first, count, version))

    def refused(self, first, count):
        """The command was answered with an error: nobody says what became of it."""
        self.unsure.update(range(first, first + count))

    def flush_sent(self):
        """A flush leaves; returns what it covers."""
        covered, self.answered = self.answered, []
        return covered

    def flush_done(self, covered):
        """It was answered well."""
        for first, count, version in covered:
            self._settle(first, count, version)

    def flush_failed(self, covered):
        """It was refused, so it promised nothing."""
        self.answered += covered

    def _settle(self, first, count, version):
        for sector in range(first, first + count):
            self.may[sector] = [entry for entry in self.may[sector] if entry[0] >= version]

    def cut(self):
        """Power is gone: what was answered and not flushed promises nothing any more."""
        self.answered = []
        self.unsure.clear()

    def look(self, first, data, cut):
        """Checks sectors as they were read. After a cut any version is good that may be there, and it stays; with the
        power on and nothing under way, only the last one is."""
        for index in range(len(data) // SECTOR):
            sector = first + index
            found = data[index * SECTOR:(index + 1) * SECTOR]
            may = self.may[sector] if cut or sector in self.unsure else self.may[sector][-1:]
            for entry in reversed(may):
                version, zeroes = entry
                if found == (ZEROES if zeroes else pattern(sector, version)):
                    if cut:
                        self.may[sector] = [entry]
                    break
            else:
                may = " or ".join(f"{version} (zeroes)" if zeroes else str(version) for version, zeroes in may)
                raise Failed(f"sector {sector} holds {told(found)}; it may hold version {may}")

    def look_all(self, client, cut, step=1024):
        """Reads the whole drive and checks it."""
        for first in range(0, self.sectors, step):
            count = min(step, self.sectors - first)
            self.look(first, client.read(first * SECTOR, count * SECTOR), cut)


def told(found):
    """What a sector's contents say of themselves."""
    sector, version = struct.unpack("<QQ", found[:16])
    if found == ZEROES:
        return "zeroes"
    if found == pattern(sector, version):
        return f"version {version} of sector {sector}"
    return f"something that was never written ({found[:32].hex()}...)"


class Writer:
    """Random commands over some connections, up to `depth` of them under way, until told to stop or the power goes."""

    def __init__(self, oracle, clients, seed, depth=16, flush=0.03, fua=0.1, trim=0.06, read=0.1, largest=64):
        self.oracle, self.clients, self.depth = oracle, clients, depth
        self.random = random.Random(seed)
        self.flush, self.fua, self.trim, self.read, self.largest = flush, fua, trim, read, largest
        self.busy = set()
        self.pending = {}
        self.counts = {"write": 0, "trim": 0, "flush": 0, "read": 0, "fua": 0}
        self.refused = []

    def run(self, go_on):
        """Sends while go_on() says so, then waits for the answers. nbd.Gone ends it at once: the power is gone."""
        while True:
            more = go_on()
            while more and len(self.pending) < self.depth and self._send():
                pass
            if not self.pending:
                if not more:
                    return
                continue
            waiting = {key[0] for key in self.pending}
            ready = [index for index in waiting if self.clients[index].buffer]
            if not ready:
                sockets = {self.clients[index].socket: index for index in waiting}
                ready = [sockets[one] for one in select.select(list(sockets), [], [], 30)[0]]
                if not ready:
                    raise Failed("no answer for 30 s")
            for index in ready:
                self._receive(index)

    def _send(self):
        rng, oracle = self.random, self.oracle
        index = rng.randrange(len(self.clients))
        client = self.clients[index]
        draw = rng.random()
        if draw < self.flush:
            covered = oracle.flush_sent()
            handle = client.send(nbd.FLUSH)
            self.pending[index, handle] = ("flush", covered)
            return True
        # Mostly whole 4 KB pages, at times any sectors.
        count = rng.choice((1, 3, 8, 8, 8, 8, 8, 16, rng.randint(1, self.largest)))
        first = rng.randrange(oracle.sectors - count + 1)
        if count % 8 == 0 and rng.random() < 0.9:
            first -= first % 8
        # Half of the commands go to an eighth of the drive.
        if rng.random() < 0.5:
            first = first // 64 * 8
        if any(sector in self.busy for sector in range(first, first + count)):
            return False
        kind = "trim" if draw < self.flush + self.trim else "read" if draw > 1 - self.read else "write"
        fua = kind != "read" and rng.random() < self.fua
        flags = nbd.FUA if fua else 0
        version = None
        self.busy.update(range(first, first + count))
        # The oracle hears of it before it leaves: it may take effect in spite of an error while it is sent.
        if kind == "read":
            handle = client.send(nbd.READ, first * SECTOR, count * SECTOR)
        elif kind == "write":
            version = oracle.sent(first, count, False)
            data = b"".join(pattern(sector, version) for sector in range(first, first + count))
            handle = client.send(nbd.WRITE, first * SECTOR, len(data), data, flags)
        else:
            version = oracle.sent(first, count, True)
            handle = client.send(rng.choice((nbd.TRIM, nbd.WRITE_ZEROES)), first * SECTOR, count * SECTOR, flags=flags)
        self.pending[index, handle] = (kind, first, count, version, fua)
        return True

    def _receive(self, index):
        handle, errno, data = self.clients[index].receive()
        kind, *what = self.pending.pop((index, handle))
        if kind == "flush":
            if errno:
                self.refused.append((kind, errno))
                self.oracle.flush_failed(what[0])
                return
            self.oracle.flush_done(what[0])
            self.counts["flush"] += 1
            return
        first, count, version, fua = what
        self.busy.difference_update(range(first, first + count))
        if errno:
            self.refused.append((kind, errno))
            if kind != "read":
                self.oracle.refused(first, count)
            return
        if kind == "read":
            self.oracle.look(first, data, cut=False)
        else:
            self.oracle.done(first, count, version, fua)
            self.counts["fua"] += fua
        self.counts[kind] += 1
