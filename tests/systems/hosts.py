"""Random trees of layers above a drive: every layer over every layer, each with its keys.

A tree is a node: a layer `{"keys": {...}, "below": [node, ...]}`, or a drive `{"drive": FILE or None, "set": [...]}`.
"""

from keys import Stream
from toml import toml

# Most drives of a tree, and the depth at which most end.
DRIVES = 5
DEPTH = 3

# Values of a layer's key that fit a small drive: of the random stream, the unit of the drive and its capacity.
FITTING = {
    "scheduler.requests": lambda r, unit, capacity: r.choice((1, 4, 128)),
    "scheduler.segments": lambda r, unit, capacity: r.choice((1, 4, 128)),
    "page-cache.ram": lambda r, unit, capacity: r.choice((65_536, 131_072, 1 << 20, 4 << 20)),
    "page-cache.read_ahead": lambda r, unit, capacity: r.choice((0, 16_384, 131_072)),
    "page-cache.write_size": lambda r, unit, capacity: r.choice((4096, 65_536, 524_288)),
    "page-cache.dirty": lambda r, unit, capacity: f"{r.choice((10, 20, 60, 100))}%",
    "page-cache.background": lambda r, unit, capacity: f"{r.choice((0, 5, 10))}%",
    "page-cache.expire": lambda r, unit, capacity: r.choice(("0ms", "2ms", "30s")),
    "page-cache.period": lambda r, unit, capacity: r.choice(("1ms", "5s")),
    "page-cache.copy_time": lambda r, unit, capacity: r.choice(("1ns", "1us", "50us")),
    "ata.timeout": lambda r, unit, capacity: r.choice(("5ms", "30s")),
    "ata.retries": lambda r, unit, capacity: r.choice((0, 1, 5)),
    "ata.error_time": lambda r, unit, capacity: r.choice(("0ms", "1ms")),
    "ata.reset_time": lambda r, unit, capacity: r.choice(("0ms", "10ms", "150ms")),
    "stripe.chunk": lambda r, unit, capacity: (
        max(min(r.choice((512, 1024, 4096, 65_536)), capacity // 32 // 512 * 512), 512)
    ),
    "restoring.log": lambda r, unit, capacity: max(r.choice((4, 4, 8, 16, 32)) * unit, 1024),
    "restoring.range": lambda r, unit, capacity: max(r.choice((1, 1, 2)) * unit, 512),
    "flashcache.size": lambda r, unit, capacity: 4096 * r.choice((4, 8, 16, 48)),
    "flashcache.set": lambda r, unit, capacity: r.choice((1, 2, 4)),
    "flashcache.metadata_block": lambda r, unit, capacity: r.choice((512, 1024, 4096)),
    "flashcache.clean_writes_set": lambda r, unit, capacity: r.choice((1, 2, 8)),
    "flashcache.clean_writes_total": lambda r, unit, capacity: r.choice((1, 4, 16)),
    "flashcache.fallow_delay": lambda r, unit, capacity: r.choice(("0ms", "2ms", "900s")),
    "flashcache.skip_sequential": lambda r, unit, capacity: r.choice((0, 8192, 65_536)),
    "shrd.range": lambda r, unit, capacity: max(r.choice((1, 2, 4)) * unit, 4096),
    "cache.region": lambda r, unit, capacity: r.choice((16, 64, 1024)) * 512,
    "cache.clean_size": lambda r, unit, capacity: r.choice((4096, 65_536, 524_288)),
    "cache.clean_batch": lambda r, unit, capacity: r.choice((4096, 65_536, 4 << 20)),
    "cache.sequential": lambda r, unit, capacity: r.choice((0, 4096, 65_536)),
    "append.free_segments": lambda r, unit, capacity: r.choice((2, 2, 3, 4)),
    "append.over_provisioning": lambda r, unit, capacity: f"{r.choice((1, 7, 28, 100))}%",
    "shrd.list_commands": lambda r, unit, capacity: r.choice((0, 1, 1000)),
}
# Keys of a layer that only one word of another key lets stand, or that it does not.
ORDERED = ("segments", "requests", "unplug_requests", "unplug_time")
OF_DEADLINE = ("read_expire", "write_expire", "fifo_batch", "writes_starved")
# Defaults that do not fit a small drive.
LARGE_DEFAULTS = ("restoring.log", "stripe.chunk", "flashcache.size", "flashcache.set")
# A layer whose first device is a drive: layers do not keep what stamps of its metadata mean.
KEEPS_MEANING = "flashcache"


def draw(tables, seed, commands, unit, capacity, others=()):
    """A tree above drives of the command set `commands` (or none); `others` are the files of other drives."""
    bottoms = [layer for layer in tables.layers if commands in layer.needs]
    r = Stream(seed, "host")
    if bottoms and r.chance(0.25):
        kind = r.choice(bottoms)
        return layer(tables, seed, "0", kind, [{"drive": None}] * kind.least, unit, capacity)
    for attempt in range(20):
        tree = grow(tables, Stream(seed, "tree", attempt), seed, "0", 0, bottoms, unit, capacity, others)
        if "keys" in tree and drives(tree) <= DRIVES:
            return tree
    return layer(tables, seed, "0", (bottoms or plain(tables))[0], None, unit, capacity)


def plain(tables):
    """The layers that stand on any device."""
    return [kind for kind in tables.layers if not kind.needs]


def grow(tables, r, seed, place, depth, bottoms, unit, capacity, others):
    if depth and r.chance(0.4 if depth < DEPTH else 0.9):
        if bottoms:
            return layer(tables, seed, place, r.choice(bottoms), None, unit, capacity)
        disk = Stream(seed, place, "disk")
        if disk.chance(0.1):
            return {"disk": "wd1502faex", "size": disk.choice(("512k", "4m", "1g")), "set": [disk.choice(DISK_OVERRIDES)]}
        if others and r.chance(0.4):
            return {"drive": r.choice(others)} | ({"set": [r.choice(OVERRIDES)]} if r.chance(0.4) else {})
        return {"drive": None}
    kind = r.choice([kind for kind in plain(tables) if not bottoms or kind.kind != KEEPS_MEANING])
    if not bottoms and not others and r.chance(0.2):
        return layer(tables, seed, place, kind, None, unit, capacity)
    most = min(kind.most, 3 if r.chance(0.95) else DRIVES)
    below = [
        grow(tables, r, seed, f"{place}.{number}", depth + 1, bottoms, unit, capacity, others)
        for number in range(r.randint(kind.least, max(most, kind.least)))
    ]
    if kind.kind == KEEPS_MEANING:
        below[0] = {"drive": None}
    return layer(tables, seed, place, kind, below, unit, capacity)


# What a tree's disks override.
DISK_OVERRIDES = (
    "disk.write_cache.enabled=false", "disk.write_cache.bytes=64k", "disk.queue.depth=1", "disk.read_cache.segments=1", "name=other",
)

# What a tree's own drives override.
OVERRIDES = ("gc.victim=fifo", "interface.queue_depth=1", "flash.multi_plane=off", "name=other")


def layer(tables, seed, place, kind, below, unit, capacity):
    """A layer with its keys; `below` is None for as many drives of the command as it needs, or as it says."""
    keys = {"kind": kind.kind}
    share = Stream(seed, place, "share").choice((0, 0.3, 0.6, 1))
    for key in tables.of_layer(kind.kind):
        r = Stream(seed, place, key.leaf)
        name = f"{kind.kind}.{key.leaf}"
        if r.chance(share) or name in LARGE_DEFAULTS:
            fitting = FITTING.get(name)
            keys[key.leaf] = fitting(r, unit, capacity) if fitting else key.value(r)
    if kind.kind == "scheduler":
        policy = keys.get("policy", "fifo")
        unread = (ORDERED if policy == "fifo" else ()) + (OF_DEADLINE if policy != "deadline" else ())
        keys = {key: value for key, value in keys.items() if key not in unread}
    node = {"keys": keys, "below": below}
    if below is None and kind.most > 1 and Stream(seed, place, "drives").chance(0.7):
        keys["drives"] = Stream(seed, place, "number").randint(kind.least, min(kind.most, 3))
    return node


def drives(node):
    """How many drives a tree has, at least."""
    if "keys" not in node:
        return 1
    return sum(map(drives, node["below"])) if node["below"] is not None else node["keys"].get("drives", 2)


def nodes(node):
    """The node and all below it."""
    yield node
    for below in node.get("below") or ():
        yield from nodes(below)


def pairs(node):
    """What stands on what: the kinds of each layer and of a device below it, "drive" for drives."""
    if "keys" not in node:
        return
    kind = node["keys"]["kind"]
    for below in node["below"] if node["below"] is not None else [{"drive": None}]:
        yield kind, below["keys"]["kind"] if "keys" in below else "drive"
        yield from pairs(below)


def description(tree, listed):
    """A host's description. With `listed`, layers of one device stand in the list above one another."""
    lines = []
    while listed and tree["below"] is not None and len(tree["below"]) == 1 and "keys" in tree["below"][0]:
        lines.append(tree)
        tree = tree["below"][0]
    upper = "".join(f"[[layer]]\n{table(node['keys'])}\n" for node in lines)
    lowest = f"[[layer]]\n{table(tree['keys'])}"
    return upper + lowest + ("" if tree["below"] is None else f"below = {toml(list(map(plainly, tree['below'])))}\n")


def table(keys):
    return "".join(f"{key} = {toml(value)}\n" for key, value in keys.items())


def plainly(node):
    if "keys" not in node:
        return {key: value for key, value in node.items() if value is not None}
    return node["keys"] if node["below"] is None else node["keys"] | {"below": list(map(plainly, node["below"]))}
