"""The keys of descriptions, as the command lists them, and random values for them.

`ssdlab list --keys --json` gives each key's type, unit, range and words. A key that is added to the command's tables is
drawn from these without a change here.
"""

import json
import math
import random
import subprocess

# Largest value that is drawn for a count without a limit of its own, and of bytes.
COUNT_MOST = 2000
SIZE_MOST = 256 << 10
# Typical longest time; the longest that a key takes is drawn now and then.
TIME_MOST = 3_000_000
# Share of values at the ends of a range.
EDGES = 0.3
EXTREME = 0.02

TEXTS = ("x", "drive", 'a "quoted" one', "ä Ω 漢字", "back\\slash", "tab\tand\nnewline", "<b>&amp;</b>", "[section]", "#", " ")
NAMES = ("x", "d-1.2", "ä Ω 漢字", "a b", "'quoted'", '"', "<i>", "#", "=,;", "n" * 100)


class Stream(random.Random):
    """Random numbers of one purpose: those of others do not change if this one draws more."""

    def __init__(self, seed, *purpose):
        super().__init__(f"{seed}/{'/'.join(map(str, purpose))}")

    def chance(self, share):
        return self.random() < share

    def log(self, least, most):
        """A whole number whose logarithm is uniform."""
        if most <= least:
            return least
        low = max(least, 1)
        number = int(math.exp(self.uniform(math.log(low), math.log(most + 1))))
        return max(least, min(number, most))


