"""Random drives: every key of a drive's description, on chips of at most a few megabytes.

Values come from the table of keys. What is here is what no single key says: sizes that fit a small drive, and rules
between keys. A drive that breaks a rule is refused, and `mend` takes its key out or draws it again.
"""

import re

from keys import Stream, size_of

# Most pages, and most bytes, of the flash of a drive.
PAGES = 3000
BYTES = 6 << 20

CHANNELS, CHIPS, DIES, PLANES = (1, 1, 1, 2, 2, 3, 4), (1, 1, 1, 2), (1, 1, 1, 2, 3), (1, 1, 2, 2, 3, 4)
BLOCKS = (8, 9, 12, 16, 20, 24, 32, 32, 48, 64, 100)
PAGES_PER_BLOCK = (1, 2, 3, 4, 5, 7, 8, 16, 16, 32, 33, 64)
PAGE_SIZES = (512, 1024, 1536, 2048, 4096, 4096, 4096, 4096, 6144, 8192, 12288, 16384, 16384, 65536)
# Shares of the keys of a section that are drawn.
DENSITIES = (0.0, 0.1, 0.3, 0.6, 1.0)
# Share of keys of designs and policies that are not chosen, which are of no effect.
STRAY = 0.01


class Geometry:
    """The chips' sizes."""

    def __init__(self, seed, page_size=None, segmented=False, whole_pages=False):
        r = Stream(seed, "geometry")
        self.channels, self.chips = r.choice(CHANNELS), r.choice(CHIPS)
        self.dies_per_chip, self.planes_per_die = r.choice(DIES), r.choice(PLANES)
        if r.chance(0.02):
            self.channels = r.choice((16, 33))
        self.blocks, self.pages = r.choice(BLOCKS), r.choice(PAGES_PER_BLOCK)
        self.page_size = page_size or r.choice(PAGE_SIZES)
        if whole_pages and not page_size and r.chance(0.97):
            self.page_size = min(1 << self.page_size.bit_length() - 1, 32768)
        if segmented:
            # Segments of a few pages, because the log of the layer above them takes several.
            self.blocks, self.pages = max(self.blocks, 48), min(self.pages, 16)
            self.channels, self.planes_per_die = min(self.channels, 2), min(self.planes_per_die, 2)
        while self.all_pages > PAGES or self.all_pages * self.page_size > BYTES:
            if self.blocks > (48 if segmented else 16):
                self.blocks //= 2
            elif self.pages > 16 or self.pages > 1 and self.planes <= 4:
                self.pages = (self.pages + 1) // 2
            elif self.planes > 1:
                levels = ("channels", "chips", "dies_per_chip", "planes_per_die")
                largest = max(levels, key=lambda name: getattr(self, name))
                setattr(self, largest, (getattr(self, largest) + 1) // 2)
            else:
                self.blocks -= 1

    @property
    def dies(self):
        return self.channels * self.chips * self.dies_per_chip

    @property
    def planes(self):
        return self.dies * self.planes_per_die

    @property
    def all_pages(self):
        return self.planes * self.blocks * self.pages

    @property
    def bytes(self):
        return self.all_pages * self.page_size

    def keys(self):
        return {
            "flash.channels": self.channels, "flash.chips_per_channel": self.chips,
            "flash.dies_per_chip": self.dies_per_chip, "flash.planes_per_die": self.planes_per_die,
            "flash.blocks_per_plane": self.blocks, "flash.pages_per_block": self.pages,
            "flash.page_size": self.page_size,
        }


def powers(geometry, most=32768):
    """The powers of two from 512 that divide a page."""
    return [unit for unit in (512 << shift for shift in range(8)) if geometry.page_size % unit == 0 and unit <= most]


# Values of a key that fit a small drive, or go with other keys: of the random stream, the geometry and what is drawn.
FITTING = {
    "flash.oob_size": lambda r, g, d: r.choice([g.page_size // part for part in (1, 2, 4, 32)] + [128]),
    "flash.suspend_limit": lambda r, g, d: r.choice((1, 2, 16, 1_000_000)),
    "interface.queues": lambda r, g, d: 1 if d.get("interface.kind") == "sata" else r.choice((1, 2, 3, 16)),
    "interface.queue_depth": lambda r, g, d: (
        r.choice((1, 2, 31, 32)) if d.get("interface.kind") == "sata" else r.choice((1, 2, 3, 32, 64, 1024, 65_536))
    ),
    "buffer.size": lambda r, g, d: (
        r.choice((1, 1, 2, 3, 4, 8, 16, 64, 300)) * g.page_size + (512 * r.randrange(8) if r.chance(0.3) else 0)
    ),
    "buffer.low_watermark": lambda r, g, d: (
        f"{r.randint(0, int(str(d.get('buffer.high_watermark', '80%')).rstrip('%')))}%"
    ),
    "buffer.block_pages": lambda r, g, d: r.choice((1, 2, 3, g.pages, 2 * g.pages, 65_536)),
    "ftl.mapping_unit": lambda r, g, d: r.choice(powers(g)),
    "ftl.streams": lambda r, g, d: r.choice((1, 1, 2, 3, 4, 8)) if g.blocks >= 16 else r.choice((1, 2)),
    "ftl.region": lambda r, g, d: g.page_size * r.choice((1, 2, 3, 16, 1000)),
    "ftl.map_page": lambda r, g, d: r.choice(powers(g, min(g.page_size, 65_536))),
    "ftl.map_log": lambda r, g, d: (
        0 if d.get("ftl.map_cache_by") == "entry" else r.choice((0, 64, 512, 4096, 65_536)) * r.choice((1, 8))
    ),
    "ftl.rwlb": lambda r, g, d: g.page_size * r.choice((4, 4, 5, 8, 8, 16, 32)),
    "ftl.zone_size": lambda r, g, d: 1 << r.randint(14, 24),
    "ftl.max_open_zones": lambda r, g, d: r.choice((0, 1, 2, 4)),
    "ftl.max_active_zones": lambda r, g, d: r.choice((0, 4, 8)),
    "ftl.version_bits": lambda r, g, d: r.choice((2, 3, 4, 5, 8, 16)),
    "ftl.version_chain": lambda r, g, d: 2 if d.get("ftl.version_index") == "direct" else r.choice((2, 3, 4, 64)),
    "gc.free_blocks": lambda r, g, d: r.choice((2, 2, 3, 3, 4, 5)),
    "gc.background_free_blocks": lambda r, g, d: r.choice((0, 6, 7)) if g.blocks > 8 else 0,
    "gc.static_wear_threshold": lambda r, g, d: r.choice((0, 1, 2, 5, 100)),
    "flash.faults.endurance": lambda r, g, d: r.choice((1, 2, 3, 10, 100)),
    "flash.faults.factory_bad": lambda r, g, d: r.choice((0, 0.01, 0.05, "10%")),
}
# Keys that other parts of this file draw; `die_capacity` is another way to give the blocks, which the geometry does.
DRAWN_APART = (
    "flash.die_capacity", "capacity.over_provisioning", "capacity.user", "flash.timing", "flash.cell", "flash.faults.script",
)

# Designs that map blocks: they have no frontiers, and no collection but merges.
BLOCK_MAPPED = ("block-mapped", "bast", "fast")
# Designs whose map blocks have no parity.
MAP_ON_FLASH = ("dftl", "shrd")
# Designs that map whole pages, which are then powers of two.
WHOLE_PAGES = (*BLOCK_MAPPED, "mvftl", "aftl", "aftl-zoned", "one-table")

# Defaults that do not fit a small drive.
LARGE_DEFAULTS = {"ftl.map_page": 4096, "ftl.region": 1 << 20, "ftl.rwlb": 64 << 20}


def draw(tables, seed, page_size=None, design=None, faults=True):
    """A drive: values by dotted key, and its geometry."""
    drive = {} if design is None else {"ftl.design": design}
    chosen(tables, seed, drive)
    chosen_design = drive.get("ftl.design")
    geometry = Geometry(seed, page_size, chosen_design in tables.segmented, chosen_design in WHOLE_PAGES)
    drive |= geometry.keys()
    shares = {}
    faulty = faults and Stream(seed, "faulty").chance(0.35)
    for key in tables.drive():
        if key.name in drive or key.section == "flash.timing" or key.name in DRAWN_APART:
            continue
        if key.section.startswith("flash.faults") and (not faulty or key.section != "flash.faults"):
            continue
        share = shares.setdefault(key.section, Stream(seed, "share", key.section).choice(DENSITIES))
        if key.owner and drive.get(key.owner) not in key.owners:
            share = STRAY
        r = Stream(seed, key.name)
        if key.name in LARGE_DEFAULTS and share > STRAY:
            share = 1.0
        if r.chance(share) or key.required:
            fitting = FITTING.get(key.name)
            drive[key.name] = fitting(r, geometry, drive) if fitting else key.value(r)
    if drive.get("buffer.policy", "none") == "none":
        drive.pop("buffer.size", None)
    elif "buffer.size" not in drive:
        drive["buffer.size"] = FITTING["buffer.size"](Stream(seed, "buffer.size"), geometry, drive)
    timing(tables, seed, drive)
    if faulty and Stream(seed, "scripted").chance(0.5):
        drive["flash.faults.script"] = script(tables, seed, geometry)
    agree(tables, seed, drive, geometry)
    capacity(tables, seed, drive, geometry)
    as_of_a_datasheet(seed, drive, geometry)
    return drive, geometry


def as_of_a_datasheet(seed, drive, geometry):
    """The capacity of a die in place of its blocks, where it is whole megabits."""
    planes = drive.get("flash.planes_per_die", 1)
    bits = 8 * planes * geometry.blocks * geometry.pages * geometry.page_size
    if Stream(seed, "flash.die_capacity").chance(0.1) and bits % (1 << 20) == 0 and "flash.blocks_per_plane" in drive:
        del drive["flash.blocks_per_plane"]
        drive["flash.die_capacity"] = f"{bits >> 20}Mb"


def chosen(tables, seed, drive):
    """The policies and designs, because other keys belong to them."""
    owners = {key.owner for key in tables.drive() if key.owner}
    for name in sorted(owners - drive.keys()):
        r = Stream(seed, name)
        if r.chance(0.8):
            drive[name] = tables[name].value(r)


def timing(tables, seed, drive):
    """A preset, a preset and a table above it, a table, or none."""
    r = Stream(seed, "flash.timing")
    suspends = drive.get("flash.program_suspend") or drive.get("flash.erase_suspend")
    form = r.choice(("table", "table", "preset") if suspends else ("table", "table", "preset", "word", "word", "cell"))
    if form in ("word", "cell"):
        name = {"word": "flash.timing", "cell": "flash.cell"}[form]
        drive[name] = tables[name].value(r)
        return
    needed = {"suspend", "resume"} if suspends else set()
    if form == "table":
        needed |= {"read", "program", "erase", r.choice(("transfer", "channel_bandwidth"))}
    else:
        needed |= {"preset"}
    for key in tables.drive():
        if key.section != "flash.timing":
            continue
        r = Stream(seed, key.name)
        if key.leaf in needed or key.leaf != "preset" and r.chance(0.2):
            if not drive.keys() & exclusive(tables, key):
                drive[key.name] = key.value(r)
                if isinstance(drive[key.name], list):
                    drive[key.name] = drive[key.name][: drive["flash.pages_per_block"]]


def exclusive(tables, key):
    """The keys that cannot stand beside a key."""
    of = {f"{other.section}.{other.instead_of}": other.name for other in tables.keys if other.instead_of}
    return {f"{key.section}.{key.instead_of}", of.get(key.name)} - {None}


def script(tables, seed, geometry):
    """Faults at exact operations."""
    entries = []
    for number in range(Stream(seed, "flash.faults.script").randint(1, 5)):
        entry = {}
        for key in tables.drive():
            if key.section != "flash.faults.script":
                continue
            r = Stream(seed, key.name, number)
            if key.leaf == "block":
                entry[key.leaf] = r.randrange(geometry.planes * geometry.blocks)
            elif key.leaf == "kind":
                entry[key.leaf] = r.choice([word for word in key.words if word != "die" or r.chance(0.4)])
            elif key.required or r.chance(0.8):
                entry[key.leaf] = key.value(r, most=100)
        entries.append(entry)
    return entries


def controller(tables, r, drive, design):
    """Keeps the rules of the processor, its RAM and what the interface can carry."""
    keys = [name for name in drive if name.startswith("controller.")]
    if keys and r.chance(0.9):
        drive.pop("interface.processing", None)
    if any(name.endswith("_cycles") for name in keys):
        drive.setdefault("controller.clock", "87.5MHz")
    for name, sizes in (("controller.dram", ("64m", 0, 65_075_200)), ("controller.sram", ("96k", 0))):
        if name in drive and r.chance(0.9):
            drive[name] = r.choice(sizes)
    if drive.get("controller.reads") == "gather" and (design in (*MAP_ON_FLASH, "mvftl") or design in tables.segmented):
        drive["controller.reads"] = "page"
    if r.chance(0.8) and design not in (None, "page"):
        drive.pop("interface.command_codes", None)
        drive.pop("interface.answers", None)


def agree(tables, seed, drive, geometry):
    """Makes most drives keep the rules between keys; the others show that a drive that breaks one is refused."""
    r = Stream(seed, "agree")
    if r.chance(0.04):
        return
    static = not drive.get("ftl.allocation", "round-robin").startswith(("dynamic", "round-robin"))
    design = drive.get("ftl.design")
    controller(tables, r, drive, design)
    if drive.get("gc.copyback") and not drive.get("flash.copyback"):
        drive["flash.copyback"] = True
    if drive.get("ftl.superblock", "none") != "none":
        drive.pop("gc.copyback", None)
        if static:
            drive["ftl.allocation"] = "dynamic"
    if drive.get("ftl.owners") == "summary" or drive.get("flash.oob") == "ecc" and design not in BLOCK_MAPPED[:1]:
        # Lists of owners are the design page's, and are of single blocks.
        if design in (None, "page"):
            drive["ftl.owners"] = "summary"
            drive.pop("ftl.superblock", None)
            drive.pop("gc.pacing", None)
            geometry.pages = drive["flash.pages_per_block"] = max(geometry.pages, 4)
            drive["ftl.mapping_unit"] = geometry.page_size if geometry.page_size & (geometry.page_size - 1) == 0 else 512
        else:
            drive.pop("ftl.owners", None)
            drive.pop("flash.oob", None)
    across = {"die": geometry.planes_per_die, "drive": geometry.planes}.get(drive.get("ftl.superblock"), 1)
    parity = drive.get("ftl.parity", "none")
    lone = parity == "die" and (drive.get("ftl.superblock") != "drive" or geometry.dies < 2)
    if lone or parity != "none" and (across < 2 or design in MAP_ON_FLASH):
        drive.pop("ftl.parity")
    if design in tables.segmented:
        drive["ftl.allocation"] = "dynamic"
        for name in ("ftl.mapping_unit", "ftl.streams", "ftl.superblock", "ftl.parity", "ftl.separate_gc_frontier",
                     "gc.background_free_blocks", "gc.pacing", "gc.copyback", "buffer.policy", "buffer.size"):
            drive.pop(name, None)
    if design in BLOCK_MAPPED:
        drive["ftl.allocation"] = "dynamic"
        if geometry.pages == 1:
            geometry.pages = drive["flash.pages_per_block"] = 2
        if int(drive.get("ftl.log_blocks", "15%").rstrip("%")) > 70:
            drive["ftl.log_blocks"] = "70%"
        for name in ("ftl.mapping_unit", "ftl.streams", "ftl.superblock", "ftl.parity", "ftl.separate_gc_frontier",
                     "gc.pacing", "gc.static_wear_threshold", "gc.background_free_blocks", "gc.copyback", "buffer.bplru_padding"):
            drive.pop(name, None)
    if design == "one-table":
        drive["ftl.mapping_unit"] = geometry.page_size
    if drive.get("placement.policy", "stream-hint") != "stream-hint":
        # It chooses among several streams, which these designs do not have.
        if design in tables.segmented or design in BLOCK_MAPPED:
            drive.pop("placement.policy")
            drive.pop("placement.hot_age", None)
        else:
            drive["ftl.streams"] = max(drive.get("ftl.streams", 1), 2)
    if any(name in drive for name in ("flash.faults.program_failure", "flash.faults.script")):
        drive["gc.free_blocks"] = max(drive.get("gc.free_blocks", 3), 3)
    background = drive.get("gc.background_free_blocks", 0)
    if background:
        drive["gc.background_free_blocks"] = max(background, drive.get("gc.free_blocks", 3) + 1)
    if drive.get("ftl.max_active_zones", 0):
        drive["ftl.max_open_zones"] = drive.get("ftl.max_open_zones", 0) or 1


def capacity(tables, seed, drive, geometry):
    """A user capacity, often close to the most that the drive can have."""
    r = Stream(seed, "capacity")
    kept = drive.get("gc.free_blocks", 3) + drive.get("ftl.streams", 1) + 1 + (drive.get("ftl.owners") == "summary")
    most = max(geometry.blocks - kept, 1) / geometry.blocks
    if drive.get("ftl.design") in BLOCK_MAPPED:
        # Data blocks beside log blocks, less a page of each for its header.
        most *= (1 - int(drive.get("ftl.log_blocks", "15%").rstrip("%")) / 100) * (geometry.pages - 1) / geometry.pages
        most = max(most, 1 / geometry.blocks)
    if drive.get("ftl.parity", "none") != "none":
        most /= 2
    if drive.get("ftl.owners") == "summary":
        # A page of each block for its list, and one for an early list.
        most *= max(geometry.pages - 2, 1) / geometry.pages
    design = drive.get("ftl.design")
    if tables.commands.get(design) or "ftl.map_cache" in drive or "ftl.map_page" in drive:
        most /= 2
    share = most * r.choice((0.3, 0.5, 0.8, 0.9, 0.97))
    if design in tables.segmented:
        levels = {"channels": geometry.channels, "planes": geometry.planes}
        blocks = levels.get(drive.get("ftl.segment_levels"), geometry.dies)
        segment = blocks * geometry.pages * geometry.page_size
        drive["capacity.user"] = max(int(geometry.bytes * share * 2) // segment, 1) * segment
        return
    if r.chance(0.5):
        drive["capacity.user"] = max(int(geometry.bytes * share), 512)
    else:
        drive["capacity.over_provisioning"] = f"{(1 - share) / share * 100:.4f}%"


def mend(tables, seed, drive, geometry, name, message):
    """Changes the key that a refusal names; says whether it could."""
    r = Stream(seed, "mend", name, message)
    advice = re.search(r'use "([\w-]+)"|: use (\d+)|set it to (\d+)|such as [a-z_.]+ = "?([\w.]+)', message)
    if name.startswith("flash.faults.script"):
        return drive.pop("flash.faults.script", None) is not None
    if name == "ftl.mapping_unit" and (geometry.page_size & geometry.page_size - 1 or geometry.page_size > 32768):
        # A page that is no power of two, or too large, where the design maps pages.
        geometry.page_size = 16384 if geometry.page_size > 32768 else 4096
        drive["flash.page_size"] = geometry.page_size
        drive.pop(name, None)
        if "capacity.user" in drive:
            capacity(tables, seed, drive, geometry)
        return True
    if advice and name in tables.by_name:
        value = next(value for value in advice.groups() if value)
        value = int(value) if value.isdigit() else value
        if drive.get(name) != value:
            if tables[name].words is None or value in tables[name].words:
                for other in exclusive(tables, tables[name]):
                    drive.pop(other, None)
                drive[name] = value
                return True
    if name.startswith("capacity"):
        return more_space(tables, seed, drive, geometry, r)
    key = tables.by_name.get(name)
    if key is None:
        return False
    bound = re.search(r"(?:at least|needs) (\d+)", message)
    if bound and key.type in ("count", "size", "size or percentage"):
        if drive.get(name) != int(bound[1]):
            drive[name] = int(bound[1])
            return True
    if name in drive and not key.required:
        del drive[name]
        return True
    fitting = FITTING.get(name)
    drive[name] = fitting(r, geometry, drive) if fitting else key.value(r)
    return True


def more_space(tables, seed, drive, geometry, r):
    """A smaller capacity, or more blocks where a smaller one is not enough."""
    user = user_bytes(drive, geometry) * 3 // 5
    drive.pop("capacity.over_provisioning", None)
    drive["capacity.user"] = user
    if user < 4 * geometry.page_size or r.chance(0.5):
        geometry.blocks = min(max(2 * geometry.blocks, 24), 200)
        drive.pop("flash.die_capacity", None)
        drive["flash.blocks_per_plane"] = geometry.blocks
        for name in ("ftl.log_blocks", "gc.free_blocks", "ftl.streams"):
            drive.pop(name, None)
        capacity(tables, seed, drive, geometry)
    return True


def user_bytes(drive, geometry):
    """The user capacity that a drive asks for."""
    if "capacity.user" in drive:
        return size_of(drive["capacity.user"])
    return int(geometry.bytes / (1 + float(drive["capacity.over_provisioning"].rstrip("%")) / 100))
