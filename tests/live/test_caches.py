"""A disk behind a solid-state cache that is killed: databases larger than the cache, and what is a hit after the next start."""

import random

import nbd
from harness import check
from test_databases import pgbench, sqlite

# A cache, and the rows of a database and a scale of pgbench that are larger; larger ones where there is time.
SMALL = (["--set", "capacity.user=24m", "--set", "flash.blocks_per_plane=18"], 16_000, 1)
LARGE = ([], 45_000, 5)

BLOCK = 4096

# Blocks that are read and written, few of them most of the time, and what of them a cache of this size holds.
HOT, ALL = 2500, 10_000
CACHE = ["--set", "capacity.user=16m", "--set", "flash.blocks_per_plane=20"]

# Commands in flight, those that fill the cache several times, and those of a look at the hits.
DEPTH, WARMING, COMMANDS = 16, 16_000, 4000

# Of the model's time.
MINUTE_NS = 60_000_000_000


class Seen:
    """What the layer of a cache had done at each cut."""

    def __init__(self, kind):
        self.kind, self.blocks = kind, 0

    def __call__(self, server):
        metrics = server.layer(self.kind)
        names = ("read_hits", "blocks_written_dirty", "blocks_written_through") if self.kind == "cache" else ("read_hits", "write_hits", "write_misses")
        self.blocks += int(sum(metrics[name] for name in names))
        check(self.blocks > 0, f"the cache had nothing to do: {metrics}")


def system(bench, kind):
    """Options of a server, rows of SQLite and a scale of pgbench."""
    sets, rows, scale = LARGE if bench.until else SMALL
    return [*bench.with_cache(kind), *sets], rows, scale


def sqlite_on(bench, kind):
    """SQLite on ext4 on a cache."""
    options, rows, _ = system(bench, kind)
    return sqlite(bench, "ext4", "wal", "full", 1, options, "cache", rows, Seen(kind))


def postgresql_on(bench, kind):
    """PostgreSQL on ext4 on a cache."""
    options, _, scale = system(bench, kind)
    return pgbench(bench, 1, options, "cache", scale, Seen(kind))


def test_sqlite_on_ssc(bench):
    """SQLite on ext4 on a solid-state cache of a disk, in write-back: a database that is larger than the cache loses nothing."""
    return sqlite_on(bench, "cache")


def test_sqlite_on_flashcache(bench):
    """The same with FlashCache on a plain drive."""
    return sqlite_on(bench, "flashcache")


def test_postgresql(bench):
    """PostgreSQL with pgbench on a solid-state cache of a disk: the same. Where there is time the seed says which of the two caches it is."""
    kinds = ["cache", "flashcache"] if bench.until else ["cache"]
    return postgresql_on(bench, random.Random(f"{bench.seed} kind").choice(kinds))


