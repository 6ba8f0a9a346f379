"""What the tests of a served drive share: servers and other programs that end with the test, however it ends.

A test is a function whose name begins with `test_` and that takes a Bench; the first line of its docstring says what
it shows. It raises Skipped where the machine lacks something, and anything else where it fails.
"""

import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time

DEVICES = pathlib.Path(__file__).parent / "devices"

MIB = 1 << 20


class Skipped(Exception):
    """The machine lacks something; the text says what, and how to get it."""


class Failed(Exception):
    """What was shown not to hold."""


def check(holds, sentence):
    """Fails with the sentence unless `holds`."""
    if not holds:
        raise Failed(sentence)


def need(**packages):
    """Skips unless every program is there: need(fio="fio", db_bench="rocksdb-tools") names the Debian packages."""
    missing = {program: package for program, package in packages.items() if shutil.which(name_of(program)) is None}
    if missing:
        programs = ", ".join(map(name_of, missing))
        raise Skipped(f"no {programs} (Debian, Ubuntu: apt-get install {' '.join(sorted(set(missing.values())))})")


def name_of(program):
    """A program's name from a keyword: mkfs_ext4 stands for mkfs.ext4, qemu__img for qemu-img."""
    return program.replace("__", "-").replace("mkfs_", "mkfs.")


def need_root():
    """Skips unless root runs this."""
    if os.geteuid() != 0:
        raise Skipped("only root may mount")


def need_seeded(bench):
    """Skips unless a server with seeded bugs was given."""
    if bench.seeded is None:
        raise Skipped("no server with seeded bugs (make test-live builds one; --seeded names it)")


