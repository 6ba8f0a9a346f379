"""A QEMU guest with a served drive as its disk."""

import re

import guest
from harness import check, need

SCRIPT = """
set -e
cat /sys/block/vda/queue/write_cache
for kind in ext4 f2fs; do
    case $kind in
        ext4) mkfs.ext4 -q -F /dev/vda ;;
        f2fs) mkfs.f2fs -q -f /dev/vda ;;
    esac
    mkdir -p /tmp/drive
    mount -t $kind /dev/vda /tmp/drive
    cd /tmp/drive
    fio --name=verify --directory=/tmp/drive --rw=randwrite --bs=4k --size=8m --ioengine=psync --fsync=64 \
        --verify=crc32c --verify_fatal=1 --minimal > /tmp/fio || { cat /tmp/fio; exit 1; }
    cd /
    rm /tmp/drive/verify*
    sync
    fstrim -v /tmp/drive
    umount /tmp/drive
    case $kind in
        ext4) e2fsck -f -n /dev/vda > /tmp/fsck ;;
        f2fs) fsck.f2fs --dry-run /dev/vda > /tmp/fsck ;;
    esac || { cat /tmp/fsck; exit 1; }
    echo "GUEST-DONE $kind"
done
"""


def test_ext4_and_f2fs(bench):
    """A guest makes ext4 and f2fs on it, verifies with fio, trims; flushes and trims arrive at the drive."""
    need(fio="fio", mkfs_ext4="e2fsprogs", mkfs_f2fs="f2fs-tools", fstrim="util-linux")
    server = bench.serve("medium")
    said = guest.run(bench, server.socket, SCRIPT)
    status = re.search(r"GUEST-RC (\d+)", said)[1]
    check(status == "0", f"the guest's script ended with {status}: {said[-2000:]}")
    check("GUEST-DONE ext4" in said and "GUEST-DONE f2fs" in said, f"not all was done: {said[-1500:]}")
    check("write back" in said, "the guest sees a write-through disk, so its flushes are lost")
    commands = server.figures()["commands"]
    # 8 MB by 4 KB with a flush for every 64 writes, on two file systems.
    check(commands["flush"] >= 2 * 2048 // 64, f"{commands['flush']} flushes arrived")
    check(commands["trim"] >= 2, f"{commands['trim']} trims arrived")
    server.stop()
    return ", ".join(f"{count} {kind}" for kind, count in commands.items())
