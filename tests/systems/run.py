#!/usr/bin/env python3
"""Draws whole systems and runs the real command on them: drives, layers, faults, workloads, power cuts.

    tests/systems/run.py SSDLAB [--seed S] [--systems N] [--seconds T] [--jobs J] [--replay SEED] [--refusals]
                         [--save FOLDER]

What a description accepts must run without a panic, a broken invariant, a hang or a finding; what it refuses it must
refuse with status 2 and a message that names the file, the option or the key. Runs of one seed give the same result.
Every key that the command lists must be drawn. A failing system is shrunk and saved. Python 3.11, no packages.
"""

import argparse
import collections
import concurrent.futures
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import files  # noqa: E402
import hosts  # noqa: E402
import system as whole  # noqa: E402
import workloads  # noqa: E402
from commands import Limits  # noqa: E402
from keys import Tables  # noqa: E402
from shrink import shrink  # noqa: E402

# Systems of a run, unless it is told how many or how long.
SYSTEMS = 2000
# Most of a hundred systems that may not be accepted in the end, and first drafts that may be refused.
GIVEN_UP_PERCENT, REFUSED_PERCENT = 3, 60
# Systems after which each key must have been in an accepted one.
ENOUGH = 1500
# Seconds and commands that shrinking may take.
SHRINK_SECONDS, SHRINK_TRIES = 60, 400

# Keys that are not drawn, by their beginning, and why.
NOT_DRAWN = {}
# Keys of fio that are not drawn, and why.
NOT_DRAWN_OF_FIO = {}


class Coverage:
    """What accepted systems had."""

    def __init__(self, tables, ssdlab):
        self.tables = tables
        self.seen = {kind: set() for kind in ("keys", "words", "layers", "fio", "options of run", "options of torture")}
        self.wanted = {
            "keys": {key.name for key in tables.keys if not key.name.startswith(tuple(NOT_DRAWN))},
            "words": {(key.name, word) for key in tables.keys for word in key.words or ()},
            "layers": set(self.pairs()),
            "fio": set(workloads.documented()) - NOT_DRAWN_OF_FIO.keys(),
            "options of run": options(ssdlab, "run") - whole.NOT_DRAWN.keys(),
            "options of torture": options(ssdlab, "torture") - whole.NOT_DRAWN_OF_TORTURE.keys(),
        }

    def pairs(self):
        """What can stand on what: a layer of a command set on drives alone, others on drives and on all layers."""
        for upper in self.tables.layers:
            yield upper.kind, "drive"
            if not upper.needs:
                for lower in self.tables.layers:
                    # Its devices take block I/O, and one of them is a drive of the command.
                    if upper.kind != hosts.KEEPS_MEANING or not lower.needs:
                        yield upper.kind, lower.kind

    def add(self, system, tortured):
        for name, value in system.keys():
            self.seen["keys"].add(name)
            if isinstance(value, str) and (name, value) in self.wanted["words"]:
                self.seen["words"].add((name, value))
            # Sections that are drawn as a whole.
            section = name.rpartition(".")[0]
            if section in self.tables.by_name:
                self.seen["keys"].add(section)
        if system.tree:
            self.seen["layers"].update(hosts.pairs(system.tree))
        if system.workload:
            for job in system.workload.get("jobs", ()):
                self.seen["fio"].update(job)
            self.seen["options of run"].update(system.options)
            if system.sets:
                self.seen["options of run"].add("--set")
            if tortured:
                self.seen["options of torture"].update(system.torture)

    def missing(self):
        """For each kind what no accepted system had."""
        return {kind: self.wanted[kind] - self.seen[kind] for kind in self.wanted}

    def unknown(self):
        """What the generator draws and the command does not list."""
        kinds = ("keys", "fio", "options of run", "options of torture")
        return {kind: self.seen[kind] - self.wanted[kind] for kind in kinds}

    def text(self):
        counts = ((kind, len(wanted & self.seen[kind]), len(wanted)) for kind, wanted in self.wanted.items())
        return "; ".join(f"{kind} {seen} of {all_of_them}" for kind, seen, all_of_them in counts)


def options(ssdlab, command):
    """The long options of a command, as its help lists them."""
    text = subprocess.run([ssdlab, command, "--help"], capture_output=True, text=True, check=True).stdout
    return set(re.findall(r"^ +(?:-\w, )?(--[a-z-]+)", text, re.MULTILINE))


def alike(text):
    """A refusal without its numbers."""
    return re.sub(r"[0-9][0-9.,:]*", "N", text.splitlines()[0])[:200]


