"""A whole system: drives, layers above them, a workload, and the commands that run it. Drawn from a seed."""

import copy
import json
import re
import shlex

import drives
import hosts
import workloads
from commands import Finding, Refused, judge, unlike
from keys import Stream, size_of
from toml import description, toml

# How traces are sent.
REPLAYS = ("closed:1", "closed:8", "closed:64", "closed:1000", "timed", "timed*0.001", "timed*50")
# Changes of a draft that is refused, at most.
DRAFTS = 10

# Options of `run` that are not drawn, and why.
NOT_DRAWN = {
    "--help": "prints a text",
    "--device": "every command has it",
    "--workload": "every run has it",
    "--host": "drawn with the layers",
    "--quiet": "every command has it: there is no terminal",
}
# Options of `torture` that are not drawn, and why.
NOT_DRAWN_OF_TORTURE = {
    "--help": "prints a text",
    "--device": "every command has it", "--host": "drawn with the layers", "--set": "drawn with the drive",
    "--quiet": "every command has it: there is no terminal", "--save": "every command has it", "--jobs": "always 1",
    "--stacks": "draws drives of its own: make torture", "--drivers": "draws drives of its own: make torture",
    "--command-set": "draws drives of its own: make torture", "--exhaustive": "draws drives of its own: make torture",
    "--design": "replaces the drive's: make torture", "--buffer": "replaces the drive's: make torture",
    "--replay": "runs what a finding saved",
    "--fs": "draws drives of its own: make torture", "--fs-set": "goes with --fs",
}


def options_of_run():
    """Options of `run` with the share of systems that have them and their value; the order is that of drawing."""
    return {
        "--verify": (0.4, None),
        "--latency-breakdown": (0.3, None),
        "--slowest": (0.12, lambda r, s: r.choice((1, 10, 1000))),
        "--precondition": (0.45, precondition),
        "--no-snapshot": (0.4, None),
        "--precondition-below": (0.1, None),
        "--replay": (0.6, lambda r, s: r.choice(REPLAYS)),
        "--wrap": (0.85, None),
        "--fit": (0.7, None),
        "--limit": (0.08, lambda r, s: r.choice((1, 30, 200))),
        "--seed": (0.8, lambda r, s: r.choice((0, (1 << 64) - 1, r.randrange(1 << 32)))),
        "--out": (0.2, lambda r, s: "out"),
        "--json": (0.6, None),
        "--jobs": (0.1, lambda r, s: r.choice((1, 2))),
        "--timeline-interval": (0.1, lambda r, s: r.choice(("1us", "1ms", "10s"))),
        "--trace-window": (0.3, lambda r, s: r.choice(("0ms..1ms", "1us..2us", "10ms..20s"))),
        "--vcd": (0.05, lambda r, s: r.choice(("lines.vcd", "lines.vcd.gz"))),
        "--rb-probe": (0.1, lambda r, s: r.choice((None, "0", "ch0.chip0.die0"))),
        "--subtests": (0.08, lambda r, s: r.choice(("3x64k", "64k", "5x16k:level", "1m"))),
        "--initial": (0.3, lambda r, s: "initial"),
        "--memory": (0.1, lambda r, s: r.choice(("1g", "512m", "256m"))),
        "--vary": (0.04, lambda r, s: r.choice(("interface.queue_depth=1,4", "gc.victim=greedy,fifo", "name=one,two"))),
        "--repeat": (0.04, lambda r, s: r.choice((1, 2, 3))),
        "--title": (0.04, lambda r, s: r.choice(("two words", "over 100 %", "\u00fc <b>"))),
        "--env": (0.3, lambda r, s: f"SIZE={r.choice(('4k', '512', '16k'))}"),
    }


def precondition(r, system):
    """How the drives are brought to a state: to a steady one only where that does not take thousands of passes."""
    how = r.choice(("none", *4 * ("fill",), *3 * ("footprint",), "steady", "workload", "steady:workload"))
    by = {"steady": system.workload, "steady:workload": system.beside}.get(how)
    return "fill" if by and (system.tree or not workloads.writes_much(by, system.capacity)) else how


OPTIONS_OF_TORTURE = {
    "--seeds": (1, lambda r, s: r.choice((1, 2, 3))),
    "--ops": (1, lambda r, s: r.choice((10, 30, 60, 100))),
    "--seed": (1, lambda r, s: r.randrange(1 << 40)),
    "--until": (0.1, lambda r, s: r.choice(("100ms", "300ms"))),
    "--memory": (0.1, lambda r, s: "512m"),
    "--json": (0.1, None),
}

