"""A host of append-only segments on a served drive: it appends known contents, trims, flushes, breaks rules on purpose, and knows what
must be there after a power cut. It takes the size of a segment and of a write unit from the server, and nothing else.

What was answered is readable after a cut, though units before it may be missing: then the segment is closed. A trim that a flush
covered does not come back; one that none covered may, as a whole.
"""

import ctypes
import errno
import mmap
import os
import random
import select
import struct

import nbd
from harness import Failed, check

FREE, OPEN, FULL, CLOSED = "free", "open", "full", "closed"

# What fallocate(2) takes.
KEEP_SIZE, PUNCH_HOLE, ZERO_RANGE = 1, 2, 16


class Life:
    """A segment from one trim to the next: of each unit its stamp, 0 where it is missing, and whether it was answered."""

    def __init__(self, units=(), closed=False):
        self.units = list(units)
        self.closed = closed


class Modelled:
    """A segment: its lives, the current one last."""

    def __init__(self):
        self.lives = [Life()]
        # Lives before these ended with a trim that was answered, that is durable.
        self.trimmed = self.durable = 0

    @property
    def now(self):
        """The current life."""
        return self.lives[-1]


class NbdPort:
    """Commands over some NBD connections, any number of them in flight. Those of a segment go by one connection, in order."""

    depth = 24

    def __init__(self, socket, connections):
        self.clients = [nbd.Client(socket) for _ in range(connections)]
        self.waiting = {}

    def send(self, segment, kind, offset=0, length=0, data=b"", fua=False):
        """Sends a command; returns its key."""
        index = segment % len(self.clients)
        key = index, self.clients[index].send(kind, offset, length, data, nbd.FUA if fua else 0)
        self.waiting[index] = self.waiting.get(index, 0) + 1
        return key

    def receive(self):
        """The next answer: its key, an errno or 0, and what was read."""
        indices = [index for index, count in self.waiting.items() if count]
        ready = [index for index in indices if self.clients[index].buffer]
        if not ready:
            sockets = {self.clients[index].socket: index for index in indices}
            ready = [sockets[one] for one in select.select(list(sockets), [], [], 30)[0]]
        check(ready, "no answer for 30 s")
        index = ready[0]
        handle, error, data = self.clients[index].receive()
        self.waiting[index] -= 1
        return (index, handle), error, data

    def close(self):
        """Hangs up."""
        for client in self.clients:
            client.socket.close()


class FilePort:
    """The same commands as system calls on the FUSE file, one after another."""

    depth = 1

    def __init__(self, path):
        self.file = os.open(path, os.O_RDWR)
        self.sync = os.open(path, os.O_RDWR | os.O_DSYNC)
        self.answers = []
        self.next = 0
        self.libc = ctypes.CDLL(None, use_errno=True)

    def fallocate(self, mode, offset, length):
        """fallocate(2)."""
        result = self.libc.fallocate(self.file, mode, ctypes.c_long(offset), ctypes.c_long(length))
        if result:
            raise OSError(ctypes.get_errno(), "fallocate")

    def send(self, _segment, kind, offset=0, length=0, data=b"", fua=False):
        """Does a command; returns its key."""
        self.next += 1
        error, read = 0, b""
        try:
            if kind == nbd.READ:
                read = os.pread(self.file, length, offset)
                check(len(read) == length, f"{len(read)} bytes of {length} were read")
            elif kind == nbd.WRITE:
                # At a page, as a program that does direct I/O has it.
                with mmap.mmap(-1, length) as buffer:
                    buffer[:] = data
                    written = os.pwrite(self.sync if fua else self.file, buffer, offset)
                check(written == length, f"{written} bytes of {length} were written")
            elif kind == nbd.TRIM:
                self.fallocate(PUNCH_HOLE | KEEP_SIZE, offset, length)
                if fua:
                    os.fsync(self.file)
            else:
                os.fsync(self.file)
        except OSError as failed:
            error = failed.errno
            if error not in (errno.EINVAL, errno.EIO, errno.ENOSPC, errno.EOPNOTSUPP):
                raise nbd.Gone(str(failed)) from None
        self.answers.append((self.next, error, read))
        return self.next

    def receive(self):
        """Its answer."""
        return self.answers.pop(0)

    def close(self):
        """Closes the file."""
        os.close(self.file)
        os.close(self.sync)