class Key:
    """One key of a description."""

    def __init__(self, row):
        self.name = row["key"]
        self.section = row["section"]
        self.leaf = self.name.removeprefix(f"{self.section}.")
        owner = row["owner"] or {"key": None, "names": []}
        self.owner, self.owners = owner["key"], owner["names"]
        self.type, self.required = row["type"], row["required"]
        values = row["values"]
        self.least, self.most, self.step = values["least"], values["most"], values["step"]
        self.words, self.zero = values["words"], values["zero"]
        self.instead_of = row["instead_of"]

    def value(self, r, least=None, most=None):
        """A value that the key takes by itself; rules between keys are the caller's. `least` and `most` narrow it."""
        least = self.least if least is None else least
        most = self.most if most is None else most
        draw = getattr(self, "draw_" + self.type.replace(",", "").replace(" ", "_"), None)
        if draw is None:
            raise LookupError(f"{self.name}: found the type '{self.type}', expected one that keys.py draws")
        return draw(r, least, most)

    def draw_text(self, r, _least, most):
        return r.choice(NAMES if most else TEXTS)

    def draw_bool(self, r, _least, _most):
        return r.chance(0.5)

    def draw_word(self, r, _least, _most):
        return r.choice(self.words)

    draw_table_or_word = draw_word

    def draw_count(self, r, least, most, typical=COUNT_MOST):
        if most is not None and r.chance(EXTREME):
            return most
        most = typical if most is None else min(most, max(typical, least))
        if least < most and r.chance(EDGES):
            return r.choice((least, least + 1, min(least + 2, most)))
        return r.log(least, most)

    def draw_size(self, r, least, most):
        """Bytes, as a number or as text."""
        step = self.step or 512
        least = least or 0
        steps = self.draw_count(r, -(-least // step), None if most is None else most // step, max(SIZE_MOST // step, 1))
        return size_text(r, steps * step)

    def draw_size_or_percentage(self, r, least, most):
        if r.chance(0.4):
            return f"{r.choice((1, 5, 10, 25, 50, 100))}%"
        return size_text(r, r.log(least or 1, most or SIZE_MOST) // 8 * 8 or 8)

    def draw_bandwidth(self, r, least, _most):
        if self.zero and r.chance(0.1):
            return 0
        return r.choice(("64KiB/s", "1MB/s", "400MB/s", "3.5GB/s", "100GB/s", "534m", least, r.log(least, 10**10)))

    def draw_frequency(self, r, least, most):
        if r.chance(EXTREME):
            return r.choice((least, most))
        return r.choice(("87.5MHz", "1GHz", "200000kHz", 500_000_000))

    def draw_bool_or_word(self, r, _least, _most):
        return r.choice((True, False, *self.words))

    def draw_time(self, r, _least, most):
        if r.chance(0.1):
            return 0
        if r.chance(EXTREME):
            return time_text(most)
        return "1ns" if r.chance(0.1) else time_text(r.log(1, min(most, TIME_MOST)))

    def draw_time_or_range(self, r, least, most):
        if r.chance(0.2):
            low = r.log(1, min(most, TIME_MOST))
            return f"{time_text(low)}..{time_text(min(low + r.log(1, TIME_MOST), most))}"
        return self.draw_time(r, least, most)

    def draw_time_range_or_list(self, r, least, most):
        if r.chance(0.25):
            return [self.draw_time_or_range(r, least, most) for _ in range(r.randint(1, 4))]
        return self.draw_time_or_range(r, least, most)

    def draw_probability(self, r, _least, _most):
        if r.chance(0.1):
            return r.choice((0, 1, "100%"))
        share = float(f"{10 ** r.uniform(-5, -0.3):.3g}")
        return share if r.chance(0.7) else f"{share * 100:.6f}%"

    def draw_percentage(self, r, least, most):
        """Whole percent where the key has a range of them, else any share."""
        if most is not None:
            return f"{r.choice((least, most)) if r.chance(0.2) else r.randint(least, most)}%"
        return f"{r.choice((7, 15, 28, 50, 100, 200, 400))}%" if r.chance(0.6) else f"{r.uniform(5, 300):.3f}%"

    def draw_allocation(self, r, _least, _most):
        order = "".join(r.sample("cwdp", 4))
        return r.choice(("dynamic", "round-robin", f"round-robin:{order}", order))


def size_text(r, size):
    """Bytes as a description can say them."""
    if size and size % 1024 == 0 and r.chance(0.5):
        return r.choice((f"{size // 1024}k", f"{size // 1024}KiB"))
    return size


def time_text(nanoseconds):
    """A time as a description can say it."""
    for unit, worth in (("h", 3_600_000_000_000), ("min", 60_000_000_000), ("ms", 1_000_000), ("us", 1_000)):
        if nanoseconds and nanoseconds % worth == 0:
            return f"{nanoseconds // worth}{unit}"
    return f"{nanoseconds}ns"


def size_of(value):
    """The bytes that a size in a description says."""
    if isinstance(value, int):
        return value
    number = value.rstrip("KiBkmg")
    return int(float(number) * {"": 1, "k": 1 << 10, "K": 1 << 10, "m": 1 << 20, "g": 1 << 30}[value[len(number):][:1]])


class Layer:
    """A kind of layer: the devices below it, and the command sets of which it needs one of them."""

    def __init__(self, row):
        self.kind, self.needs = row["name"], row.get("needs", [])
        self.least, self.most = row["devices"]


class Tables:
    """All keys, layers and designs of a command."""

    HOST = "host.layer"

    def __init__(self, ssdlab):
        def listed(*options):
            done = subprocess.run([ssdlab, "list", *options, "--json"], capture_output=True, text=True, check=True)
            return json.loads(done.stdout)
        self.keys = [Key(row) for row in listed("--keys")]
        self.by_name = {key.name: key for key in self.keys}
        named = listed()
        self.layers = [Layer(row) for row in named if row["kind"] == self.HOST]
        # The command sets that a kind of file system needs one of.
        self.file_systems = {row["name"]: row.get("needs", []) for row in named if row["kind"] == "fs"}
        # The command set of each design that has one.
        self.commands = {row["name"]: row.get("commands") for row in named if row["kind"] == "ftl.design"}

    def drive(self):
        """The keys of a drive."""
        return [key for key in self.keys if not key.name.startswith(("host.", "fs.", "host-time."))]

    def of_layer(self, kind):
        """The keys that only layers of a kind have."""
        return [key for key in self.keys if key.section == self.HOST and kind in key.owners]

    def __getitem__(self, name):
        return self.by_name[name]

    # The command sets whose drives take no block I/O; those of the first kind take it through a layer.
    needing_layer = ("segments",)
    without_block_io = ("segments", "zoned")

    @property
    def segmented(self):
        """The designs that take no block I/O."""
        return [design for design, commands in self.commands.items() if commands in self.without_block_io]