class Campaign:
    """Systems of many seeds, and what came of them."""

    def __init__(self, arguments):
        self.ssdlab = str(arguments.ssdlab.resolve())
        self.save = arguments.save
        self.tables = Tables(self.ssdlab)
        self.coverage = Coverage(self.tables, self.ssdlab)
        self.limits = Limits()
        self.lock = threading.Lock()
        self.systems = self.commands = self.slow = self.refused = self.given_up = self.failed = 0
        self.signatures = {}
        self.refusals = collections.Counter()

    def one(self, seed):
        """Draws and runs the system of a seed; says what was found."""
        folder = pathlib.Path(tempfile.mkdtemp(prefix="ssdlab-systems-"))
        try:
            kind, trial = self.kinds(seed)
            system = kind(self.tables, seed)
            outcome = trial(self.ssdlab, folder, self.limits).check(system)
            self.count(outcome, system)
            if outcome.finding:
                self.report(seed, system, outcome.finding)
            return outcome
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def kinds(self, seed):
        """What a seed determines, and what tries it."""
        if files.is_drawn(self.tables, seed):
            return files.FileSystem, files.FileTrial
        return whole.System, whole.Trial

    def count(self, outcome, system):
        with self.lock:
            self.systems += 1
            self.commands += outcome.runs
            self.slow += outcome.slow
            self.refused += bool(outcome.refusals)
            for text in outcome.refusals:
                self.refusals[alike(text)] += 1
            self.given_up += not outcome.accepted and not outcome.finding
            if outcome.accepted:
                self.coverage.add(system, not outcome.torture_refused)

    def report(self, seed, system, finding):
        with self.lock:
            self.failed += 1
            known = self.signatures.setdefault(finding.signature, [])
            known.append(seed)
            first = len(known) == 1
        print(f"systems seed {seed}: FAILED: {finding.step}: {finding.kind}: {finding.message}\n"
              f"    repeat it with: tests/systems/run.py SSDLAB --replay {seed}", flush=True)
        if first:
            self.shrunk(seed, system, finding)

    def shrunk(self, seed, system, finding):
        """Shrinks a finding of a new kind, saves it and prints the command that repeats it."""
        folder = pathlib.Path(tempfile.mkdtemp(prefix="ssdlab-systems-"))
        try:
            def repeat(smaller):
                shutil.rmtree(folder)
                folder.mkdir()
                return self.kinds(seed)[1](self.ssdlab, folder, self.limits).repeat(smaller, finding.step)
            few = 3 if finding.kind == "hang" else SHRINK_TRIES
            system, small = shrink(system, finding, repeat, SHRINK_SECONDS, few)
            if repeat(system) is None:
                small = finding
            place = self.save / str(seed)
            shutil.rmtree(place, ignore_errors=True)
            shutil.copytree(folder, place, ignore=shutil.ignore_patterns("cache", "out", "out-*"))
            argv = small.done.argv if small.done else []
            command = whole.line("ssdlab", argv).replace("ssdlab", "${SSDLAB:-ssdlab}", 1)
            (place / "command.sh").write_text(
                f"#!/bin/sh\n# {finding.step}: {finding.kind}: {' '.join(finding.message.split())}\n"
                f'cd "$(dirname "$0")" || exit 1\n{command}\n'
            )
            print(f"systems seed {seed}: shrunk to, in {place}:\n    {whole.line('ssdlab', argv)}", flush=True)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def faults_of_coverage(self, all_keys):
        """Sentences on keys that were not drawn, or are not listed, and on too many refusals."""
        for kind, names in self.coverage.unknown().items():
            for name in sorted(names):
                yield f"{kind}: the generator draws {name}, which the command does not list"
        if all_keys:
            for kind, names in self.coverage.missing().items():
                for name in sorted(map(str, names)):
                    yield f"{kind}: {name} was in no accepted system"
            for count, percent, what in (
                (self.given_up, GIVEN_UP_PERCENT, "were not accepted"),
                (self.refused, REFUSED_PERCENT, "had a refused draft"),
            ):
                if count * 100 > percent * self.systems:
                    yield f"{count} of {self.systems} systems {what}, more than {percent} %"


def seeds(arguments):
    """The seeds of a run: whole numbers from one that `--seed` determines."""
    first = int.from_bytes(hashlib.sha256(arguments.seed.encode()).digest()[:5], "big") * 10**6
    until = time.monotonic() + arguments.seconds if arguments.seconds else None
    number = 0
    most = arguments.systems or (None if until else SYSTEMS)
    while (most is None or number < most) and (until is None or time.monotonic() < until):
        yield first + number
        number += 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ssdlab", type=pathlib.Path)
    parser.add_argument("--seed", default="1", help="of all systems; a word or a number")
    parser.add_argument("--systems", type=int, help=f"how many; by default {SYSTEMS}, or as many as --seconds allows")
    parser.add_argument("--seconds", type=float, help="begin no system after so many")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="systems at a time")
    parser.add_argument("--replay", type=int, metavar="SEED", help="run the system of one seed alone")
    parser.add_argument("--refusals", action="store_true", help="list what was refused, by how often")
    parser.add_argument("--save", type=pathlib.Path, default=pathlib.Path("out/systems"), help="where failing systems go")
    arguments = parser.parse_args()
    campaign = Campaign(arguments)
    if arguments.replay is not None:
        outcome = campaign.one(arguments.replay)
        accepted = "accepted" if outcome.accepted else "not accepted"
        print(f"systems: {outcome.runs} commands, {len(outcome.refusals)} refused, {accepted}")
    else:
        with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
            waiting = set()
            for seed in seeds(arguments):
                waiting.add(pool.submit(campaign.one, seed))
                if len(waiting) > 2 * arguments.jobs:
                    done, waiting = concurrent.futures.wait(waiting, return_when=concurrent.futures.FIRST_COMPLETED)
                    for future in done:
                        future.result()
            for future in concurrent.futures.as_completed(waiting):
                future.result()
    print(f"systems: {campaign.coverage.text()}")
    for sentence in (faults := list(campaign.faults_of_coverage(campaign.systems >= ENOUGH))):
        print(f"systems: FAILED: {sentence}")
    refused, given_up = campaign.refused, campaign.given_up
    print(f"systems: {campaign.commands} commands; a draft of {refused} was refused; {given_up} given up; "
          f"interrupted for taking long: {campaign.slow}")
    for text, count in campaign.refusals.most_common() if arguments.refusals else ():
        print(f"systems: {count} times refused: {text}")
    for signature, found in sorted(campaign.signatures.items(), key=lambda item: -len(item[1])):
        print(f"systems: {len(found)} times {signature}")
    print(f"systems: {campaign.systems - campaign.failed} passed; {campaign.failed + len(faults)} failed")
    return 1 if campaign.failed or faults else 0


if __name__ == "__main__":
    sys.exit(main())
