"""A file system on a drive, and file work on it. Drawn from a seed, as whole systems are.

The drive's design has a command set that a kind of file system needs; the kind's keys come from the command's table, so a
new kind, or a new key of one, is drawn without a change here.
"""

import re

import drives
import hosts
from commands import Refused
from keys import Stream
from system import System, Trial
from toml import toml

# Share of systems that have a file system.
SHARE = 0.06
# Values of keys that fit a small drive: of the random stream.
FITTING = {
    "logs": lambda r: r.choice((2, 4, 6)),
    "segment": lambda r: r.choice(("32k", "32k", "64k", "128k")),
    "cache": lambda r: r.choice(("256k", "300k", "512k", "1m", "4m", "16m")),
    "dirty_background": lambda r: f"{r.choice((1, 5, 10, 20))}%",
    "dirty_limit": lambda r: f"{r.choice((20, 40, 50, 100))}%",
}

# Command sets of drives that are only appended to.
APPENDED = ("segments", "zoned")

# What each personality takes to make it small, beside files and operations: of the random stream.
MEANS = ("512", "3k", "4k", "16k", "40k")
PERSONALITIES = {
    "dfsio": lambda r: {"mean_size": r.choice(MEANS), "append_size": "4k", "iosize": r.choice(("4k", "64k"))},
    "fileserver": lambda r: {"mean_size": r.choice(MEANS), "directory_width": r.choice((2, 20))},
    "postmark": lambda r: {"size_low": r.choice((1, 500)), "size_high": r.choice((4000, 50_000)),
                           "subdirectories": r.choice((0, 3)), "buffered": r.choice(("true", "false"))},
    "randomwrite": lambda r: {"mean_size": r.choice(("64k", "200k")), "working_set": r.choice(("0", "32k"))},
    "terasort": lambda r: {"mean_size": r.choice(MEANS), "append_size": "4k"},
    "varmail": lambda r: {"mean_size": r.choice(MEANS), "append_size": r.choice(("1k", "16k"))},
    "webproxy": lambda r: {"mean_size": r.choice(MEANS)},
    "webserver": lambda r: {"mean_size": r.choice(MEANS)},
    "wordcount": lambda r: {"mean_size": r.choice(MEANS), "append_size": "4k"},
}

# fio's words for jobs on files: of the random stream.
FIO = {
    "rw": (1, lambda r: r.choice(("read", "write", "randread", "randwrite", "rw", "randrw"))),
    "size": (1, lambda r: r.choice(("16k", "60k", "100k", "200k"))),
    "bs": (0.8, lambda r: r.choice(("512", "4k", "6k", "16k"))),
    "number_ios": (1, lambda r: r.choice((1, 20, 200))),
    "iodepth": (0.4, lambda r: r.choice((1, 4, 16))),
    "numjobs": (0.3, lambda r: r.choice((1, 2, 3))),
    "direct": (0.3, lambda r: 1),
    "fsync": (0.3, lambda r: r.choice((1, 7))),
    "fdatasync": (0.2, lambda r: 5),
    "sync": (0.1, lambda r: r.choice((1, "dsync"))),
    "end_fsync": (0.2, lambda r: 1),
    "overwrite": (0.3, lambda r: 1),
    "filename": (0.3, lambda r: r.choice(("one", "d/two"))),
    "rwmixread": (0.2, lambda r: r.choice((10, 50, 90))),
}

# Sentences of work that fails because the file system is full, and those of a drive that has faults. Both exit with 1.
FULL = ("no space is left",)
FAULTS = ("read-only", "cannot be read", "ReadOnly", "Input/output error")


def is_drawn(tables, seed):
    """Whether the system of a seed has a file system."""
    return bool(tables.file_systems) and Stream(seed, "file system").chance(SHARE)