class Bench:
    """A folder of one test, and the processes and clean-ups that end with it."""

    def __init__(self, ssdlab, seed, seconds=None, tries=None, seeded=None):
        self.ssdlab = pathlib.Path(ssdlab).resolve()
        self.seed = seed
        # How often each kind of command is answered and the server killed; the command with seeded bugs.
        self.tries = tries
        self.seeded = pathlib.Path(seeded).resolve() if seeded else None
        # Short, because a Unix socket's path may have 107 bytes.
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="ssdlab-live-"))
        self.stack = contextlib.ExitStack()
        self.stack.callback(shutil.rmtree, self.folder, ignore_errors=True)
        self.counter = 0
        self.until = time.monotonic() + seconds if seconds else None

    def rounds(self, few):
        """The numbers of the rounds of a test: `few` of them, or as many as the time allows that was given."""
        number = 0
        while number < few if self.until is None else time.monotonic() < self.until:
            yield number
            number += 1

    def close(self):
        """Ends all that was started, the latest first."""
        self.stack.close()

    def path(self, name):
        """A path in the test's folder."""
        return self.folder / name

    def later(self, action, *arguments, **options):
        """Does something at the end, also after a failure; what goes wrong then is only said."""
        def quietly():
            try:
                action(*arguments, **options)
            except Exception as error:
                print(f"  (cleaning up: {error})")
        self.stack.callback(quietly)

    def run(self, *command, timeout=60, status=0, **options):
        """Runs a program to its end and returns its standard output; fails on another status than `status`."""
        done = self.attempt(*command, timeout=timeout, **options)
        if status is not None and done.returncode != status:
            said = (done.stderr.strip() or done.stdout.strip())[-1500:]
            raise Failed(f"{' '.join(map(str, command))} ended with {done.returncode}, expected {status}: {said}")
        return done.stdout

    def attempt(self, *command, timeout=60, **options):
        """Runs a program and returns its result, whatever its status; one that takes too long is ended with its kin."""
        options = {"stdin": subprocess.DEVNULL, "cwd": self.folder, **options}
        process = subprocess.Popen(
            [str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            errors="replace", start_new_session=True, **options,
        )
        try:
            out, err = process.communicate(timeout=timeout)
        except BaseException as error:
            end(process)
            if isinstance(error, subprocess.TimeoutExpired):
                raise Failed(f"{' '.join(map(str, command))} took longer than {timeout} s") from None
            raise
        return subprocess.CompletedProcess(command, process.returncode, out, err)

    def start(self, *command, log=None, **options):
        """Starts a program that ends with the test at the latest; its output goes to a file, by default a new one."""
        self.counter += 1
        log = log or self.path(f"log.{self.counter}")
        with open(log, "ab") as out:
            process = subprocess.Popen(
                [str(word) for word in command], stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT,
                cwd=self.folder, start_new_session=True, **options,
            )
        process.log = log
        self.later(end, process)
        return process

    def with_driver(self, user=None):
        """Options of a server, or a run, that has SHRD's driver above a drive with a small log, and perhaps less capacity."""
        host = self.path("shrd.toml")
        host.write_text('[[layer]]\nkind = "shrd"\nremap_entries = 16\n')
        sets = ["ftl.design=shrd", "ftl.rwlb=256k", *([f"capacity.user={user}"] if user else [])]
        return ["--host", str(host), *(word for one in sets for word in ("--set", one))]

    def with_append(self):
        """Options of a server that has a host which appends above a drive with segments or zones."""
        host = self.path("append.toml")
        host.write_text('[[layer]]\nkind = "append"\nover_provisioning = "1%"\n')
        return ["--host", str(host)]

    def with_cache(self, kind, disk="1g", **keys):
        """Options of a server whose drive caches a disk, which takes no trims: as a solid-state cache under FlashTier's manager
        (`cache`), or as a plain drive under `flashcache`. `keys` are the layer's."""
        self.counter += 1
        host = self.path(f"{kind}-{self.counter}.toml")
        lines = [f"{key} = {json.dumps(value)}\n" for key, value in {"kind": kind, **keys}.items()]
        below = f'below = [{{}}, {{ disk = "wd1502faex", size = "{disk}" }}]\n'
        host.write_text("".join(["[[layer]]\n", *lines, below]), encoding="utf-8")
        sets = ["ftl.design=ssc", f"ftl.addresses={disk}"] if kind == "cache" else []
        return ["--host", str(host), *(word for one in sets for word in ("--set", one))]

    def serve(self, device="small", **options):
        """A served drive."""
        return Server(self, device, **options)


def end(process):
    """Ends a process, and the group it leads, if it still runs."""
    if process.poll() is None:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            process.kill()
        process.wait(timeout=30)


def wait_for(condition, what, seconds=30.0):
    """Waits until `condition` gives something true, and returns that."""
    until = time.monotonic() + seconds
    while True:
        found = condition()
        if found:
            return found
        if time.monotonic() > until:
            raise Failed(f"waited {seconds:g} s for {what}")
        time.sleep(0.005)


class Server:
    """`ssdlab serve` over an image in the test's folder; started again it recovers that image."""

    # What it says when clients can connect.
    listening = "\nNBD: "

    def __init__(self, bench, device="small", pace="none", image="image", options=(), bug=None):
        self.bench = bench
        # A seeded bug's name: then the seeded server is served from.
        self.bug = bug
        device_file = DEVICES / f"{device}.toml"
        self.device = device_file if device_file.exists() else device
        self.pace = pace
        self.image = bench.path(image) if not isinstance(image, pathlib.Path) else image
        self.socket = bench.path(f"{self.image.name}.sock")
        self.control = bench.path(f"{self.image.name}.ctl")
        self.options = list(options)
        self.process = None
        self.log_from = 0
        self.start()

    @property
    def uri(self):
        """What NBD clients are given."""
        return f"nbd+unix:///?socket={self.socket}"

    def command(self):
        """The command line."""
        return [
            self.bench.seeded if self.bug else self.bench.ssdlab, "serve", "-d", self.device, "--image", self.image, "--nbd", f"unix:{self.socket}",
            "--control", self.control, "--time-scale", self.pace, *self.options,
        ]

    def start(self, seconds=60):
        """Starts it, and waits until it listens."""
        log = self.bench.path(f"{self.image.name}.log")
        self.log_from = log.stat().st_size if log.exists() else 0
        environment = dict(os.environ, SSDLAB_SEEDED_BUG=self.bug) if self.bug else None
        self.process = self.bench.start(*self.command(), log=log, env=environment)

        def listens():
            if self.listening in self.said():
                return True
            check(self.process.poll() is None, f"the server ended with {self.process.returncode}: {self.said()}")
            return False
        wait_for(listens, "the server to listen", seconds)
        return self

    def said(self):
        """What the server printed since it was started the last time."""
        with open(self.bench.path(f"{self.image.name}.log"), "rb") as log:
            log.seek(self.log_from)
            return log.read().decode(errors="replace")

    def kill(self):
        """Cuts the drive's power."""
        self.process.kill()
        self.process.wait(timeout=30)

    def stop(self, seconds=60):
        """Ends it in order; returns what it printed."""
        self.process.terminate()
        try:
            status = self.process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            raise Failed(f"the server did not end within {seconds} s of SIGTERM: {self.said()}") from None
        check(status == 0, f"the server ended with {status}: {self.said()}")
        return self.said()

    def figures(self):
        """The drive's counters, as `ssdlab stat --json` shows them."""
        return json.loads(self.bench.run(self.bench.ssdlab, "stat", "--json", "-n", "1", self.control))

    def layer(self, kind):
        """The metrics of a layer of this kind."""
        layers = self.figures()["host_layers"]
        return next(layer["metrics"] for layer in layers if layer["kind"] == kind)
