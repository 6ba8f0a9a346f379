"""Job files drawn at random over the keys that ssdlab supports, and the requests that fio and ssdlab make of them.

A drawn file has one job, or a few, each on the same file or block device. `compare` says how the requests of a job differ.
What differs on purpose is listed in docs/workloads.md ("Where ssdlab differs from fio"); DIFFERENCES has an entry for each.
"""

import collections
import dataclasses
import math
import random
import re

KIB, MIB = 1 << 10, 1 << 20

FLUSH = ("flush", 0, 0)

# Keys of the table in docs/workloads.md that are not drawn, and why.
NOT_DRAWN = {
    "name": "the name of a job is the name of its section",
    "filename": "every file has it, for fio: the file or device that it works on",
    "writefua": "its engine needs a SCSI device",
    "startdelay": "delays a run and changes no request",
    "zone_reset_threshold": "matters only with zone_reset_frequency, which is drawn with it",
}

# Keys without effect and harmless values, of which a file has a few now and then.
IDLE = [
    "description=drawn", "overwrite=1", "refill_buffers", "scramble_buffers=0", "zero_buffers", "group_reporting",
    "invalidate=0", "disable_lat=1", "disable_clat=1", "disable_slat=1", "gtod_reduce=1", "log_avg_msec=100", "unit_base=8",
    "randrepeat=0", "allrandrepeat=1", "percentile_list=50:99", "clocksource=clock_gettime", "stats=0",
    "fadvise_hint=0", "create_serialize=1", "continue_on_error=none", "ioscheduler=none", "iodepth_batch=1", "iodepth_low=0",
    "nrfiles=1", "replay_scale=1", "flow=0", "verify=0", "write_barrier=0", "file_append=0", "rate_min=0",
]


@dataclasses.dataclass
class Job:
    """One section: its keys in their order."""
    name: str
    keys: dict

    def get(self, key, default=None):
        return self.keys.get(key, default)


@dataclasses.dataclass
class JobFile:
    """A job file, the bytes of what it works on, and whether that is a block device."""
    number: str
    capacity: int
    on_device: bool
    jobs: list

    def text(self, prefix="", target="TARGET", logs=None):
        """The file for fio and for ssdlab; `prefix` goes before each job's name, `logs` names the log of each."""
        lines = []
        for job in self.jobs:
            lines += [f"[{prefix}{job.name}]", f"filename={target}", "thread"]
            if logs:
                lines.append(f"write_iolog={logs}{prefix}{job.name}")
            lines += [key if value is None else f"{key}={value}" for key, value in job.keys.items()]
            lines.append("")
        return "\n".join(lines)


def size(text):
    """Bytes of a size as the generator writes it."""
    match = re.fullmatch(r"(\d+)([kmg]?)", text)
    return int(match[1]) * {"": 1, "k": KIB, "m": MIB, "g": 1 << 30}[match[2]]


def draw(number):
    """The job file of a number such as `1/17`: seed and place."""
    rng = random.Random(f"fio jobs {number}")
    capacity = rng.choice([4 * MIB, 4 * MIB, 4 * MIB + 7 * 512, 2 * MIB + 40 * KIB])
    on_device = rng.random() < 0.5
    count = 1 if rng.random() < 0.85 else rng.randint(2, 3)
    jobs = [Job(f"job{index}", draw_job(rng, capacity, on_device, count)) for index in range(count)]
    if count > 1:
        for job in jobs[1:]:
            if rng.random() < 0.5:
                job.keys["stonewall"] = None
    return JobFile(number, capacity, on_device, jobs)


def some_size(rng, least=512, most=64 * KIB):
    """A block size: mostly a power of two, sometimes another multiple of 512."""
    if rng.random() < 0.75:
        powers = [1 << power for power in range(9, 21) if least <= 1 << power <= most]
        bytes_ = rng.choice(powers or [least])
    else:
        bytes_ = rng.randrange(max(least, 512), most + 1, 512)
    return f"{bytes_ // KIB}k" if bytes_ % KIB == 0 and rng.random() < 0.9 else str(bytes_)