# Options that cannot stand beside one that is drawn before, or that need one, and what only traces or hosts have.
EXCLUDED = {
    "--fit": ("--wrap",), "--limit": ("--subtests",), "--vary": ("--vcd", "--rb-probe"), "--repeat": ("--vcd", "--trace-window"),
}
NEEDED = {"--trace-window": "--out", "--initial": "--subtests", "--precondition-below": "--host"}
OF_TRACES = ("--replay", "--wrap", "--fit")


class System:
    """What a seed determines: plain values, of which a shrinker takes parts away."""

    def __init__(self, tables, seed):
        self.tables, self.seed = tables, seed
        r = Stream(seed, "system")
        drive, self.geometry = drives.draw(tables, seed)
        self.drives = {"drive.toml": drive}
        self.devices = ["drive.toml"]
        self.tree, self.listed = None, r.chance(0.5)
        self.sets = []
        self.draft = 0
        design = drive.get("ftl.design", tables["ftl.design"].words[0])
        self.commands = tables.commands.get(design)
        self.draw_others(r)
        self.draw_host()
        self.draw_sets(r)
        self.workload, self.beside = None, None
        self.options, self.torture = {}, {}

    def draw_others(self, r):
        """Other drives, which a tree names or which are compared with the first."""
        if self.commands or not r.chance(0.25):
            return
        page_size = size_of(self.drives["drive.toml"]["flash.page_size"])
        designs = [name for name in self.tables["ftl.design"].words if not self.tables.commands.get(name)]
        other, _ = drives.draw(self.tables, f"{self.seed}/other", page_size, r.choice(designs))
        # Drives of one host model time, or none does.
        first = self.drives["drive.toml"]
        if "none" in (first.get("flash.timing"), other.get("flash.timing")):
            for drive in (first, other):
                for name in [name for name in drive if name.startswith("flash.timing") or name == "flash.cell"]:
                    del drive[name]
                drive["flash.timing"] = "none"
        self.drives["other.toml"] = other
        if r.chance(0.3):
            self.devices.append("other.toml")

    def draw_host(self):
        r = Stream(self.seed, "hosted", self.draft)
        must = self.commands in self.tables.needing_layer
        # Zones take workloads of their own, too.
        share = 0.5 if self.commands == "zoned" else 0.75 if self.bottoms() else 0.4
        if not (must or r.chance(share)):
            return
        others = tuple(self.drives.keys() - set(self.devices))
        unit = size_of(self.drives["drive.toml"].get("ftl.mapping_unit", self.geometry.page_size))
        capacity = drives.user_bytes(self.drives["drive.toml"], self.geometry)
        seed = f"{self.seed}/{self.draft}"
        self.tree = hosts.draw(self.tables, seed, self.commands, unit, capacity, others)
        if others and not any(node.get("drive") for node in hosts.nodes(self.tree)):
            del self.drives["other.toml"]

    def bottoms(self):
        return [layer for layer in self.tables.layers if self.commands in layer.needs]

    @property
    def zoned(self):
        """Whether the workload meets zones: layers above them make a block device."""
        return self.commands == "zoned" and not self.tree

    def draw_sets(self, r):
        """Some keys of the first drive as overrides."""
        if not r.chance(0.2) or len(self.devices) > 1:
            return
        drive = self.drives["drive.toml"]
        for name in sorted(drive):
            stream = Stream(self.seed, "set", name)
            apart = name.startswith(("flash.faults.script", "flash.timing", "flash.cell", "capacity"))
            if not apart and stream.chance(0.2):
                self.sets.append(name)

    def draw_work(self, capacity, zones):
        """The workload and the options, for a device of which the capacity is known."""
        self.capacity = capacity
        self.workload = workloads.draw(self.seed, capacity, zones)
        self.beside = workloads.draw(self.seed, capacity, zones, "beside")
        for option, (share, value) in options_of_run().items():
            r = Stream(self.seed, option)
            needed = NEEDED.get(option)
            if not r.chance(share) or any(other in self.options for other in EXCLUDED.get(option, ())):
                continue
            if needed and needed not in self.options and not (needed == "--host" and self.tree):
                continue
            if option in OF_TRACES and "lines" not in self.workload:
                continue
            if option == "--env" and not workloads.takes_variable(self.workload):
                continue
            self.options[option] = value(r, self) if value else None
        single = len(self.devices) == 1 and (not self.tree or hosts.drives(self.tree) == 1)
        for option in ("--vcd", "--rb-probe", "--trace-window"):
            if not single and Stream(self.seed, "single", option).chance(0.95):
                self.options.pop(option, None)
        if "--verify" in self.options:
            self.options.pop("--precondition-below", None)
        if "lines" in self.workload and any(":" in line for line in self.workload["lines"]):
            self.options.pop("--wrap", None)
            self.options.pop("--fit", None)
        if self.zoned and self.options.get("--precondition") not in (None, "none", "fill"):
            self.options["--precondition"] = "fill"
        for option, (share, value) in OPTIONS_OF_TORTURE.items():
            r = Stream(self.seed, "torture", option)
            if r.chance(share):
                self.torture[option] = value(r, self) if value else None

    # What it says on the command line.

    def write(self, folder):
        """Writes the files that the commands name."""
        for name, keys in self.drives.items():
            overridden = self.sets if name == "drive.toml" else ()
            kept = {key: value for key, value in keys.items() if key not in overridden or self.required(key)}
            (folder / name).write_text(description(kept))
        if self.tree:
            (folder / "host.toml").write_text(hosts.description(self.tree, self.listed))

    def required(self, name):
        return self.tables[name].required

    def system_options(self, devices):
        words = ["-q", "-d", *devices]
        for name in self.sets:
            if name not in self.drives["drive.toml"]:
                continue
            words += ["--set", f"{name}={toml(self.drives['drive.toml'][name])}"]
        if self.tree:
            words += ["--host", "host.toml"]
        return words

    def probe(self):
        """The command that says whether the system is accepted, and its capacity."""
        zoned = ["zonemode=zbd"] if self.zoned else []
        workload = ",".join(["rw=read", "number_ios=1", *zoned, *(["read_beyond_wp=1"] if zoned else ["bs=512"])])
        return ["run", *self.system_options(self.devices), "-w", workload, "--json", "--no-snapshot"]

    def run(self, folder):
        """The command that runs the workload."""
        words = ["run", *self.system_options(self.devices), "-w", workloads.argument(self.workload, folder, "workload")]
        for option, value in self.options.items():
            words.append(option)
            if value in ("workload", "steady:workload", "initial"):
                prefix = value.removesuffix("workload").removesuffix("initial")
                value = prefix + workloads.argument(self.beside, folder, "beside")
            if value is not None:
                words.append(str(value))
        return words

    def tortured(self):
        """The command that tortures the first drive below the host."""
        words = ["torture", *self.system_options(self.devices[:1]), "--jobs", "1", "--save", "case.toml"]
        for option, value in self.torture.items():
            words += [option] + ([] if value is None else [str(value)])
        return words

    def forgets(self):
        """Whether flushed data is lost, as docs/host.md says of a table in RAM, of refused flushes, of a miss that is
        not checked, and of clean blocks that are kept after a crash."""
        nodes = hosts.nodes(self.tree) if self.tree else ()
        loses = (("table", "ram"), ("flushes", "refused"), ("miss_check", "none"), ("drop_clean", "none"))
        return any(node.get("keys", {}).get(key) == value for node in nodes for key, value in loses)

    # What was accepted.

    def keys(self):
        """The keys of the system, each with its word if it has one."""
        for keys in self.drives.values():
            for name, value in keys.items():
                if name == "flash.faults.script":
                    yield name, None
                    for entry in value:
                        yield from ((f"{name}.{key}", word) for key, word in entry.items())
                else:
                    yield name, value
        for node in hosts.nodes(self.tree) if self.tree else ():
            yield "host.layer", None
            if node.get("below") is not None:
                yield "host.layer.below", None
            for key, value in node.get("keys", {}).items():
                yield f"host.layer.{key}", value
            for key in ("drive", "disk", "size", "set"):
                if node.get(key):
                    yield f"host.layer.below.{key}", None

    # A refusal.

    def names(self, text):
        """Whether an error says where the fault is: a file of the system, an option or a key."""
        files = [*self.drives, "host.toml", "workload.", "beside."]
        if any(word in text for word in files) or any(key.name in text for key in self.tables.keys):
            return True
        if re.search(r"--[a-z]{3}", text):
            return True
        # Layers, and drives of a tree, are named by what they are called there.
        return any(re.search(rf"\b{key}\b", text) for key in workloads.FIO) or "of the host" in text

    def mend(self, text):
        """Changes what a refusal of the drives or of the host names."""
        self.draft += 1
        if " of the host" in text and "other.toml" in self.drives:
            # Drives of one host are alike in some ways.
            del self.drives["other.toml"]
            self.devices = ["drive.toml"]
            self.tree = None
            self.draw_host()
            return True
        if "host.toml" in text and self.tree:
            return self.mend_host(text)
        words = re.findall(r"\b[a-z_]+(?:\.[a-z_]+)*", text)
        found = [word for word in words if word in self.tables.by_name or word == "capacity"]
        # A drive of a tree is called by its name and its number.
        file = "drive.toml"
        if "other.toml" in self.drives:
            name = self.drives["other.toml"].get("name", "other")
            if "other.toml" in text or text.startswith(f"error: {name}."):
                file = "other.toml"
        if file == "other.toml" and found and found[0] == "ftl.mapping_unit":
            # Its pages are as large as the first drive's, and no design but the first maps such pages.
            if self.drives[file].pop("ftl.design", None) is not None:
                return True
        for name in found:
            self.sets = [other for other in self.sets if other != name]
            geometry = self.geometry
            if file == "other.toml":
                geometry = drives.Geometry(f"{self.seed}/other", self.geometry.page_size)
            if drives.mend(self.tables, f"{self.seed}/{self.draft}", self.drives[file], geometry, name, text):
                return True
        return False

    def mend_host(self, text):
        """Takes the key away that a refusal names, or draws other layers."""
        found = re.search(r"layer\[(\d+)\]((?:\.below\[\d+\])*)\.([a-z_]+):", text)
        if found and found[3] not in ("kind", "below"):
            nodes = list(hosts.nodes(self.tree))
            holders = [node for node in nodes if found[3] in node.get("keys", {})]
            for node in holders:
                if f"{node['keys']['kind']}.{found[3]}" not in hosts.LARGE_DEFAULTS:
                    del node["keys"][found[3]]
            if holders:
                return True
        self.tree = None
        self.draw_host()
        return True

    def mend_work(self, text):
        """Takes the option or the key of the workload away that a refusal names."""
        jobs = self.workload.get("jobs", []) + self.beside.get("jobs", [])
        for option in self.options:
            if option in text:
                del self.options[option]
                return True
        if "--vcd, --rb-probe and --trace-window" in text or "no Ready/Busy line" in text:
            for option in ("--vcd", "--rb-probe", "--trace-window"):
                self.options.pop(option, None)
            return True
        for key in sorted(workloads.FIO, key=len, reverse=True):
            needed = key in ("rw", "number_ios", "zonemode")
            if re.search(rf"\b{key}\b", text) and not needed and any(key in job for job in jobs):
                for job in jobs:
                    job.pop(key, None)
                return True
        if any(option in self.options for option in ("--initial", "--precondition")):
            self.options.pop("--initial", None)
            self.options.pop("--precondition", None)
            return True
        self.workload = workloads.draw(f"{self.seed}/{text}", 1 << 20, None) if not self.zoned else {
            "jobs": [{"rw": "write", "bs": "64k", "number_ios": 10, "zonemode": "zbd"}], "file": False,
        }
        return True

    def smaller(self):
        """Systems with less of what only this kind has."""
        return iter(())

    def copy(self):
        """A copy of which parts can be taken away."""
        twin = copy.copy(self)
        for name in ("drives", "devices", "tree", "sets", "workload", "beside", "options", "torture"):
            setattr(twin, name, copy.deepcopy(getattr(self, name)))
        return twin