class Host:
    """A host, and all that it knows."""

    def __init__(self, report):
        segments = report["segments"]
        self.bytes, self.unit, self.count = segments["bytes"], segments["write_unit"], segments["count"]
        self.units = self.bytes // self.unit
        self.segments = [Modelled() for _ in range(self.count)]
        self.stamp = 0
        self.pending = {}
        self.refused = {}
        self.closed = self.came_back = 0
        self.counts = {"append": 0, "trim": 0, "flush": 0, "read": 0, "refused": 0}

    def offset(self, segment, unit):
        """Where a unit is on the drive, in bytes."""
        return segment * self.bytes + unit * self.unit

    def contents(self, segment, unit, stamp):
        """What a unit with a stamp holds."""
        return struct.pack("<QQ", segment * self.units + unit, stamp) * (self.unit // 16)

    # Commands: the host hears of them before they leave.

    def append(self, port, segment, count, fua=False):
        """Appends units."""
        life = self.segments[segment].now
        first = len(life.units)
        self.stamp += 1
        life.units += [[self.stamp, False] for _ in range(count)]
        data = b"".join(self.contents(segment, unit, self.stamp) for unit in range(first, first + count))
        key = port.send(segment, nbd.WRITE, self.offset(segment, first), len(data), data, fua)
        self.pending[key] = ("append", life, first, count)

    def trim(self, port, segment, fua=False):
        """Trims a segment."""
        modelled = self.segments[segment]
        modelled.lives.append(Life())
        key = port.send(segment, nbd.TRIM, self.offset(segment, 0), self.bytes, fua=fua)
        self.pending[key] = ("trim", modelled, len(modelled.lives) - 1, fua)

    def flush(self, port):
        """Makes the trims durable that were answered."""
        covers = [modelled.trimmed for modelled in self.segments]
        self.pending[port.send(0, nbd.FLUSH)] = ("flush", covers)

    def read(self, port, segment, first, count):
        """Reads units: what was taken before, or a refusal."""
        units = self.segments[segment].now.units[first:first + count]
        wanted = None
        if len(units) == count and all(stamp for stamp, _ in units):
            wanted = b"".join(self.contents(segment, first + unit, stamp) for unit, (stamp, _) in enumerate(units))
        else:
            self.expect("unwritten")
        key = port.send(segment, nbd.READ, self.offset(segment, first), count * self.unit)
        self.pending[key] = ("read", segment, first, wanted)

    def expect(self, reason):
        """A command that is refused for a reason leaves."""
        self.refused[reason] = self.refused.get(reason, 0) + 1

    def broken_rule(self, rng):
        """A command that breaks a rule: (kind, offset, length, reason), or nothing where this segment has none of the kind drawn."""
        segment = rng.randrange(self.count)
        life = self.segments[segment].now
        written, units, unit, at = len(life.units), self.units, self.unit, self.offset
        draw = rng.randrange(8)
        if draw == 0 and written:
            return segment, nbd.WRITE, at(segment, rng.randrange(written)), unit, "overwrite"
        if draw == 1 and written + 1 < units and not life.closed:
            return segment, nbd.WRITE, at(segment, rng.randrange(written + 1, units)), unit, "gap"
        if draw == 2 and life.closed and written < units:
            return segment, nbd.WRITE, at(segment, written), unit, "closed"
        if draw == 3 and segment + 1 < self.count:
            return segment, nbd.WRITE, at(segment, units - 1), 2 * unit, "crosses-segments"
        if draw == 4 and written < units:
            skip, length = rng.choice(((0, unit - 512), (512, unit), (0, 512), (100, unit), (0, unit - 100), (7, 8)))
            offset = at(segment, written) + skip
            # Behind the drive's end it is another error.
            if offset + length > self.count * self.bytes:
                return None
            return segment, nbd.WRITE, offset, length, "part-of-write-unit"
        if draw == 5:
            return segment, nbd.TRIM, at(segment, 0), self.bytes - unit, "part-of-segment"
        if draw == 6 and segment + 1 < self.count:
            return segment, nbd.TRIM, at(segment, 0) + rng.choice((512, unit, 100)), self.bytes, "part-of-segment"
        if draw == 7 and written < units:
            return segment, nbd.READ, at(segment, written), unit, "unwritten"
        return None

    def violate(self, port, rng):
        """Breaks a rule; the command must be refused."""
        broken = self.broken_rule(rng)
        if broken is None:
            return
        segment, kind, offset, length, reason = broken
        self.expect(reason)
        data = b"\xee" * length if kind == nbd.WRITE else b""
        self.pending[port.send(segment, kind, offset, length, data)] = ("refused", reason)

    def receive(self, port):
        """Takes an answer, and checks it."""
        key, error, data = port.receive()
        kind, *what = self.pending.pop(key)
        if kind == "refused":
            check(error == errno.EINVAL, f"{what[0]}: answered with {error}, expected EINVAL")
            self.counts["refused"] += 1
            return
        if kind == "read":
            segment, first, wanted = what
            if wanted is None:
                check(error == errno.EINVAL, f"a read of unwritten units of segment {segment}: answered with {error}")
                return
            check(not error, f"a read of segment {segment} from unit {first} on: errno {error}")
            check(data == wanted, f"segment {segment} from unit {first} on holds something else: {data[:16].hex()}")
        else:
            check(not error, f"{kind} was answered with errno {error}")
        if kind == "append":
            life, first, count = what
            for unit in life.units[first:first + count]:
                unit[1] = True
        elif kind == "trim":
            modelled, life, fua = what
            modelled.trimmed = max(modelled.trimmed, life)
            if fua:
                modelled.durable = max(modelled.durable, life)
        elif kind == "flush":
            for modelled, life in zip(self.segments, what[0]):
                modelled.durable = max(modelled.durable, life)
        self.counts[kind] += 1

    def wait(self, port):
        """Takes all answers."""
        while self.pending:
            self.receive(port)

    def work(self, port, rng, go_on=lambda: True):
        """Random commands until go_on() is false; nbd.Gone ends it at once: the power is gone."""
        favourites = rng.sample(range(self.count), min(6, self.count))
        while go_on():
            while len(self.pending) >= port.depth:
                self.receive(port)
            if rng.random() < 0.01:
                favourites = rng.sample(range(self.count), min(6, self.count))
            segment = rng.choice(favourites)
            life = self.segments[segment].now
            left = self.units - len(life.units)
            draw = rng.random()
            if draw < 0.62:
                if left and not life.closed:
                    self.append(port, segment, rng.randint(1, min(left, 12)), rng.random() < 0.1)
                else:
                    self.trim(port, segment, rng.random() < 0.2)
            elif draw < 0.67:
                self.trim(port, segment, rng.random() < 0.2)
            elif draw < 0.75:
                self.flush(port)
            elif draw < 0.83:
                self.violate(port, rng)
            elif life.units:
                first = rng.randrange(len(life.units))
                self.read(port, segment, first, rng.randint(1, min(8, self.units - first)))
        self.wait(port)

    # After a power cut.

    def cut(self):
        """The power is gone, with what was in flight."""
        self.pending = {}
        self.refused = {}

    def look(self, port, told):
        """What each segment holds, by unit, None where a read is refused; `told` are its states and written bytes."""
        keys, found = {}, [[None] * self.units for _ in range(self.count)]

        def take():
            key, error, data = port.receive()
            segment, unit = keys.pop(key)
            check(error in (0, errno.EINVAL), f"unit {unit} of segment {segment} is read with errno {error}")
            if error:
                self.expect("unwritten")
            else:
                found[segment][unit] = data
        for segment, (_, written) in enumerate(told):
            # One unit behind the last must be refused as well.
            for unit in range(min(written // self.unit + 1, self.units)):
                while len(keys) >= port.depth:
                    take()
                keys[port.send(segment, nbd.READ, self.offset(segment, unit), self.unit)] = segment, unit
        while keys:
            take()
        return found

    def found_after_cut(self, port, told):
        """Every segment is one of its lives, with all that was answered; the host goes on from there."""
        check(len(told) == self.count, f"the report has {len(told)} segments of {self.count}")
        for segment, found in enumerate(self.look(port, told)):
            self._found(segment, found, *told[segment])

    def _found(self, segment, found, state, written):
        modelled = self.segments[segment]
        answered = [number for number, life in enumerate(modelled.lives) if any(unit[1] for unit in life.units)]
        low = max([modelled.durable, *answered])

        def fits(life):
            for number, data in enumerate(found):
                if number >= len(life.units):
                    if data is not None:
                        return False
                    continue
                stamp, was_answered = life.units[number]
                if data is None:
                    if was_answered:
                        return False
                elif not stamp or data != self.contents(segment, number, stamp):
                    return False
            return True
        life = next((number for number in range(len(modelled.lives) - 1, low - 1, -1) if fits(modelled.lives[number])), None)
        readable = "".join("-" if data is None else "x" for data in found)
        if life is None:
            lives = [[tuple(unit) for unit in life.units] for life in modelled.lives[low:]]
            raise Failed(f"segment {segment} is {state} and has the units {readable}; its lives from {low} on are {lives}")
        self.came_back += life < modelled.trimmed
        life = modelled.lives[life]
        last = max((number + 1 for number, data in enumerate(found) if data is not None), default=0)
        check(written == last * self.unit, f"segment {segment} is told to have {written} bytes, and has {readable}")
        whole = all(data is not None for data in found[:last])
        at_rest = not life.closed and all(unit[1] for unit in life.units)
        wanted = FREE if not last else FULL if last == self.units else OPEN
        if state == CLOSED:
            check(not at_rest, f"segment {segment} was at rest, and is closed: {readable}")
            self.closed += 1
        else:
            check(whole, f"segment {segment} is {state} and has a hole: {readable}")
            check(state == wanted, f"segment {segment} is told to be {state}, and has {readable}")
        units = [[life.units[number][0], True] if found[number] is not None else [0, False] for number in range(last)]
        modelled.lives = [Life(units, state == CLOSED)]
        modelled.trimmed = modelled.durable = 0

    def compare(self, told):
        """With the power on and nothing in flight, the report says what the host knows."""
        for segment, (state, written) in enumerate(told):
            life = self.segments[segment].now
            count = len(life.units)
            wanted = CLOSED if life.closed else FREE if not count else FULL if count == self.units else OPEN
            check((state, written) == (wanted, count * self.unit),
                  f"segment {segment} is told as {state} with {written} bytes, expected {wanted} with {count * self.unit}")


def states(report):
    """State and written bytes of each segment, from the runs of a report."""
    told = []
    for run in report["segments"]["runs"]:
        check(run["first"] == len(told), f"the report has a gap before {run}")
        told += [(run["state"], run["written"])] * run["count"]
    counts = {state: sum(one[0] == state for one in told) for state in (FREE, OPEN, FULL, CLOSED)}
    check(counts == report["segments"]["states"], f"counted {counts}, told {report['segments']['states']}")
    return told


def rng_of(*words):
    """A generator of a seed and what it is for."""
    return random.Random(" ".join(map(str, words)))