def lists(rng, one):
    """One value, or up to three for reads, writes and trims, some of them empty."""
    shape = rng.random()
    if shape < 0.75:
        return one()
    if shape < 0.9:
        return rng.choice([f"{one()},{one()}", f",{one()}", f"{one()},"])
    return rng.choice([f"{one()},{one()},{one()}", f",,{one()}", f"{one()},,{one()}"])


def split(rng):
    """Sizes and shares."""
    count = rng.randint(1, 4)
    sizes = [some_size(rng, 1 * KIB) for _ in range(count)]
    cuts = sorted(rng.sample(range(1, 100), count - 1))
    shares = [high - low for low, high in zip([0, *cuts], [*cuts, 100])]
    if rng.random() < 0.15:
        return ":".join(sizes)
    return ":".join(f"{one}/{share}" for one, share in zip(sizes, shares))


def draw_zones(rng, keys, capacity):
    """zonemode and what belongs to it."""
    zone = rng.choice([128, 256, 512]) * KIB
    if rng.random() < 0.5:
        keys["zonemode"] = "strided"
        keys["zonesize"] = str(zone if rng.random() < 0.6 else rng.choice([3, 5, 7]) * 64 * KIB)
        if rng.random() < 0.6:
            keys["zonerange"] = str(rng.choice([1, 2, 3]) * 128 * KIB)
        if rng.random() < 0.6:
            keys["zoneskip"] = str(rng.choice([1, 2, 5]) * 64 * KIB)
        return
    keys["zonemode"] = "zbd"
    keys["zonesize"] = str(zone)
    if rng.random() < 0.4:
        keys["zonecapacity"] = str(zone * rng.choice([1, 2, 3]) // 4)
    if "rand" not in keys["rw"] and rng.random() < 0.3:
        keys["zoneskip"] = rng.choice([str(zone), "2z", "1z"])
    if "read" in keys["rw"] or "rw" in keys["rw"]:
        keys["read_beyond_wp"] = rng.choice(["1", "1", "0"])
    if "trim" in keys["rw"]:
        keys["bs"] = str(zone)
    elif rng.random() < 0.3:
        keys["max_open_zones"] = str(rng.randint(1, 4))
        if rng.random() < 0.5:
            keys["job_max_open_zones"] = str(rng.randint(1, 4))
        if rng.random() < 0.3:
            keys["ignore_zone_limits"] = "1"
    if "write" in keys["rw"] and rng.random() < 0.3:
        keys["zone_reset_frequency"] = rng.choice(["0.05", "0.1", "0.5"])
        keys["zone_reset_threshold"] = rng.choice(["0", "0.1", "0.3"])
    if rng.random() < 0.5:
        keys["size"] = f"{rng.randint(2, 6)}z"
    if rng.random() < 0.3:
        keys["offset"] = f"{rng.randint(0, 2)}z"
    if rng.random() < 0.4:
        keys.pop("io_limit", None)
        keys["io_size"] = f"{rng.randint(1, 12)}z"


def draw_job(rng, capacity, on_device, of):
    """The keys of one job."""
    keys = {}
    modes = ["read", "write", "randread", "randwrite", "rw", "readwrite", "randrw"]
    # A file cannot be trimmed.
    modes += ["trim", "randtrim", "trimwrite", "randtrimwrite"] if on_device else []
    mode = rng.choice(modes)
    is_random = mode.startswith("rand")
    keys["rw"] = mode
    zoned = rng.random() < 0.2 and mode not in ("trimwrite", "randtrimwrite") and of == 1
    if rng.random() < 0.25 and not zoned and "trimwrite" not in mode:
        if is_random:
            keys["rw"] += f":{rng.randint(1, 9)}"
            if rng.random() < 0.4:
                keys["rw_sequencer"] = rng.choice(["sequential", "identical"])
        else:
            keys["rw"] += ":" + rng.choice(["4k", "8k", "512", "64k", "-4k", "-8k", "-64k", "12k"])
    keys["ioengine"] = rng.choice(["psync", "psync", "sync", "pvsync", "pvsync2", "libaio", "libaio", "io_uring", "posixaio"])
    if rng.random() < 0.5:
        keys["iodepth"] = str(rng.choice([1, 2, 4, 8, 32]))
    kind = rng.random()
    if kind < 0.6:
        keys["bs"] = lists(rng, lambda: some_size(rng))
    elif kind < 0.75:
        keys["bsrange"] = lists(rng, lambda: "{}-{}".format(*sorted((some_size(rng, 1 * KIB), some_size(rng, 1 * KIB)), key=size)))
    elif kind < 0.9:
        keys["bssplit"] = lists(rng, lambda: split(rng))
    if rng.random() < 0.05 and not on_device:
        keys["bs_unaligned"] = "1"
    if rng.random() < 0.05:
        keys["bs_is_seq_rand"] = "1"
    if rng.random() < 0.1:
        keys["ba"] = lists(rng, lambda: some_size(rng))
    # The region.
    if rng.random() < 0.4:
        keys["offset"] = rng.choice(["0", "64k", "512", "100k", "1m", "10%", "25%", "33%"])
        if "%" in keys["offset"] and rng.random() < 0.3:
            keys["offset_align"] = str(rng.choice([512, 4096, 65536]))
    start = {"10%": 0.13, "25%": 0.28, "33%": 0.36}.get(keys.get("offset")) or size(keys.get("offset", "0")) / capacity
    room = int(capacity * (1 - start)) - 128 * KIB
    shape = rng.random()
    if shape < 0.45:
        keys["size"] = str(rng.randrange(128 * KIB, max(room, 129 * KIB), 512))
    elif shape < 0.6:
        keys["size"] = rng.choice(["128k", "512k", "1m", "200k"])
    elif shape < 0.75:
        keys["size"] = rng.choice(["100%", "50%", "13%", "30%"])
    elif shape < 0.8:
        keys["size"] = "0"
    elif shape < 0.82:
        keys["size"] = str(capacity + 4096)
    elif shape < 0.86:
        keys["size"] = str(rng.randrange(128 * KIB, max(room, 129 * KIB)))
    if rng.random() < 0.35:
        keys[rng.choice(["io_size", "io_limit"])] = rng.choice(["0", "50%", "100%", "20%", "64k", "300k", "1m", "3m", "5m"])
    if rng.random() < 0.2:
        keys["loops"] = str(rng.randint(1, 3))
    if rng.random() < 0.25:
        keys["number_ios"] = str(rng.choice([0, 1, 7, 50, 200]))
    if zoned:
        draw_zones(rng, keys, capacity)
    if rng.random() < 0.08 and not zoned:
        keys["numjobs"] = str(rng.randint(2, 3))
        # Clones write one log: lines may be torn when it is longer than the buffers of 4 KiB.
        keys["number_ios"] = str(max(1, rng.randint(1, 50) // int(keys.get("loops", "1"))))
        if rng.random() < 0.6:
            keys["offset_increment"] = rng.choice(["64k", "5%", "20%", "0"])
        keys["size"] = rng.choice(["128k", "200k", "10%"])
        keys.setdefault("offset", "0")
    # Mixes and random offsets.
    if "rw" in mode and rng.random() < 0.7:
        keys[rng.choice(["rwmixread", "rwmixwrite"])] = str(rng.choice([0, 10, 30, 50, 75, 100]))
    if is_random:
        if rng.random() < 0.35:
            keys["norandommap"] = None
        if rng.random() < 0.1:
            keys["random_generator"] = rng.choice(["tausworthe", "tausworthe64", "lfsr"])
        if rng.random() < 0.3:
            keys["random_distribution"] = rng.choice(
                ["random", "zipf:1.2", "zipf:0.8", "zipf", "pareto:0.2", "pareto:0.3:0.5", "normal:10", "normal:20:0.3",
                 "zoned:60/10:30/20:10/70", "zoned:50/10:50/90", "zoned_abs:90/64k:10/64k"])
        if rng.random() < 0.15:
            keys["percentage_random"] = lists(rng, lambda: str(rng.choice([0, 20, 50, 100])))
        if rng.random() < 0.3:
            keys["randseed"] = str(rng.randint(0, 1 << 30))
    if "write" in mode or "rw" in mode:
        if rng.random() < 0.2:
            keys[rng.choice(["fsync", "fdatasync"])] = str(rng.randint(0, 9))
        if rng.random() < 0.1:
            keys[rng.choice(["end_fsync", "fsync_on_close"])] = "1"
        if rng.random() < 0.1:
            keys["sync"] = rng.choice(["0", "1", "none", "sync", "dsync"])
        if rng.random() < 0.1:
            keys["write_hint"] = rng.choice(["none", "short", "medium", "long", "extreme"])
    # Time.
    if rng.random() < 0.06:
        keys["rate"] = lists(rng, lambda: rng.choice(["200m", "500m"]))
        if rng.random() < 0.3:
            keys["rate_process"] = rng.choice(["linear", "poisson"])
    elif rng.random() < 0.06:
        keys["rate_iops"] = lists(rng, lambda: rng.choice(["20k", "50k"]))
    if rng.random() < 0.06:
        keys["thinktime"] = rng.choice(["1", "20", "50us"])
        if rng.random() < 0.5:
            keys["thinktime_blocks"] = str(rng.randint(1, 20))
        if rng.random() < 0.3:
            keys["thinktime_blocks_type"] = rng.choice(["complete", "issue"])
        if rng.random() < 0.2:
            keys["thinktime_iotime"] = "1ms"
    if rng.random() < 0.06 and "numjobs" not in keys:
        keys["runtime"] = rng.choice(["20ms", "40ms"])
        keys["thinktime"] = "100"
        if rng.random() < 0.7:
            keys["time_based"] = None
    elif rng.random() < 0.05:
        keys["timeout"] = "100"
    if rng.random() < 0.05 and keys.get("ioengine") not in ("io_uring",) and keys.get("iodepth", "1") == "1":
        keys["io_submit_mode"] = rng.choice(["inline", "offload"])
    if rng.random() < 0.05:
        keys["kb_base"] = rng.choice(["1024", "1024", "1000"])
    for idle in rng.sample(IDLE, rng.choice([0, 0, 0, 1, 2])):
        key, _, value = idle.partition("=")
        keys.setdefault(key, value or None)
    bound(keys)
    return keys


def bound(keys):
    """Keeps a job at a few thousand requests, as long as that says nothing new."""
    smallest = 4 * KIB
    for key in ("bs", "bsrange", "bssplit", "zonesize"):
        for one in re.findall(r"\d+[km]?", re.sub(r"/\d*", "", keys.get(key, ""))):
            smallest = min(smallest, max(size(one), 1))
    if smallest < 4 * KIB and "number_ios" not in keys:
        keys["number_ios"] = "1500"


def parse_log(text, file=None):
    """Requests of a fio iolog, in their order: (operation, offset, length). `file` chooses those of one file.

    A ValueError tells of a torn line.
    """
    requests = []
    for line in text.splitlines():
        words = line.split()
        is_whole = len(words) == 5 and all(words[at].isdigit() for at in (0, 3, 4))
        is_of_file = len(words) == 3 and words[2] in ("add", "open", "close") or line.startswith("fio version")
        if not is_whole and not is_of_file:
            raise ValueError(f"found {line!r}, expected time, file, action, offset and length")
        if len(words) == 5 and (file is None or words[1] == file):
            _, _, action, offset, length = words
            if action in ("sync", "datasync"):
                requests.append(FLUSH)
            elif action in ("read", "write", "trim"):
                requests.append((action, int(offset), int(length)))
    return requests


def has_one_size(job):
    """Whether every request of a direction has one size."""
    def one(text):
        low, _, high = text.partition("-")
        return low == high
    if "bssplit" in job.keys:
        return all(":" not in part for part in job.keys["bssplit"].split(","))
    return all(one(part) for part in job.keys["bsrange"].split(",") if part) if "bsrange" in job.keys else True


def is_mixed(job):
    mode = job.get("rw").split(":")[0]
    return mode in ("rw", "readwrite", "randrw") and not {job.get("rwmixread"), job.get("rwmixwrite")} & {"0", "100"}


def is_random(job):
    return job.get("rw").startswith("rand")


def by_chance(job):
    """Whether the requests of a job depend on random numbers."""
    return is_random(job) or is_mixed(job) or not has_one_size(job) or "rate_process" in job.keys and is_mixed(job)


def clones_of(job):
    return int(job.get("numjobs", "1"))


def is_by_time(job):
    return "runtime" in job.keys


def cluster(job):
    """How many requests follow from one draw, about."""
    run = job.get("rw").partition(":")[2]
    factor = int(run) if is_random(job) and run else 1
    percents = [int(part) for part in re.findall(r"\d+", job.get("percentage_random", "100"))]
    return factor * 100 / max(min(percents), 5)


def compare(job, file, theirs, ours):
    """How the requests of a job differ between fio and ssdlab, in a sentence; nothing where they do not."""
    if job.get("ioengine") == "posixaio" and trims_and_writes(job):
        # fio logs a trim twice that it sends once: the engine is busy at first.
        theirs = [one for at, one in enumerate(theirs) if one[0] != "trim" or at == 0 or theirs[at - 1] != one]
    if is_by_time(job):
        if not theirs:
            # On a busy machine the time may be over before fio begins.
            return None if ours else "ssdlab sends nothing"
        # Where the time ends, and with it the flush at the end, depends on the machine.
        theirs, ours = (side[:-1] if flushes_at_end(job) and side[-1:] == [FLUSH] else side for side in (theirs, ours))
        least = min(len(theirs), len(ours))
        theirs, ours = theirs[:least], ours[:least]
    if not by_chance(job):
        if clones_of(job) > 1:
            theirs, ours = sorted(theirs), sorted(ours)
        if theirs == ours:
            return None
        place = next((at for at, pair in enumerate(zip(theirs, ours)) if pair[0] != pair[1]), min(len(theirs), len(ours)))
        found = lambda requests: requests[place:place + 3]
        return f"{len(theirs)} and {len(ours)} requests; from {place} on, fio sends {found(theirs)}, ssdlab {found(ours)}"
    return compare_shares(job, file, theirs, ours)


def compare_shares(job, file, theirs, ours):
    """How two samples differ."""
    moves = [[one for one in side if one != FLUSH] for side in (theirs, ours)]
    if not moves[0] or not moves[1]:
        # A mixed pass may end at its first request, or at a later one: so many of a kind are one in a million.
        by_draw = is_mixed(job) and not is_random(job) and max(map(len, moves)) < 20
        return None if len(theirs) == len(ours) or by_draw else f"fio sends {len(theirs)} requests, ssdlab {len(ours)}"
    if counts_are_certain(job):
        if len(theirs) != len(ours):
            return f"fio sends {len(theirs)} requests, ssdlab {len(ours)}"
    else:
        sums = [sum(length for _, _, length in side) for side in moves]
        most = max(length for side in moves for _, _, length in side)
        if is_mixed(job) and not is_random(job) or has_followers(job) or has_holes(job) and not has_one_size(job):
            # Where such a pass ends depends on the directions, the offsets, or the sizes that are drawn.
            spread = max(sums)
        else:
            spread = 6 * most * math.sqrt(len(moves[0])) if "number_ios" in job.keys or is_by_time(job) else 2 * most
        if "zonesize" in job.keys and not has_one_size(job):
            # Each zone ends with a request of a size that is drawn.
            spread = max(spread, 2 * most * math.sqrt(max(sums) / size(job.get("zonesize"))))
        if has_map(job):
            # A request takes whole blocks of the map; what it leaves of its last block is not sent by another.
            least = min(length for side in moves for _, _, length in side)
            left = [-length % least for side in moves for _, _, length in side if length % least]
            spread += 6 * max(left, default=0) * math.sqrt(len(left))
        if abs(sums[0] - sums[1]) > spread:
            return f"fio transfers {sums[0]} bytes in {len(moves[0])} requests, ssdlab {sums[1]} in {len(moves[1])}"
    if covers(job):
        counts = [sorted(collections.Counter((offset, length) for _, offset, length in side).values()) for side in moves]
        spans = [(min(offset for _, offset, _ in side), max(offset + length for _, offset, length in side)) for side in moves]
        block = moves[0][0][2]
        is_whole = len(counts[0]) * block == spans[0][1] - spans[0][0]
        alike = counts[0][-1] == counts[1][-1] and len(counts[0]) == len(counts[1])
        if not is_whole and max(counts[0][-1], counts[1][-1]) > 1:
            # Passes over a part of the blocks: those of fio have the same part, or with a seed any. See "Orders of passes".
            if "randseed" in job.keys:
                alike = abs(len(counts[0]) - len(counts[1])) <= 6 * math.sqrt(len(moves[0]))
            else:
                alike = counts[0][-1] >= counts[1][-1] and len(counts[0]) <= len(counts[1])
        if not alike:
            return f"fio covers {len(counts[0])} blocks up to {counts[0][-1]} times, ssdlab {len(counts[1])} up to {counts[1][-1]} times"
        # Of a whole region, the ends are the same, too.
        if len(counts[0]) > 8 and is_whole and spans[0] != spans[1]:
            return f"fio covers bytes {spans[0]}, ssdlab {spans[1]}"
    if steps_back(job) and not has_one_size(job):
        # A request that is longer than the step back goes up, a shorter one down, and near the end only short ones fit: the way
        # of a whole job follows from a few draws. All that do not begin a step behind the one before begin at the same offsets.
        # (A log of several clones does not tell them apart.)
        places = set().union(*(landings(job, side) for side in moves)) if clones_of(job) == 1 else set()
        return f"steps of {job.get('rw')} lead to {sorted(places)}" if len(places) > 3 else None
    traits = {
        "direction": lambda at, side: side[at][0],
        "size": lambda at, side: (side[at][0], side[at][2]),
        "place": lambda at, side: side[at][1] * 8 // file.capacity,
        "step": lambda at, side: at > 0 and step(side, at, of_direction=is_mixed(job) and not is_random(job)),
    }
    passes = repeats(job, moves[0])
    for what, trait in traits.items():
        if what == "step" and "numjobs" in job.keys:
            # Requests of clones follow each other in any order.
            continue
        if what == "place" and re.match("zipf|pareto", job.get("random_distribution", "")):
            # Where the popular blocks are is for each to scatter.
            continue
        if what == "step" and covers(job):
            # Where a drawn block is covered, fio goes on to the next free one: see "Orders of passes".
            continue
        # Places are shares of bytes, as a map that has few free blocks left cuts requests into small ones.
        weights = [[length if what == "place" else 1 for _, _, length in side] for side in moves]
        samples = [collections.Counter() for _ in moves]
        for sample, side, weight in zip(samples, moves, weights):
            for at, one in enumerate(weight):
                sample[trait(at, side)] += one
        counts = [sum(weight) / max(max(weight) for weight in weights) for weight in weights]
        for value in samples[0] | samples[1]:
            shares = [sample[value] / sum(weight) for sample, weight in zip(samples, weights)]
            share = (samples[0][value] + samples[1][value]) / sum(map(sum, weights))
            grouped = passes * (cluster(job) if what in ("place", "step") else 1)
            deviation = math.sqrt(share * (1 - share) * grouped * (1 / counts[0] + 1 / counts[1]))
            slack = 2 * grouped / min(counts)
            if what == "place" and is_mixed(job) and not is_random(job):
                # How far each direction comes in a pass is drawn.
                slack += 5 * math.sqrt(passes / min(counts))
            if abs(shares[0] - shares[1]) > 5 * deviation + slack:
                return f"{what} {value}: {shares[0]:.3f} of {len(moves[0])} with fio, {shares[1]:.3f} of {len(moves[1])} with ssdlab"
    return None


def repeats(job, moves):
    """How many passes of fio have the same random numbers, about."""
    if "randseed" in job.keys:
        return 1
    if is_random(job) and not has_map(job):
        span = max(offset + length for _, offset, length in moves) - min(offset for _, offset, _ in moves)
        return max(1, sum(length for _, _, length in moves) / span)
    return max(collections.Counter(moves).values())


def counts_are_certain(job):
    """Whether a job sends a certain number of requests, whatever is drawn."""
    sizes = direction_sizes(job)
    if has_flushes(job) or not has_one_size(job) or "bs_is_seq_rand" in job.keys or is_by_time(job):
        return False
    if is_mixed(job):
        return is_random(job) and sizes[0] == sizes[1] and not has_followers(job)
    return not has_followers(job) and not is_skewed(job)


def step(side, at, of_direction):
    """Whether a request goes on from the one before, or from the one before `of_direction`, or repeats its offset."""
    before = (one for one in (side[index] for index in range(at - 1, -1, -1)) if not of_direction or one[0] == side[at][0])
    _, offset, length = next(before, (None, None, 0))
    if offset is None:
        return False
    now = side[at][1]
    return "on" if now == offset + length else "again" if now == offset else "elsewhere"


def landings(job, side):
    """Offsets of requests that do not begin a step back from the end of the one before in their direction."""
    back, ends, found = size(job.get("rw").partition(":-")[2]), {}, set()
    for direction, offset, length in side:
        if offset != ends.get(direction, -1) - back:
            found.add(offset)
        ends[direction] = offset + length
    return found


def covers(job):
    """Whether each block of the region comes once in a pass. (A log of several clones does not tell them apart.)"""
    keys = ("norandommap", "ba", "percentage_random", "numjobs")
    alike = job.get("random_distribution", "random") == "random" and not any(key in job.keys for key in keys)
    return is_random(job) and ":" not in job.get("rw") and alike and has_one_size(job) and job.get("zonemode") is None


def direction_sizes(job):
    """Smallest block of reads, writes and trims."""
    smallest = [4 * KIB] * 3
    for key in ("bs", "bsrange", "bssplit"):
        if key not in job.keys:
            continue
        parts = job.keys[key].split(",")
        if len(parts) == 1:
            parts = parts * 3
        elif len(parts) == 2:
            parts.append(parts[1])
        for at, part in enumerate(parts):
            if part:
                ones = re.split(r"[-:]", re.sub(r"/\d*", "", part))
                smallest[at] = min(map(size, ones))
    return smallest


def trims_and_writes(job):
    return "trimwrite" in job.get("rw")


def has_followers(job):
    """Whether a random job has requests that follow from the one before."""
    return is_random(job) and (":" in job.get("rw") or "percentage_random" in job.keys)


def has_holes(job):
    return not is_random(job) and ":" in job.get("rw")


def steps_back(job):
    return has_holes(job) and ":-" in job.get("rw")


def flushes_at_end(job):
    return "end_fsync" in job.keys or "fsync_on_close" in job.keys


def mode(job):
    return job.get("rw").split(":")[0]


def has_map(job):
    alike = job.get("random_distribution", "random") == "random" and "ba" not in job.keys
    return is_random(job) and alike and ("norandommap" not in job.keys or job.get("random_generator") == "lfsr")


def is_skewed(job):
    return is_random(job) and job.get("random_distribution", "random").split(":")[0] in ("zipf", "pareto", "normal")


def flush_after(job):
    """Writes between flushes, 0 for none."""
    return max(int(job.get(key, "0")) for key in ("fsync", "fdatasync"))


def has_flushes(job):
    return any(job.get(key, "0") != "0" for key in ("fsync", "fdatasync"))


def sizes_differ(job):
    """Whether reads, writes and trims have smallest blocks of their own."""
    return len(set(direction_sizes(job))) > 1


# What differs on purpose: the name that stands in docs/workloads.md, and whether it may apply to a job.
DIFFERENCES = {
    "Skewed distributions": lambda job, file: is_skewed(job),
    "Flushes in mixes": lambda job, file: has_flushes(job) and (is_mixed(job) or trims_and_writes(job)),
    "Queued flushes": lambda job, file: has_flushes(job) and job.get("ioengine") in ("io_uring", "posixaio"),
    "Flushes at depth": lambda job, file: job.get("ioengine") == "libaio" and 0 < flush_after(job) < int(job.get("iodepth", "1")),
    "LFSR and zones": lambda job, file: (
        is_random(job) and job.get("random_generator") == "lfsr" and job.get("random_distribution", "").startswith("zoned")
    ),
    "Random maps of several sizes": lambda job, file: is_random(job) and sizes_differ(job),
    "Random maps and sequences": lambda job, file: has_map(job) and has_followers(job),
    "Random trims and writes": lambda job, file: mode(job) == "randtrimwrite",
    "Sizes of trims and writes": lambda job, file: trims_and_writes(job) and (sizes_differ(job) or not has_one_size(job)),
    "Passes of trims and writes": lambda job, file: trims_and_writes(job) and "number_ios" in job.keys,
    "Random strided zones": lambda job, file: is_random(job) and "zonesize" in job.keys and job.get("zonemode") != "zbd",
    "Zones with write pointers": lambda job, file: job.get("zonemode") == "zbd",
    "Unaligned sizes": lambda job, file: "bs_unaligned" in job.keys,
    "Rates of mixes": lambda job, file: is_mixed(job) and ("rate" in job.keys or "rate_iops" in job.keys),
    "Ends of mixed sizes": lambda job, file: is_random(job) and ("bs_is_seq_rand" in job.keys or "ba" in job.keys),
}

# What one of the two refuses: a part of ssdlab's message, and of fio's.
REFUSALS = {
    "Regions beyond the drive": ("end beyond the drive", None),
    "Blocks larger than the region": ("does not fit into the job's region", "blocksize is larger"),
    "Shares of 100": ("add up to 100", None),
    "Two flushes": ("contradicts fsync", None),
    "Multiples of sectors": ("multiple of 512", None),
    "LFSR and sizes": ("lfsr needs one block size", None),
}

# What ssdlab says where it refuses a job by "Zones with write pointers".
ZBD_REFUSALS = (
    "divides the capacity", "the capacity of a zone", "region has data", "at least the smallest block of", "hold no whole zone",
    "a trim resets a zone", "the limit of open zones is reached",
)

# Named in the documentation, and not seen in the order of requests.
NOT_COMPARED = {
    "Depth without an engine", "One file", "Orders of passes", "Ends of passes", "Larger shares", "Sleeps", *REFUSALS,
}


def run_difference(job, file):
    """The first listed difference that may apply to a job, or nothing."""
    return next((name for name, applies in DIFFERENCES.items() if applies(job, file)), None)


def refusal_difference(job, file, ours, theirs):
    """The listed difference by which one of the two refuses a job that the other takes, or nothing."""
    for name, (mine, other) in REFUSALS.items():
        if mine in ours or other and other in theirs:
            return name
    if job.get("zonemode") == "zbd" and any(part in ours for part in ZBD_REFUSALS):
        return "Zones with write pointers"
    return None if ours else run_difference(job, file)