def nameless(step, text):
    """A refusal that does not say what is to be changed."""
    return Finding(step, "refusal", f"names no file, key or option: {text}")


class Outcome:
    """What came of a system."""

    def __init__(self):
        self.accepted, self.finding, self.runs, self.slow, self.refusals, self.failing = False, None, 0, 0, [], None
        self.torture_refused = False


class Trial:
    """Runs the commands of a system in a folder."""

    def __init__(self, ssdlab, folder, limits):
        self.ssdlab, self.folder, self.limits = ssdlab, folder, limits
        self.outcome = Outcome()

    def do(self, step, argv):
        """Runs a command; returns it and the finding that it is."""
        self.outcome.runs += 1
        done = self.limits.run(self.ssdlab, argv, self.folder)
        self.outcome.slow += done.interrupted
        return done, judge(step, done)

    def check(self, system):
        """All commands of a system. The outcome has the first finding."""
        outcome = self.outcome
        try:
            finding = self.steps(system)
        except Refused as refusal:
            finding = Finding("refusal", "refused twice", str(refusal))
        outcome.finding, outcome.failing = finding, system
        return outcome

    def steps(self, system):
        done, finding = self.accept(system)
        if finding or done is None:
            return finding
        self.outcome.accepted = True
        device = done.result()["devices"][0]
        # A stack of disks alone has no drive to describe.
        configuration = device["configuration"]
        capacity = size_of(configuration["capacity"]["user"]) if configuration else device["capacity"]["user_bytes"]
        zones = size_of(configuration["ftl"]["zone_size"]) if system.zoned else None
        system.draw_work(capacity, zones)
        return self.worked(system) or self.again(system) or self.torture(system)

    def accept(self, system):
        """Changes the system until it is accepted; the command that was, or nothing."""
        for _ in range(DRAFTS):
            system.write(self.folder)
            try:
                return self.do("accept", system.probe())
            except Refused as refusal:
                text = str(refusal)
                self.outcome.refusals.append(text)
                if not system.names(text):
                    return None, nameless("accept", text)
                finding = self.torture_refused(system)
                if finding:
                    return None, finding
                if not system.mend(text):
                    break
        return None, None

    def torture_refused(self, system):
        """What `run` refuses torture may take smaller, or refuses too; it ends."""
        if system.draft or system.forgets() or not Stream(system.seed, "torture refused").chance(0.3):
            return None
        system.torture = {"--seeds": 1, "--ops": 20, "--seed": system.seed % 1000}
        try:
            return self.do("torture refused", system.tortured())[1]
        except Refused as refusal:
            return None if system.names(str(refusal)) else nameless("torture refused", refusal)

    def worked(self, system):
        """The workload's run. What is refused of the workload and the options is taken away."""
        for _ in range(DRAFTS):
            try:
                self.ran, finding = self.do("run", system.run(self.folder))
                return finding
            except Refused as refusal:
                text = str(refusal)
                self.outcome.refusals.append(text)
                if not system.names(text):
                    return nameless("run", text)
                system.mend_work(text)
        self.ran = None
        return None

    def again(self, system):
        """The same run gives the same result, from a snapshot, too."""
        if self.ran is None or self.ran.status != 0 or not Stream(system.seed, "again").chance(0.3):
            return None
        return self.same(system, self.ran)

    def same(self, system, before):
        """Runs it once more and compares."""
        first = self.read(system, before)
        if first is None:
            return None
        done, finding = self.do("again", system.run(self.folder))
        if finding:
            return finding
        if done.interrupted:
            return None
        differences = unlike(first, self.read(system, done))
        return Finding("again", "another result", "; ".join(differences[:3]), done) if differences else None

    def read(self, system, done):
        """The results of a run, if it left any and came to its end."""
        if done.interrupted:
            return None
        if "--json" in system.options:
            return done.result()
        if "--out" in system.options:
            return json.loads((self.folder / "out" / "result.json").read_text())
        return None

    def torture(self, system):
        """Power cuts on the drive below the host, and the case of a finding once more."""
        if system.zoned or system.forgets() or not Stream(system.seed, "tortured").chance(0.4):
            return None
        (self.folder / "case.toml").unlink(missing_ok=True)
        try:
            done, finding = self.do("torture", system.tortured())
        except Refused as refusal:
            self.outcome.torture_refused = True
            return None if system.names(str(refusal)) else nameless("torture", refusal)
        if finding and finding.kind == "torture" and (self.folder / "case.toml").exists():
            try:
                _, repeated = self.do("replay", ["torture", "-q", "--replay", "case.toml"])
                if not repeated:
                    finding.message += " (its saved case finds nothing)"
            except Refused as refusal:
                finding.message += f" (its saved case is refused: {refusal})"
        return finding

    def repeat(self, system, step):
        """The command of one step alone, for shrinking: its finding, or None."""
        system.write(self.folder)
        try:
            if step == "accept":
                return self.do(step, system.probe())[1]
            if step == "run":
                return self.do(step, system.run(self.folder))[1]
            if step == "again":
                done, finding = self.do("run", system.run(self.folder))
                return finding or self.same(system, done)
            return self.do(step, system.tortured())[1]
        except Refused:
            return None


def line(ssdlab, argv):
    """A command as a shell reads it."""
    return shlex.join([str(ssdlab), *map(str, argv)])
