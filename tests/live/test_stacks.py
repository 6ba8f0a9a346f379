"""A stack of several served drives that is killed: each image is left at a moment of its own, and the promises hold for the stack."""

import random

import nbd
from harness import Failed, check, need_seeded, wait_for
from oracle import SECTOR, Oracle, Writer, pattern

# Layers whose drives need a design of their own.
APPEND = '{ kind = "append", over_provisioning = "10%" }'
APPEND_SETS = ["ftl.design=aftl", "ftl.allocation=dynamic", "ftl.mapping_unit=4k", "buffer.policy=none", "capacity.user=3m"]
ZONED_SETS = ["ftl.design=aftl-zoned", *APPEND_SETS[1:], "ftl.max_open_zones=2", "ftl.max_active_zones=4"]
SHRD = '{ kind = "shrd", remap_entries = 16 }'
SHRD_SETS = ["ftl.design=shrd", "ftl.mapping_unit=4k", "ftl.rwlb=128k", "capacity.user=1m"]
RESTORING = 'kind = "restoring", log = 65536'


def above(kind, below):
    """A layer above devices, as a host's file has it."""
    return f'{{ kind = "{kind}", below = [{", ".join(below)}] }}'


def stacks():
    """Every layer above one, two and three drives, as (name, layers from the top, settings of the drives)."""
    yield "none", None, []
    drives = {1: '{ kind = "stripe", drives = 1, chunk = 8192 }', 2: '{ kind = "stripe", drives = 2, chunk = 8192 }',
              3: '{ kind = "stripe", drives = 3, chunk = 8192 }'}
    for count, stripe in drives.items():
        yield f"stripe-{count}", stripe, []
        yield f"scheduler-{count}", f'{{ kind = "scheduler", depth = 4 }}, {stripe}', []
        restore = "lsdm" if count == 2 else "ressd"
        yield f"restoring-{count}", f'{{ {RESTORING}, restore = "{restore}" }}, {stripe}', []
        unbuffered = ["buffer.policy=none"]
        yield f"restoring-{count}-unbuffered", f'{{ {RESTORING}, restore = "ressd" }}, {stripe}', unbuffered
        yield f"append-{count}", above("stripe", [APPEND] * count), APPEND_SETS
        yield f"append-zoned-{count}", above("stripe", [APPEND] * count), ZONED_SETS
        yield f"shrd-{count}", above("stripe", [SHRD] * count), SHRD_SETS
    for count in (2, 3):
        mirror = f'{{ kind = "mirror", drives = {count}, region = 65536 }}'
        yield f"mirror-{count}", mirror, []
        yield f"restoring-mirror-{count}", f"{{ {RESTORING} }}, {mirror}", []
        yield f"mirror-append-{count}", above("mirror", [APPEND] * count), APPEND_SETS
        yield f"mirror-append-zoned-{count}", above("mirror", [APPEND] * count), ZONED_SETS
        yield f"mirror-shrd-{count}", above("mirror", [SHRD] * count), SHRD_SETS
    disk = '{ disk = "wd1502faex", size = "512k", set = ["disk.write_cache.bytes=64k"] }'
    yield "disk", f'{{ kind = "scheduler", policy = "deadline", below = [{disk}] }}', []
    yield "mirror-disk", above("mirror", ["{}", disk]), []
    yield "restoring-disk", f"{{ {RESTORING}, below = [{disk}] }}", []
    # A quarter of the disk: blocks are dropped, replaced and cleaned all the time.
    small = ["capacity.user=128k", "ftl.mapping_unit=4k"]
    cache = ["ftl.design=ssc", "ftl.addresses=512k", "ftl.allocation=dynamic", *small]
    for mode in ("write-back", "write-through"):
        keys = f'mode = "{mode}", below = [{{}}, {disk}]'
        yield f"cache-{mode}", f'{{ kind = "cache", clean_batch = "16k", region = "64k", sequential = "32k", {keys} }}', cache
        yield f"flashcache-{mode}", f'{{ kind = "flashcache", set = 8, skip_sequential = "32k", {keys} }}', small
    yield "mirror-restoring", above("mirror", [f"{{ {RESTORING} }}", "{}"]), []


