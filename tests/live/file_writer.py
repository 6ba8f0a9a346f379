#!/usr/bin/env python3
"""Writes files for ever, and says on standard output which are durable: file_writer.py FOLDER FROM SEED.

`file N` once file N and its name were synced, `replaced N` once `latest` was replaced by version N with a rename, and
`counter N` once the number in `counter` was overwritten in place and synced.
"""

import os
import pathlib
import random
import sys


def contents(number):
    """What file `number` holds."""
    return random.Random(number).randbytes(1 + number * 7919 % 70_000)


def durable(path, data):
    """Writes a file and waits until it is durable."""
    with open(path, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def main(folder, first, seed):
    folder = pathlib.Path(folder)
    rng = random.Random(seed)
    directory = os.open(folder, os.O_RDONLY)
    counter = os.open(folder / "counter", os.O_RDWR | os.O_CREAT)
    os.pwrite(counter, b"%16d" % (first - 1), 0)
    os.fsync(counter)
    os.fsync(directory)
    # Those of earlier runs too, or the drive would fill up.
    alive = [int(path.name.removeprefix("file-")) for path in folder.glob("file-*")]
    number = first
    while True:
        durable(folder / f"file-{number}", contents(number))
        os.fsync(directory)
        print("file", number, flush=True)
        alive.append(number)
        if number % 3 == 0:
            durable(folder / "latest.new", b"%16d" % number + contents(number))
            os.rename(folder / "latest.new", folder / "latest")
            os.fsync(directory)
            print("replaced", number, flush=True)
        os.pwrite(counter, b"%16d" % number, 0)
        os.fdatasync(counter)
        print("counter", number, flush=True)
        if len(alive) > 60:
            gone = alive.pop(rng.randrange(len(alive)))
            # Said before, for it may be gone from now on.
            print("gone", gone, flush=True)
            os.unlink(folder / f"file-{gone}")
        # Something that nobody syncs, so that the drive sees more than flushed writes.
        with open(folder / f"scratch-{number % 7}", "wb") as scratch:
            scratch.write(rng.randbytes(200_000))
        number += 1


if __name__ == "__main__":
    try:
        main(sys.argv[1], int(sys.argv[2]), sys.argv[3])
    except OSError as error:
        # The power is gone.
        print("ended", error.errno, flush=True)
