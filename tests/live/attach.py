"""A served drive as a block device of this kernel, with a file system: nbdfuse, a loop device, mount."""

import pathlib
import re
import subprocess
import time

from harness import Failed, Skipped, check, need, need_root, wait_for

PROGRAMS = {"ext4": {"mkfs_ext4": "e2fsprogs", "e2fsck": "e2fsprogs"},
            "xfs": {"mkfs_xfs": "xfsprogs", "xfs_repair": "xfsprogs"},
            "btrfs": {"mkfs_btrfs": "btrfs-progs", "btrfs": "btrfs-progs"}}

# Everything is written: a mkfs that trims first is a trim test too.
MKFS = {"ext4": ["mkfs.ext4", "-q", "-F"], "xfs": ["mkfs.xfs", "-q", "-f"], "btrfs": ["mkfs.btrfs", "-q", "-f"]}

FSCK = {"ext4": ["e2fsck", "-f", "-n"], "xfs": ["xfs_repair", "-n"], "btrfs": ["btrfs", "check", "--readonly"]}


def need_attach(kind):
    """Skips where a served drive cannot become a mounted file system."""
    need_root()
    need(nbdfuse="libnbd-bin", fusermount3="fuse3", losetup="mount", mount="mount", **PROGRAMS[kind])
    if not pathlib.Path("/dev/fuse").exists():
        raise Skipped("no /dev/fuse")
    if not pathlib.Path("/dev/loop-control").exists():
        raise Skipped("no loop devices")
    known = pathlib.Path("/proc/filesystems").read_text(encoding="ascii").split()
    if kind not in known and subprocess.run(["modprobe", "-q", kind], check=False).returncode != 0:
        raise Skipped(f"this kernel has no {kind}")


class Attached:
    """A server's export as a loop device, and perhaps mounted."""

    def __init__(self, bench, server, kind, mount="defaults"):
        need_attach(kind)
        self.bench, self.server, self.kind = bench, server, kind
        # Options of mount.
        self.options = mount
        self.fuse = bench.path("fuse")
        self.fuse.mkdir(exist_ok=True)
        self.mountpoint = bench.path("mnt")
        self.mountpoint.mkdir(exist_ok=True)
        self.loop = None
        self.nbdfuse = None
        bench.later(self.detach)

    def attach(self):
        """Makes the export a loop device."""
        self.nbdfuse = self.bench.start("nbdfuse", self.fuse / "drive", self.server.uri)
        drive = self.fuse / "drive"
        wait_for(lambda: drive.exists() or self.nbdfuse.poll() is not None, "nbdfuse")
        check(self.nbdfuse.poll() is None, "nbdfuse ended: " + self.nbdfuse.log.read_text())
        made = self.bench.attempt("losetup", "--show", "--direct-io=on", "-b", "512", "-f", drive)
        if made.returncode != 0:
            raise Skipped(f"losetup: {made.stderr.strip()}")
        self.loop = made.stdout.strip()
        return self

    def mkfs(self):
        """Makes a file system."""
        self.bench.run(*MKFS[self.kind], self.loop, timeout=120)
        return self

    def mount(self):
        """Mounts it, which replays its journal."""
        self.bench.run("mount", "-t", self.kind, "-o", self.options, self.loop, self.mountpoint, timeout=120)
        return self

    def unmount(self, good=True):
        """Unmounts it; after a power cut it may complain."""
        for _ in range(50):
            done = self.bench.attempt("umount", self.mountpoint, timeout=120)
            if done.returncode == 0 or not is_mounted(self.mountpoint):
                return
            # Programs that were killed just now may still hold it.
            time.sleep(0.1)
        if good:
            raise Failed(f"umount: {done.stderr.strip()}")
        self.bench.run("umount", "--lazy", self.mountpoint)

    def fsck(self):
        """The file system's own check, which must find nothing to mend."""
        found = self.bench.attempt(*FSCK[self.kind], self.loop, timeout=120)
        check(found.returncode == 0,
              f"{' '.join(FSCK[self.kind])} ended with {found.returncode}: {(found.stdout + found.stderr)[-1500:]}")

    def detach(self):
        """Takes all of it down, whatever state it is in."""
        if is_mounted(self.mountpoint):
            self.unmount(good=False)
        if self.loop:
            self.bench.attempt("losetup", "-d", self.loop)
            self.loop = None
        if is_mounted(self.fuse):
            for _ in range(50):
                if self.bench.attempt("fusermount3", "-u", self.fuse).returncode == 0:
                    break
                # The kernel closes the loop device's file a moment after losetup returns.
                time.sleep(0.1)
            else:
                self.bench.attempt("fusermount3", "-u", "-z", self.fuse)
        if self.nbdfuse:
            try:
                self.nbdfuse.wait(timeout=10)
            except subprocess.TimeoutExpired:
                self.nbdfuse.kill()
            self.nbdfuse = None

    def cut_and_check(self):
        """Cuts the power, starts again, and has the file system checked, and mounted after that."""
        self.server.kill()
        self.take_down_dead()
        # At once and in (faster than) the model's time by turns: only there programs are under way when power goes.
        self.server.pace = "model*0.1" if self.server.pace == "none" else "none"
        self.server.start()
        self.attach()
        # Mounting replays the journal, as it would after a real cut; what is left must be whole.
        self.mount()
        self.unmount()
        self.fsck()
        self.mount()

    def take_down_dead(self):
        """Takes down what the dead server was below."""
        self.unmount(good=False)
        self.detach()


def is_mounted(path):
    """Whether something is mounted there, without touching it."""
    mounts = pathlib.Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    places = (re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), line.split()[4]) for line in mounts)
    return str(path) in places
