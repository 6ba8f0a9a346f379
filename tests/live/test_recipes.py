"""The recipes of docs/serving.md and docs/caches.md, run as they stand."""

import os
import pathlib
import re
import socket

import guest
from attach import need_attach
from harness import DEVICES, Failed, check, need
from test_databases import postgres_programs, processes_below

DOCUMENTS = [pathlib.Path(__file__).parents[2] / "docs" / name for name in ("serving.md", "caches.md")]

# What a recipe needs, by a part of its heading.
NEEDS = {
    "fio": lambda: need(fio="fio"),
    "power cut": lambda: need(fio="fio"),
    "Disk images": lambda: need(nbdinfo="libnbd-bin", nbdcopy="libnbd-bin", qemu__img="qemu-utils"),
    "ext4": lambda: need_attach("ext4"),
    "killed mount": lambda: need_attach("ext4"),
    "PostgreSQL": lambda: (need_attach("ext4"), need(pgbench="postgresql", runuser="util-linux"), postgres_programs()),
    "QEMU": lambda: need(qemu__system__x86_64="qemu-system-x86", mkfs_ext4="e2fsprogs"),
    "Recording": lambda: need(fio="fio"),
    "Metrics": lambda: need(fio="fio", curl="curl"),
    "segments": lambda: need(fio="fio", nbdinfo="libnbd-bin"),
    "on a cache": lambda: (need_attach("ext4"), need(sqlite3="sqlite3")),
}

# What a recipe has to show.
SHOWS = {
    "fio": ["served ", "later than the model says"],
    "Disk images": ["export-size", "hole", "file format: qcow2"],
    "power cut": ["recovered from"],
    "ext4": ["trimmed", "virtual_time_ns"],
    "killed mount": ["a new image", "recovered from", "had left on", "taken down"],
    "PostgreSQL": ["tps = "],
    "QEMU": ["GUEST-RC 0"],
    "Recording": ["recorded ", "write amplification"],
    "segments": ["block_size_minimum: 4096", "free 1005, open 1, full 2, closed 0", "refused: overwrite 1\n", "open           8388608"],
    "Metrics": ["ssdlab_commands_total{", "write p99", '"flash"'],
    "on a cache": ["a new image", "recovered from", " are there: ok", '"misses_absent"', "Pass 5"],
}


def recipes():
    """The documents' recipes, as (name of the document, heading, script)."""
    for document in DOCUMENTS:
        heading, lines = None, None
        for line in document.read_text(encoding="utf-8").splitlines():
            if lines is not None:
                if line == "```":
                    yield document.name, heading, "\n".join(lines) + "\n"
                    lines = None
                else:
                    lines.append(line)
            elif line.startswith("#"):
                heading = line.lstrip("# ")
            elif line == "```sh":
                lines = []


def recipe(document, heading, script):
    """A test that runs a recipe."""
    kind = next((key for key in NEEDS if key in heading), None)

    def test(bench):
        check(kind is not None, f"nobody says what the recipe `{heading}` needs")
        NEEDS[kind]()
        commands = bench.path("bin")
        commands.mkdir()
        (commands / "ssdlab").symlink_to(bench.ssdlab)
        # The recipe makes its folder there, and leaves nothing.
        temporary = bench.path("tmp")
        temporary.mkdir()
        # PostgreSQL's user has to come through, as it would under /var/tmp.
        bench.folder.chmod(0o755)
        environment = dict(
            os.environ, PATH=f"{commands}:{os.environ['PATH']}", TMPDIR=str(temporary), DEVICE=str(DEVICES / "medium.toml"),
            METRICS=f"127.0.0.1:{free_port()}",
        )
        environment.pop("DRIVE", None)
        if kind == "QEMU":
            options = guest.options(bench, "mkfs.ext4 -q -F /dev/vda && blkid /dev/vda\n")
            environment["GUEST"] = " ".join(map(str, options))
        bench.later(take_down, bench, temporary)
        shell = bench.start("bash", "-euo", "pipefail", "-c", script, env=environment, log=bench.path("shell"))
        try:
            status = shell.wait(timeout=200)
        except Exception:
            raise Failed(f"`{heading}` took longer than 200 s: {said(shell)}") from None
        check(status == 0, f"`{heading}` ended with {status}: {said(shell)}")
        for words in SHOWS[kind]:
            check(words in said(shell, 1 << 20), f"`{heading}` does not show `{words}`: {said(shell)}")
        left = sorted(path.name for path in temporary.iterdir())
        check(not left, f"`{heading}` leaves {left} behind")

    test.__doc__ = f"The recipe `{heading}` of docs/{document}."
    return test


def said(shell, most=1500):
    """The end of what a recipe printed."""
    return shell.log.read_text(errors="replace")[-most:].replace("\r", "")


def free_port():
    """A port that nobody has just now."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def take_down(bench, temporary):
    """Takes down what a recipe that failed has left."""
    for drive in temporary.glob("drive.*"):
        take_down_drive(bench, drive)


def take_down_drive(bench, drive):
    """The same of one recipe's folder."""
    for process in processes_below(drive / "mnt" / "pg"):
        os.kill(process, 9)
    # The shell is gone, and what it left in the background is known by the folder, which is nobody else's.
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if str(drive).encode() in (process / "cmdline").read_bytes():
                os.kill(int(process.name), 9)
        except OSError:
            pass
    bench.attempt("umount", "--lazy", drive / "mnt")
    for line in bench.attempt("losetup", "--list", "--noheadings", "--output", "NAME,BACK-FILE").stdout.splitlines():
        if str(drive) in line:
            bench.attempt("losetup", "--detach", line.split()[0])
    bench.attempt("fusermount3", "-u", "-z", drive / "fuse")


for _document, _heading, _script in recipes():
    globals()["test_" + re.sub(r"[^a-z0-9]+", "_", _heading.lower())] = recipe(_document, _heading, _script)