class Reader:
    """Reads and writes blocks of a served stack, most of them few, and flushes at times."""

    def __init__(self, server, kind, seed):
        self.server, self.kind = server, kind
        self.random = random.Random(seed)
        blocks = nbd.Client(server.socket).size // BLOCK
        self.blocks = self.random.sample(range(blocks), ALL)
        self.client = None

    def some(self, count):
        """So many commands, some of them in flight at a time."""
        self.client = self.client or nbd.Client(self.server.socket)
        for first in range(0, count, DEPTH):
            for _ in range(min(DEPTH, count - first)):
                self.send()
            while self.client.under_way:
                _, errno, _ = self.client.receive()
                check(errno == 0, f"a command was refused: {errno}")

    def send(self):
        """One command."""
        rng, client = self.random, self.client
        block = self.blocks[rng.randrange(HOT if rng.random() < 0.8 else ALL)]
        draw = rng.random()
        if draw < 0.7:
            client.send(nbd.READ, block * BLOCK, BLOCK)
        elif draw < 0.98:
            client.send(nbd.WRITE, block * BLOCK, BLOCK, bytes([rng.randrange(256)]) * BLOCK)
        elif draw < 0.99:
            # A part of a block goes to the disk, and what the disk then has is not what the cache had.
            client.send(nbd.WRITE, block * BLOCK, 512, bytes(512))
        else:
            client.send(nbd.FLUSH)

    def counts(self):
        """Blocks that were hits, and all that were read, since the server started."""
        metrics = self.server.layer(self.kind)
        return metrics["read_hits"], metrics["read_hits"] + metrics["read_misses"]

    def share(self):
        """The share of hits in a part of a minute, which is harder than all of it: a cache that starts cold gets warm."""
        (hits, reads), began = self.counts(), self.now()
        self.some(COMMANDS)
        took = self.now() - began
        check(took < MINUTE_NS, f"{COMMANDS} commands took {took / 1e9:.1f} s of the model's time, and not less than a minute")
        now_hits, now_reads = self.counts()
        return (now_hits - hits) / (now_reads - reads)

    def now(self):
        """The model's time, in nanoseconds."""
        return self.server.figures()["virtual_time_ns"]

    def cut(self):
        """Cuts the power in the midst of it."""
        self.some(self.random.randrange(200))
        self.client.socket.close()
        self.client = None
        self.server.kill()
        self.server.start()


def warm(bench, kind, mode):
    """A served cache of a disk that has been filled several times."""
    # A region is as small beside this disk as it is by default beside one of 75 GB.
    keys = {"region": "1m"} if kind == "cache" else {}
    server = bench.serve("cache", image=f"{kind}-{mode}", options=[*bench.with_cache(kind, mode=mode, **keys), *CACHE])
    reader = Reader(server, kind, f"{bench.seed} {kind} {mode}")
    reader.some(WARMING)
    return server, reader


def test_hits_of_ssc_after_a_restart(bench):
    """In the first minute after a power cut a solid-state cache hits at least 80 % as often as in the last minute before."""
    caches = {mode: warm(bench, "cache", mode) for mode in ("write-back", "write-through")}
    notes = []
    for _ in bench.rounds(1):
        for mode, (_, reader) in caches.items():
            before = reader.share()
            reader.cut()
            after = reader.share()
            check(before > 0.5, f"{mode}: the cache was not warm before: {before:.3f}")
            check(after >= 0.8 * before, f"{mode}: hits of {before:.3f} before and {after:.3f} after the cut")
            notes.append(f"{mode} {before:.3f} before and {after:.3f} after")
    for server, _ in caches.values():
        check("damaged" not in server.stop(), "the server found damaged contents without a fault")
    return "; ".join(notes[-4:])


def test_flashcache_in_write_through_starts_cold(bench):
    """After a power cut FlashCache in write-through has no block; a solid-state cache has many of them."""
    found = {}
    for kind in ("flashcache", "cache"):
        server, reader = warm(bench, kind, "write-through")
        before = reader.share()
        reader.cut()
        client = nbd.Client(server.socket)
        hits, reads = reader.counts()
        for first in range(0, HOT, DEPTH):
            for block in reader.blocks[first:min(first + DEPTH, HOT)]:
                client.send(nbd.READ, block * BLOCK, BLOCK)
            while client.under_way:
                client.receive()
        now_hits, now_reads = reader.counts()
        check(now_reads - reads == HOT, f"{now_reads - reads} blocks were read, and not {HOT}")
        found[kind] = (now_hits - hits) / HOT
        check(before > 0.5, f"{kind}: the cache was not warm before: {before:.3f}")
        client.close()
        check("damaged" not in server.stop(), "the server found damaged contents without a fault")
    check(found["flashcache"] == 0, f"{found['flashcache']:.3f} of the blocks were hits")
    check(found["cache"] > 0.3, f"{found['cache']:.3f} of the blocks were hits of the solid-state cache")
    return f"{found['cache']:.3f} of {HOT} blocks that are read most were hits of the solid-state cache, none of FlashCache"
