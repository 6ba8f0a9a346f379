"""fio's requests against ssdlab's, for job files drawn at random. Run as a program it takes any number of them:

    tests/live/test_fio_jobs.py SSDLAB [--seed N] [--count N] [--only N] [--show]
"""

import argparse
import collections
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

import fio_jobs
from fio_jobs import DIFFERENCES, IDLE, NOT_DRAWN, JobFile
from harness import Failed, Skipped, check, need

DOCS = pathlib.Path(__file__).parents[2] / "docs" / "workloads.md"

# Job files of one job that one run of fio takes at a time: it takes half a second to start and to end.
BATCH = 8
WORKERS = 6

# Seconds that a run of fio may take. A few jobs never end.
LONGEST = 10


class Rig:
    """A file and a block device to run fio on, in a folder."""

    def __init__(self, folder, ssdlab):
        self.folder = pathlib.Path(folder)
        self.ssdlab = ssdlab
        self.devices = os.geteuid() == 0 and self.loop(4096) is not None
        self.release()

    def loop(self, capacity):
        """A new loop device over a file of its own; nothing where the machine has none."""
        descriptor, name = tempfile.mkstemp(dir=self.folder, suffix=".img")
        os.ftruncate(descriptor, capacity)
        os.close(descriptor)
        done = subprocess.run(["losetup", "--find", "--show", name], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            return None
        self.loops = [*getattr(self, "loops", []), done.stdout.strip()]
        return self.loops[-1]

    def release(self):
        """Detaches every loop device."""
        for device in getattr(self, "loops", []):
            subprocess.run(["losetup", "--detach", device], capture_output=True, check=False)
        self.loops = []


class Target:
    """What the jobs of a file work on."""

    def __init__(self, rig, file, name):
        # fio runs in the folder; a short name keeps its logs short.
        self.path = rig.folder / name
        with open(self.path, "wb") as image:
            image.truncate(file.capacity)
        self.device = None
        if file.on_device:
            command = ["losetup", "--find", "--show", str(self.path)]
            for _ in range(20):
                done = subprocess.run(command, capture_output=True, text=True, check=False)
                if done.returncode == 0:
                    self.device = done.stdout.strip()
                    return
                # Another worker took the device that was free.
                time.sleep(0.05)
            raise Failed(f"losetup: {done.stderr.strip()}")

    def name(self):
        return self.device or self.path.name

    def close(self):
        if self.device:
            subprocess.run(["losetup", "--detach", self.device], capture_output=True, check=False)
        self.path.unlink()


def run_fio(rig, files):
    """What fio sends for each job of job files, by number of the file and name of the job; nothing for a file it refuses."""
    names = {file.number: f"f{file.number.replace('/', '-')}" for file in files}
    targets = {}
    try:
        for file in files:
            targets[file.number] = Target(rig, file, names[file.number])
        text = "\n".join(
            file.text(names[file.number], targets[file.number].name(), f"{rig.folder}/log-") for file in files
        )
        path = rig.folder / f"{names[files[0].number]}-{len(files)}.fio"
        path.write_text(text)
        command = ["fio", "--minimal", "--eta=never", f"--output={path}.out", str(path)]
        try:
            done = subprocess.run(
                command, cwd=rig.folder, capture_output=True, text=True, errors="replace", timeout=LONGEST, check=False
            )
            status, spoken = done.returncode, done.stderr
        except subprocess.TimeoutExpired:
            status, spoken = None, f"fio runs for more than {LONGEST} s"
        path.unlink()
        said = pathlib.Path(f"{path}.out")
        errors = []
        if said.exists():
            errors = [line for line in said.read_text(errors="replace").splitlines() if not re.match(r"\d;fio", line)]
            said.unlink()
        logs = {}
        for file in files:
            for job in file.jobs:
                log = rig.folder / f"log-{names[file.number]}{job.name}"
                if log.exists():
                    try:
                        logs[file.number, job.name] = fio_jobs.parse_log(log.read_text())
                    except ValueError as error:
                        status, spoken = None, f"{spoken}\nthe log of {job.name} is torn: {error}"
                    log.unlink()
        return logs, status, "\n".join([spoken, *errors])[-600:].strip()
    finally:
        for target in targets.values():
            target.close()


def run_ssdlab(rig, file):
    """What ssdlab makes of a job file: requests by the name of the job, or why it refuses."""
    name = f"s{file.number.replace('/', '-')}"
    path, log = rig.folder / f"{name}.fio", rig.folder / f"{name}.iolog"
    path.write_text(file.text())
    done = subprocess.run(
        [rig.ssdlab, "trace", "convert", path, log, "--capacity", str(file.capacity)],
        capture_output=True, text=True, timeout=60, check=False,
    )
    path.unlink()
    if done.returncode != 0:
        return None, done.stderr.strip()
    text = log.read_text()
    log.unlink()
    several = len(file.jobs) > 1
    return {job.name: fio_jobs.parse_log(text, job.name if several else "ssdlab") for job in file.jobs}, ""


def judge(rig, file, theirs):
    """What became of a file: `equal`, the name of a listed difference, or a sentence that says what is wrong."""
    ours, refusal = run_ssdlab(rig, file)
    logs, status, said = theirs
    has_run = all((file.number, job.name) in logs for job in file.jobs)
    if ours is None and ("panicked" in refusal or "this is a bug in ssdlab" in refusal):
        return "wrong", f"ssdlab: {refusal}"
    if status is None or status < 0:
        # A signal ended fio, it did not end, or its log is torn; what it sent is unknown.
        return "fio fails", f"{status}: {said[-200:]}"
    if ours is None or not has_run:
        if ours is None and not has_run:
            return "both refuse", ""
        for job in file.jobs:
            reason = fio_jobs.refusal_difference(job, file, refusal, said)
            if reason:
                return reason, ""
        return "wrong", f"ssdlab refuses: {refusal}" if ours is None else f"fio refuses: {status}: {said}"
    if status != 0:
        # An error stopped fio halfway, or a busy machine did not start its jobs in time.
        return "fio fails", f"{status}: {said[-200:]}"
    reasons = []
    for job in file.jobs:
        wrong = fio_jobs.compare(job, file, logs[file.number, job.name], ours[job.name])
        if wrong:
            reason = fio_jobs.run_difference(job, file)
            if reason is None:
                return "wrong", f"{job.name}: {wrong}"
            reasons.append(reason)
    return (reasons[0] if reasons else "equal"), ""


def judge_all(rig, files):
    """What became of each file, with what is wrong."""
    single = [file for file in files if len(file.jobs) == 1]
    batches = [single[at:at + BATCH] for at in range(0, len(single), BATCH)]
    batches += [[file] for file in files if len(file.jobs) > 1]

    def work(batch):
        theirs = run_fio(rig, batch)
        found = []
        for file in batch:
            mine = theirs
            # A file that fio refuses stops those with it, and an error may stop a job halfway.
            if len(batch) > 1 and (theirs[1] != 0 or (file.number, file.jobs[0].name) not in theirs[0]):
                mine = run_fio(rig, [file])
            if mine[1] != 0:
                mine = run_fio(rig, [file])
            found.append((file, *judge(rig, file, mine)))
        return found

    with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
        for found in pool.map(work, batches):
            yield from found


def shrink(rig, file):
    """The same file without the keys that do not matter for what is wrong."""
    def is_wrong(candidate):
        return judge(rig, candidate, run_fio(rig, [candidate]))[0] == "wrong"

    for job in file.jobs:
        for key in [key for key in job.keys if key not in ("rw", "ioengine")]:
            kept = dict(job.keys)
            del job.keys[key]
            if not is_wrong(file):
                job.keys = kept
    return file


def repeat(number):
    seed, at = number.split("/")
    return f"tests/live/test_fio_jobs.py SSDLAB --seed {seed} --only {at}"


def listed():
    """Names of the differences that the documentation lists."""
    text = DOCS.read_text()
    part = text[text.index("## Where ssdlab differs from fio"):]
    return set(re.findall(r"^- \*\*(.+?)\.\*\*", part, re.MULTILINE))


def check_lists():
    """The documentation lists the differences that the comparison allows, and no key is forgotten."""
    names = set(DIFFERENCES) | set(fio_jobs.NOT_COMPARED)
    check(listed() == names, f"the documentation and the comparison list different things: {sorted(listed() ^ names)}")
    text = DOCS.read_text()
    table = text[text.index("## Keys"):text.index("## How requests are sent")]
    keys = {key for row in re.findall(r"^\| (`.+?) \|", table, re.MULTILINE) for key in re.findall(r"`(\w+)`", row)[:1]}
    drawn = {key for number in range(4000) for job in fio_jobs.draw(f"1/{number}").jobs for key in job.keys}
    missing = keys - drawn - set(NOT_DRAWN)
    check(not missing, f"keys that are never drawn: {sorted(missing)}")


def compare_files(rig, seed, numbers, tells_failures=False):
    """Compares files, and prints what is wrong and, if asked to, how fio fails; returns how many became what, and what is wrong."""
    files = [fio_jobs.draw(f"{seed}/{number}") for number in numbers]
    if not rig.devices:
        files = [file for file in files if not file.on_device]
    counts, wrong = collections.Counter(), []
    for file, reason, sentence in judge_all(rig, files):
        counts[reason] += 1
        if reason == "wrong":
            wrong.append((file, sentence))
        if reason == "wrong" or sentence and tells_failures:
            print(f"  {file.number}: {reason}: {sentence}")
    return counts, wrong


def need_fio():
    need(fio="fio", losetup="util-linux")
    version = subprocess.run(["fio", "--version"], capture_output=True, text=True, check=True).stdout.strip()
    if not version.startswith("fio-3.33"):
        raise Skipped(f"found {version}, expected fio-3.33, whose requests ssdlab promises")


def test_requests(bench):
    """500 drawn job files: ssdlab makes the requests that fio makes, but for what the documentation lists."""
    need_fio()
    check_lists()
    rig = Rig(bench.folder, bench.ssdlab)
    total = collections.Counter()
    for number in bench.rounds(1):
        counts, wrong = compare_files(rig, bench.seed, range(500 * number, 500 * number + 500))
        total += counts
        for file, sentence in wrong[:1]:
            small = shrink(rig, file)
            raise Failed(f"{len(wrong)} of {sum(counts.values())} differ; {sentence}\n{small.text()}\n{repeat(file.number)}")
    differing = sum(count for reason, count in total.items() if reason in DIFFERENCES or reason in fio_jobs.NOT_COMPARED)
    skipped = "" if rig.devices else "; no loop devices, so only files"
    check(20 * total["fio fails"] <= sum(total.values()), f"fio fails on {total['fio fails']} of {sum(total.values())} files")
    return f"{total['equal'] + total['both refuse']} of {sum(total.values())} alike, {differing} differ as listed{skipped}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("ssdlab", type=pathlib.Path)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--only", type=int)
    parser.add_argument("--shrink", type=int, default=3, help="how many of the files that differ are shrunk")
    parser.add_argument("--show", action="store_true", help="with --only: print the file and both lists of requests")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="fio-jobs-", dir="/dev/shm") as folder:
        rig = Rig(folder, arguments.ssdlab.resolve())
        if arguments.only is not None:
            file = fio_jobs.draw(f"{arguments.seed}/{arguments.only}")
            theirs = run_fio(rig, [file])
            reason, sentence = judge(rig, file, theirs)
            print(file.text(), f"capacity {file.capacity}, {'device' if file.on_device else 'file'}: {reason} {sentence}", sep="\n")
            if arguments.show:
                ours = run_ssdlab(rig, file)[0] or {}
                for job in file.jobs:
                    print(job.name, "fio:", theirs[0].get((file.number, job.name), [])[:80])
                    print(job.name, "ssdlab:", ours.get(job.name, [])[:80])
            return 0
        began = time.monotonic()
        numbers = range(arguments.start, arguments.start + arguments.count)
        counts, wrong = compare_files(rig, arguments.seed, numbers, tells_failures=True)
        for reason, count in counts.most_common():
            print(f"{count:6} {reason}")
        print(f"{sum(counts.values())} files in {time.monotonic() - began:.1f} s")
        for file, sentence in wrong[:arguments.shrink]:
            print(f"--- {file.number}: {sentence}\n{shrink(rig, file).text()}\n{repeat(file.number)}")
        return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
