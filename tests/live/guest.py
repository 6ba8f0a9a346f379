"""A Linux guest under QEMU: Debian's kernel, the host's programs over 9p, and a drive as virtio-blk over NBD."""

import gzip
import lzma
import os
import pathlib
import platform
import shutil
import subprocess

from harness import Failed, Skipped, check, need

# Loaded in this order, each after what it depends on.
MODULES = ("virtio_pci", "virtio_blk", "9pnet_virtio", "9p", "overlay", "crc32c_generic", "ext4", "f2fs")

INIT = """#!/bin/busybox sh
/bin/busybox mkdir -p /proc /sys /dev /host /over /root /share
/bin/busybox mount -t proc proc /proc
/bin/busybox mount -t sysfs sys /sys
/bin/busybox mount -t devtmpfs dev /dev
for module in $(/bin/busybox cat /modules/order); do
    /bin/busybox insmod /modules/$module || echo "GUEST-NO-MODULE $module"
done
/bin/busybox mount -t 9p -o trans=virtio,version=9p2000.L,ro,cache=loose,msize=262144 host /host &&
/bin/busybox mount -t tmpfs over /over &&
/bin/busybox mkdir /over/up /over/work &&
/bin/busybox mount -t overlay -o lowerdir=/host,upperdir=/over/up,workdir=/over/work overlay /root &&
/bin/busybox mkdir -p /root/guest-share &&
/bin/busybox mount -t 9p -o trans=virtio,version=9p2000.L,ro,cache=loose,msize=262144 share /root/guest-share &&
for folder in proc sys dev; do /bin/busybox mount -o bind /$folder /root/$folder; done &&
/bin/busybox mount -t tmpfs tmp /root/tmp &&
PATH=/usr/sbin:/usr/bin:/sbin:/bin /bin/busybox chroot /root /bin/sh /guest-share/run.sh
echo "GUEST-RC $?"
/bin/busybox poweroff -f
"""


def cache():
    """Where the kernel is kept between runs."""
    base = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return pathlib.Path(base) / "ssdlab" / "guest"


def kernel(bench):
    """The folder with an unpacked kernel package of Debian: boot/vmlinuz-* and lib/modules."""
    if platform.machine() != "x86_64":
        raise Skipped(f"the guest's kernel is for x86_64, this is {platform.machine()}")
    folder = cache()
    if list(folder.glob("boot/vmlinuz-*")):
        return folder
    need(apt__get="apt", dpkg__deb="dpkg")
    about = bench.attempt("apt-cache", "depends", "linux-image-amd64", timeout=60).stdout
    names = [line.split()[-1] for line in about.splitlines() if "Depends: linux-image-" in line]
    if not names:
        raise Skipped("apt knows no linux-image-amd64 (apt-get update on a Debian machine)")
    downloads = bench.path("downloads")
    downloads.mkdir()
    # apt's own user must be able to write there.
    downloads.chmod(0o777)
    got = bench.attempt("apt-get", "-q", "download", names[0], cwd=downloads, timeout=240)
    packages = list(downloads.glob("*.deb"))
    if got.returncode != 0 or not packages:
        raise Skipped(f"{names[0]} cannot be downloaded: {got.stderr.strip().splitlines()[-1:]}")
    unpacked = bench.path("kernel")
    bench.run("dpkg-deb", "-x", packages[0], unpacked, timeout=240)
    folder.parent.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(folder, ignore_errors=True)
    shutil.move(unpacked, folder)
    return folder


def initramfs(bench, folder, version):
    """An initramfs with busybox, the modules, and INIT."""
    root = bench.path("initramfs")
    (root / "bin").mkdir(parents=True)
    (root / "modules").mkdir()
    shutil.copy(shutil.which("busybox"), root / "bin" / "busybox")
    bench.run("depmod", "-b", folder, version, timeout=120)
    order = []
    for module in MODULES:
        shown = bench.attempt("modprobe", "-d", folder, "-S", version, "--show-depends", module)
        for line in shown.stdout.splitlines():
            words = line.split()
            if words[0] == "insmod" and words[1] not in order:
                order.append(words[1])
    names = []
    for path in map(pathlib.Path, order):
        data = path.read_bytes()
        name = path.name
        for suffix, unpack in ((".xz", lzma.decompress), (".gz", gzip.decompress)):
            if name.endswith(suffix):
                data, name = unpack(data), name.removesuffix(suffix)
        (root / "modules" / name).write_bytes(data)
        names.append(name)
    (root / "modules" / "order").write_text("\n".join(names) + "\n")
    (root / "init").write_text(INIT)
    (root / "init").chmod(0o755)
    archive = bench.path("initramfs.cpio")
    archive.write_bytes(newc(root))
    return archive


def newc(root):
    """A folder as a cpio archive of the kind the kernel unpacks."""
    out = bytearray()

    def entry(name, mode, data):
        nonlocal out
        fields = (0, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name) + 1, 0)
        out += b"070701" + b"".join(b"%08X" % field for field in fields) + name.encode() + b"\0"
        out += bytes(-len(out) % 4) + data
        out += bytes(-len(out) % 4)

    for path in sorted(root.rglob("*")):
        name = str(path.relative_to(root))
        if path.is_dir():
            entry(name, 0o040755, b"")
        else:
            entry(name, 0o100000 | (path.stat().st_mode & 0o777), path.read_bytes())
    entry("TRAILER!!!", 0, b"")
    return bytes(out)


def options(bench, script):
    """QEMU's options for a guest that runs a shell script and powers off; it has no disk yet."""
    need(qemu__system__x86_64="qemu-system-x86", busybox="busybox-static", depmod="kmod", modprobe="kmod")
    folder = kernel(bench)
    image = sorted(folder.glob("boot/vmlinuz-*"))[-1]
    archive = initramfs(bench, folder, image.name.removeprefix("vmlinuz-"))
    share = bench.path("share")
    share.mkdir()
    (share / "run.sh").write_text(script)
    # Stock kernels do not come up under every nested KVM, so it is only used where asked for.
    accelerator = "kvm" if os.environ.get("SSDLAB_GUEST_KVM") == "1" else "tcg,thread=multi"
    return [
        "-M", "q35", "-accel", accelerator, "-cpu", "max", "-smp", "2", "-m", "1024", "-nodefaults", "-nographic",
        "-no-reboot", "-serial", "stdio", "-kernel", image, "-initrd", archive,
        # One word, so that the options can be pasted: the guest needs nothing else.
        "-append", "console=ttyS0",
        "-fsdev", "local,id=host,path=/,security_model=none,readonly=on,multidevs=remap",
        "-device", "virtio-9p-pci,fsdev=host,mount_tag=host",
        "-fsdev", f"local,id=share,path={share},security_model=none,readonly=on",
        "-device", "virtio-9p-pci,fsdev=share,mount_tag=share",
    ]


def run(bench, socket, script, seconds=900):
    """Boots a guest that has the export as /dev/vda and runs a shell script; returns what its console said."""
    guest = bench.start(
        "qemu-system-x86_64", *options(bench, script),
        "-blockdev", f"driver=nbd,node-name=drive,discard=unmap,server.type=unix,server.path={socket}",
        "-device", "virtio-blk-pci,drive=drive", log=bench.path("console"),
    )
    try:
        guest.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        raise Failed(f"the guest ran longer than {seconds} s: {console(guest)[-1500:]}") from None
    said = console(guest)
    check("GUEST-RC" in said, f"the guest did not come up: {said[-1500:]}")
    return said


def console(guest):
    """What the guest's console said."""
    return guest.log.read_text(errors="replace").replace("\r", "")