class Subject:
    """A served stack whose power is cut again and again, and what it may hold."""

    def __init__(self, bench, stack, rng, pace="none", bug=None):
        name, layers, sets = stack
        self.rng, self.oracle = rng, None
        if pace == "none":
            # Some drives do everything at once, others keep virtual time.
            sets = [*sets, *(["flash.timing=none"] if rng.random() < 0.5 else [])]
        options = [word for one in sets for word in ("--set", one)]
        if layers:
            host = bench.path(f"{name}.toml")
            host.write_text(f"layer = [{layers}]\n", encoding="utf-8")
            options += ["--host", str(host)]
        # A name for each: a Unix socket's path is short.
        self.server = bench.serve("micro", pace=pace, image=f"{name}{'-bug' if bug else ''}", options=options, bug=bug)
        self.counts = {}
        self.look()

    def look(self):
        """Looks at every sector."""
        client = nbd.Client(self.server.socket)
        if self.oracle is None:
            self.oracle = Oracle(client.size // SECTOR)
        self.oracle.look_all(client, cut=True)
        client.close()

    def cut(self):
        """Kills the server while it is written to, and looks at what is there."""
        rng = self.rng
        clients = [nbd.Client(self.server.socket) for _ in range(rng.choice((1, 2)))]
        # Nothing is trimmed where a disk is below.
        trim = rng.choice((0, 0.1, 0.4)) if clients[0].flags & nbd.SEND_TRIM else 0
        writer = Writer(self.oracle, clients, rng.random(), depth=rng.choice((1, 4, 16, 32)), fua=rng.choice((0.02, 0.2, 0.5)),
                        flush=rng.choice((0.02, 0.1, 0.3)), trim=trim, read=0.02)
        # After so many answers, and not after a time: a busy machine kills as late as an idle one.
        answers = rng.choice((20, 200, 1000)) * rng.random()

        def go_on():
            if sum(writer.counts.values()) >= answers:
                self.server.process.kill()
            return True
        try:
            writer.run(go_on)
        except nbd.Gone:
            pass
        check(not writer.refused, f"commands were refused: {writer.refused[:3]}")
        for one in clients:
            one.socket.close()
        for kind, number in writer.counts.items():
            self.counts[kind] = self.counts.get(kind, 0) + number
        self.oracle.cut()
        self.server.process.wait(timeout=30)
        self.server.start()
        self.look()


def test_kill_stacks(bench):
    """Every layer above one, two and three drives keeps its promises when the server is killed under load."""
    subjects = []
    for stack in stacks():
        subjects.append((stack[0], Subject(bench, stack, random.Random(f"{bench.seed} {stack[0]}"))))
    kills = 0
    for _ in bench.rounds(2):
        for name, subject in subjects:
            kills += 1
            try:
                subject.cut()
            except Failed as failed:
                raise Failed(f"{name}, kill {kills}: {failed}") from None
    total = {}
    for _, subject in subjects:
        subject.server.stop()
        for kind, number in subject.counts.items():
            total[kind] = total.get(kind, 0) + number
    check(total["flush"] > 0 and total["fua"] > 0, f"nothing was promised: {total}")
    return f"{kills} kills of {len(subjects)} stacks; " + ", ".join(f"{number} {kind}" for kind, number in total.items())


def test_kill_stacks_in_model_time(bench):
    """The layers that write to one drive what an answer of another one promised, with answers in the model's time."""
    # These act on an answer of one drive by a write to another.
    crossing = [stack for stack in stacks() if stack[0] in ("restoring-2", "restoring-mirror-2", "mirror-2", "mirror-restoring")]
    kills = 0
    for number in bench.rounds(1):
        for stack in crossing:
            rng = random.Random(f"{bench.seed} model {stack[0]} {number}")
            subject = Subject(bench, (f"{stack[0]}-timed-{number}", stack[1], stack[2]), rng, pace="model")
            for _ in range(2):
                kills += 1
                try:
                    subject.cut()
                except Failed as failed:
                    raise Failed(f"{stack[0]}, kill {kills}: {failed}") from None
            subject.server.stop()
    return f"{kills} kills"


def test_seeded_bug_is_found(bench):
    """A layer that acts on an answer before its drive's image has what it promises is found, within 60 kills."""
    need_seeded(bench)
    stack = next(stack for stack in stacks() if stack[0] == "restoring-2")
    subject = Subject(bench, stack, random.Random(f"{bench.seed} seeded"), bug="layer-before-files")
    for kill in range(1, 61):
        try:
            subject.cut()
        except Failed as failed:
            check("sector" in str(failed) or "ended with" in str(failed), f"something else was found: {failed}")
            return f"by kill {kill} of 60"
    raise Failed("60 kills have not found it")


def test_a_mirror_at_rest(bench):
    """Without a clock and without a command, a mirror makes its sides equal after a kill; after a stop they are equal at once."""
    host = bench.path("mirror.toml")
    host.write_text('[[layer]]\nkind = "mirror"\ndrives = 2\n', encoding="utf-8")
    server = bench.serve("small", options=["--host", str(host)])
    client = nbd.Client(server.socket)
    oracle = Oracle(client.size // SECTOR)

    def degraded():
        return [condition["what"] for condition in server.figures()["conditions"]]

    for first in range(0, oracle.sectors // 2, 1024):
        version = oracle.sent(first, 1024, False)
        client.write(first * SECTOR, b"".join(pattern(sector, version) for sector in range(first, first + 1024)))
        oracle.done(first, 1024, version, False)
    covered = oracle.flush_sent()
    client.flush()
    oracle.flush_done(covered)
    server.kill()
    oracle.cut()
    server.start()
    behind = "degraded: side small.1 is behind: regions are being copied to it"
    wait_for(lambda: behind in server.said(), "the server to say that a side is behind")
    wait_for(lambda: not degraded(), "the side to be equal while no command comes")
    server.stop()
    server.start()
    check(not degraded(), f"after a stop: {degraded()}")
    client = nbd.Client(server.socket)
    oracle.look_all(client, cut=False)
    client.close()
    server.stop()