class FileSystem(System):
    """What a seed determines."""

    def __init__(self, tables, seed):
        self.tables, self.seed = tables, seed
        r = Stream(seed, "file system", "kind")
        self.kind, needs = r.choice(sorted(tables.file_systems.items()))
        self.needs = needs
        # Without a need it takes writes anywhere: not from a drive that is only appended to.
        fits = (lambda commands: commands in needs) if needs else (lambda commands: commands not in APPENDED)
        designs = [design for design, commands in tables.commands.items() if fits(commands)]
        drive, self.geometry = drives.draw(tables, seed, 4096, r.choice(designs), faults=r.chance(0.3))
        self.drives, self.devices = {"drive.toml": drive}, ["drive.toml"]
        self.commands = tables.commands.get(drive["ftl.design"])
        self.tree, self.listed, self.sets, self.draft = None, False, [], 0
        self.workload, self.beside, self.torture = None, None, {}
        if r.chance(0.15):
            passing = [layer for layer in tables.layers if not layer.needs and layer.least == 1]
            self.tree = hosts.layer(tables, seed, "0", r.choice(passing), [{"drive": None}], 4096, 1 << 20)
        self.enlarge()
        self.draw_keys()
        self.draw_work(None, None)

    def enlarge(self):
        """A file system takes some tens of segments, which are small."""
        drive, geometry = self.drives["drive.toml"], self.geometry
        r = Stream(self.seed, "segments")
        for name in ("flash.die_capacity", "ftl.superblock", "ftl.parity"):
            drive.pop(name, None)
        # Drives of segments refuse a buffer.
        for name in ("buffer.policy", "buffer.size", "ftl.mapping_unit") if self.needs else ():
            drive.pop(name, None)
        drive["ftl.allocation"] = "dynamic"
        geometry.pages = drive["flash.pages_per_block"] = r.choice((8, 16, 32))
        geometry.blocks = drive["flash.blocks_per_plane"] = r.choice((96, 160, 256))
        for level, most in (("channels", 2), ("chips", 1), ("dies_per_chip", 1), ("planes_per_die", 1)):
            setattr(geometry, level, min(getattr(geometry, level), most))
        drive |= geometry.keys()
        drives.capacity(self.tables, self.seed, drive, geometry)

    def draw_keys(self):
        """The keys of the file system and of the host's time."""
        self.own, self.host_time = {}, {}
        share = Stream(self.seed, "fs").choice((0.1, 0.4, 1))
        for key in self.tables.keys:
            r = Stream(self.seed, key.name)
            # Segments of the default are too large for drives as small as these.
            if key.section == f"fs.{self.kind}" and (key.leaf == "segment" or r.chance(share)):
                self.own[key.leaf] = FITTING[key.leaf](r) if key.leaf in FITTING else key.value(r)
            elif key.section == "host-time" and r.chance(0.3):
                self.host_time[key.leaf] = key.value(r, most=50_000)

    def draw_work(self, _capacity, _zones):
        r = Stream(self.seed, "work")
        self.work, self.jobs = r.choice(sorted(PERSONALITIES)), None
        if r.chance(0.35):
            self.jobs = [{name: draw(r) for name, (share, draw) in FIO.items() if r.chance(share)}
                         for _ in range(r.choice((1, 1, 2)))]
        self.parameters = PERSONALITIES[self.work](r) | {"files": r.choice((1, 5, 20, 60))}
        self.parameters["threads"] = r.choice((1, 2, 7))
        self.options = {"--seed": r.randrange(1 << 32)} if r.chance(0.5) else {}
        if r.chance(0.5):
            self.options["--verify"] = None
        if r.chance(0.3):
            self.options["--cold"] = None
        if r.chance(0.1):
            self.options["--no-check"] = None
        if not self.jobs:
            self.options["--operations"] = r.choice((1, 30, 300))
            if r.chance(0.2):
                self.options["--direct"] = None

    def write(self, folder):
        super().write(folder)
        if self.jobs:
            lines = [f"[job{number}]\n" + "".join(f"{key}={value}\n" for key, value in job.items())
                     for number, job in enumerate(self.jobs)]
            (folder / "jobs.fio").write_text("".join(lines))

    def command(self, work):
        """The command that runs it, or (without work) one that only makes a file."""
        what = ["postmark"] if not work else ["--jobs", "jobs.fio"] if self.jobs else [self.work]
        words = ["files", *what, "-q", "-d", "drive.toml"]
        words += ["--fs", self.kind, "--json"]
        for option, values in (("--fs-set", self.own), ("--host-time", self.host_time)):
            for name, value in values.items():
                words += [option, f"{name}={value if isinstance(value, str) else toml(value)}"]
        if self.tree:
            words += ["--host", "host.toml"]
        if not work:
            return [*words, "--set", "files=1", "--set", "size_high=1000", "--operations", "1"]
        if not self.jobs:
            for name, value in self.parameters.items():
                words += ["--set", f"{name}={value}"]
        for option, value in self.options.items():
            words += [option] + ([] if value is None else [str(value)])
        return words

    def run(self, folder):
        return self.command(True)

    def probe(self):
        return self.command(False)

    def keys(self):
        yield from super().keys()
        yield from ((f"fs.{self.kind}.{name}", value) for name, value in self.own.items())
        yield from ((f"host-time.{name}", value) for name, value in self.host_time.items())

    def names(self, text):
        own = (f"fs.{self.kind}", "--fs", "jobs.fio", "--host-time", "file system", self.work)
        return super().names(text) or any(word in text for word in own)

    def mend(self, text):
        """Changes what a refusal names."""
        self.draft += 1
        if self.tree and ("host.toml" in text or "layer" in text or "host" in text):
            self.tree = None
            return True
        for name in self.own:
            if name in text:
                del self.own[name]
                return True
        if "segments" in text or "larger" in text:
            self.drives["drive.toml"]["flash.blocks_per_plane"] = self.geometry.blocks = 400
            self.drives["drive.toml"]["flash.pages_per_block"] = self.geometry.pages = 16
            drives.capacity(self.tables, f"{self.seed}/{self.draft}", self.drives["drive.toml"], self.geometry)
            return True
        return super().mend(text)

    def mend_work(self, text):
        """Takes the word away that a refusal of the work names; where none is, a small personality is left."""
        named = [(job, key) for job in self.jobs or () for key in job
                 if key not in ("rw", "size") and re.search(rf"\b{key}\b", text)]
        for job, key in named:
            del job[key]
        options = [option for option in self.options if option in text]
        for option in options:
            del self.options[option]
        if named or options:
            return
        self.jobs, self.parameters = None, {"files": 2}
        self.options = {"--operations": 1}

    def copy(self):
        twin = super().copy()
        twin.own, twin.host_time, twin.parameters = dict(self.own), dict(self.host_time), dict(self.parameters)
        twin.jobs = [dict(job) for job in self.jobs] if self.jobs else None
        return twin

    def smaller(self):
        """Systems with a key, a word or a parameter less."""
        for name in ("own", "host_time", "parameters"):
            for key in getattr(self, name):
                twin = self.copy()
                del getattr(twin, name)[key]
                yield twin
        for number, job in enumerate(self.jobs or ()):
            for key in [key for key in job if key not in ("rw", "size")]:
                twin = self.copy()
                del twin.jobs[number][key]
                yield twin

    def fails_rightly(self, done):
        """Whether work may fail so: it filled the file system, or the drive has faults."""
        is_faulty = any(name.startswith("flash.faults") for name in self.drives["drive.toml"])
        sentences = (*FULL, *FAULTS) if is_faulty else FULL
        return any(sentence in text for sentence in sentences for text in (done.err, done.out))


class FileTrial(Trial):
    """Runs the commands of a system with a file system."""

    def steps(self, system):
        self.system = system
        done, finding = self.accept(system)
        if finding or done is None:
            return finding
        self.outcome.accepted = True
        return self.worked(system) or self.again(system)

    def read(self, system, done):
        return None if done.interrupted else done.result()

    def do(self, step, argv):
        done, finding = super().do(step, argv)
        if finding and finding.kind in ("status", "invariant") and done.status == 1 and self.system.fails_rightly(done):
            finding = None
        return done, finding

    def repeat(self, system, step):
        self.system = system
        system.write(self.folder)
        try:
            return self.do(step, system.probe() if step == "accept" else system.run(self.folder))[1]
        except Refused:
            return None
