//! The tables of keys, a section each. What only one policy or design reads is in its own table, beside it.

mod flash;

use ssdlab_base::Nanos;

use super::key::{Default, Family, Key, Kind, Words, words};
use crate::registry::names;
use crate::{Answers, Destage, InterfaceKind, Owners, Pacing, Parity, ReadUnwritten, Reads, Superblock};

/// The longest time of one flash operation or transfer; longer ones are a slip, and sums of them stay in 64 bits.
const LONGEST_OPERATION: Nanos = Nanos(60_000_000_000);
/// The longest other time.
const LONGEST_WAIT: Nanos = Nanos(3_600_000_000_000);
/// The slowest link, in bytes a second.
const SLOWEST_LINK: u64 = 64 << 10;
/// The fastest clock of a processor, in hertz.
const FASTEST_CLOCK: u64 = 100_000_000_000;
/// Most cycles of one piece of work.
const MOST_CYCLES: u32 = 100_000_000;
/// The largest buffer.
const LARGEST_BUFFER: u64 = 64 << 30;
/// Host write streams.
const MOST_STREAMS: u32 = 256;
/// The longest name, in characters.
pub(in crate::description) const LONGEST_NAME: usize = 100;

/// What a description without a capacity is told to have.
pub(in crate::description) const NO_CAPACITY: &str = "over_provisioning or user";

impl Words for InterfaceKind {
    const WORDS: &'static [(&'static str, InterfaceKind)] =
        &[("nvme", InterfaceKind::Nvme), ("sata", InterfaceKind::Sata)];
}

impl Words for ReadUnwritten {
    const WORDS: &'static [(&'static str, ReadUnwritten)] =
        &[("error", ReadUnwritten::Error), ("zeroes", ReadUnwritten::Zeroes)];
}

impl Words for Answers {
    const WORDS: &'static [(&'static str, Answers)] = &[("words", Answers::Words), ("data", Answers::Data)];
}

impl Words for Reads {
    const WORDS: &'static [(&'static str, Reads)] =
        &[("sectors", Reads::Sectors), ("page", Reads::Page), ("gather", Reads::Gather)];
}

impl Words for Destage {
    const WORDS: &'static [(&'static str, Destage)] =
        &[("on-demand", Destage::OnDemand), ("watermark", Destage::Watermark)];
}

impl Words for Superblock {
    const WORDS: &'static [(&'static str, Superblock)] =
        &[("none", Superblock::None), ("die", Superblock::Die), ("drive", Superblock::Drive)];
}

impl Words for Parity {
    const WORDS: &'static [(&'static str, Parity)] =
        &[("none", Parity::None), ("page", Parity::Page), ("die", Parity::Die)];
}

impl Words for Owners {
    const WORDS: &'static [(&'static str, Owners)] = &[("oob", Owners::Oob), ("summary", Owners::Summary)];
}

impl Words for Pacing {
    const WORDS: &'static [(&'static str, Pacing)] = &[("off", Pacing::Off), ("proportional", Pacing::Proportional)];
}

/// Every key of a drive's description.
pub const ROOT: &[Key] = &[
    Key::new(
        "name",
        Kind::Name(LONGEST_NAME),
        Default::Means("the file's name without `.toml`"),
        "The drive's name in results: 1 to 100 characters, without `/`, `\\` or control characters.",
    ),
    Key::new("summary", Kind::Text, Default::Means("none"), "One line on what the drive is, for `ssdlab devices`."),
    Key::new("source", Kind::Text, Default::Means("none"), "Where its numbers come from."),
    Key::new("notes", Kind::Text, Default::Means("none"), "What it assumes and what it leaves out."),
    Key::section("flash", Kind::Table(flash::FLASH)).required("a table of the chips"),
    Key::section("capacity", Kind::Table(CAPACITY)).required(NO_CAPACITY),
    Key::section("interface", Kind::Table(INTERFACE)),
    Key::section("controller", Kind::Table(CONTROLLER)),
    Key::section("buffer", Kind::Chosen(BUFFER, &BUFFERS)),
    Key::section("ftl", Kind::Chosen(FTL, &DESIGNS)),
    Key::section("placement", Kind::Chosen(PLACEMENT, &PLACEMENTS)),
    Key::section("gc", Kind::Chosen(GC, &VICTIMS)),
];

/// `[capacity]`.
pub(in crate::description) const CAPACITY: &[Key] = &[
    Key::new(
        "over_provisioning",
        Kind::Share,
        Default::Means("none"),
        "Over-provisioning as a share of user capacity: (physical - user) / user, such as `\"7%\"`.",
    )
    .replacing(&["capacity.user"]),
    Key::new(
        "user",
        Kind::ANY_SIZE,
        Default::Means("none"),
        "User capacity as a size, such as `\"238g\"` or `1_000_204_886_016`.",
    )
    .replacing(&["capacity.over_provisioning"])
    .instead_of("over_provisioning"),
];

/// `[interface]`.
pub(in crate::description) const INTERFACE: &[Key] = &[
    Key::new(
        "kind",
        Kind::Word(words::<InterfaceKind>),
        Default::word("nvme"),
        "`\"nvme\"`: several queues served round robin, a link that works in both directions at once. `\"sata\"`: one \
         queue of at most 32 that flush and trim drain, a link of one direction at a time.",
    ),
    Key::new(
        "queues",
        Kind::Count { unit: "queues", least: 1, most: 65_535 },
        Default::number(1),
        "Submission queues: 1 to 65,535, and 1 for SATA.",
    ),
    Key::new(
        "queue_depth",
        Kind::Count { unit: "commands", least: 1, most: 65_536 },
        Default::number(32),
        "Commands of each queue in the drive at one time: at most 65,536, and 32 for SATA; at most 2^20 over all \
         queues. Others wait at the host.",
    ),
    Key::new(
        "bandwidth",
        Kind::Bandwidth { least: SLOWEST_LINK, zero: true },
        Default::number(0),
        "Bytes a second over the link in each direction; `0` means that the link takes no time.",
    ),
    Key::new(
        "command_overhead",
        Kind::Time(LONGEST_WAIT),
        Default::number(0),
        "Fixed cost of a command before it is dispatched; any number of commands pay it at the same time.",
    ),
    Key::new(
        "read_overhead",
        Kind::Time(LONGEST_WAIT),
        Default::number(0),
        "Fixed cost of a read on top of `interface.command_overhead`: the controller's look-up, ECC and scheduling.",
    ),
    Key::new(
        "write_overhead",
        Kind::Time(LONGEST_WAIT),
        Default::number(0),
        "Fixed cost of a write on top of `interface.command_overhead`, also of one that a command set adds.",
    ),
    Key::new(
        "processing",
        Kind::Time(LONGEST_WAIT),
        Default::number(0),
        "Time that the controller's processor needs for each command, one command at a time, after the fixed cost.",
    ),
    Key::new(
        "read_unwritten",
        Kind::Word(words::<ReadUnwritten>),
        Default::word("error"),
        "How a drive with append-only segments or zones answers reads of unwritten sectors: with an error, or with zeroes.",
    ),
    Key::new(
        "command_codes",
        Kind::count("codes", 0),
        Default::number(0),
        "Codes of each of the two hardware queues, that of reads and that of writes, block I/O included: a drive whose own \
         command set needs more is refused. `0` is no limit. Two bits of a command's length are 4 codes (Getting Real, \
         section 3.2.2).",
    ),
    Key::new(
        "answers",
        Kind::Word(words::<Answers>),
        Default::word("words"),
        "How answers of the drive's own command set come back. `\"words\"`: with the completion, and the drive may send events. \
         `\"data\"`: only as the data of a read that brings no sectors; a set with other answers or with events is refused.",
    ),
];

/// `[controller]`.
pub(in crate::description) const CONTROLLER: &[Key] = &[
    Key::new(
        "clock",
        Kind::Frequency { least: 1_000, most: FASTEST_CLOCK },
        Default::Means("none: the processor takes no time"),
        "Cycles of the controller's processor a second, such as `\"87.5MHz\"`. One processor serves commands, map entries, flash \
         operations and completions, one after the other. Excludes `interface.processing`.",
    ),
    Key::new(
        "command_cycles",
        Kind::Count { unit: "cycles", least: 0, most: MOST_CYCLES },
        Default::number(0),
        "Cycles for a command that enters the drive, before its data crosses the link.",
    ),
    Key::new(
        "map_entry_cycles",
        Kind::Count { unit: "cycles", least: 0, most: MOST_CYCLES },
        Default::number(0),
        "Cycles for a map entry that is looked at: one for each unit that is read, written, relocated or trimmed.",
    ),
    Key::new(
        "operation_cycles",
        Kind::Count { unit: "cycles", least: 0, most: MOST_CYCLES },
        Default::number(0),
        "Cycles to issue a flash operation, the host's and the controller's own.",
    ),
    Key::new(
        "completion_cycles",
        Kind::Count { unit: "cycles", least: 0, most: MOST_CYCLES },
        Default::number(0),
        "Cycles for a command that ends, before a read's data crosses the link.",
    ),
    Key::new(
        "copy_bandwidth",
        Kind::Bandwidth { least: SLOWEST_LINK, zero: true },
        Default::number(0),
        "Bytes a second that firmware copies in DRAM, one copy at a time: into and out of the write buffer, and out of the \
         read buffer of `controller.reads = \"gather\"`. `0` means that copies take no time.",
    ),
    Key::new(
        "dram",
        Kind::ANY_SIZE,
        Default::number(0),
        "DRAM: the map, other tables and the write buffer must fit. `0` is no limit.",
    ),
    Key::new(
        "sram",
        Kind::ANY_SIZE,
        Default::number(0),
        "SRAM: the owners of the units that the write frontiers list must fit. `0` is no limit.",
    ),
    Key::new(
        "reads",
        Kind::Word(words::<Reads>),
        Default::word("sectors"),
        "What a host read takes from a page of flash. `\"sectors\"`: the sectors that it wants; neighbours on one page share a \
         read. `\"page\"`: the whole page, for which it waits. `\"gather\"`: the units that it wants, by way of DRAM; all of a \
         command on a page with one read if enough of the page is valid, else a read for each unit \
         ([model/controller.md](model/controller.md#reads)).",
    ),
    Key::new(
        "gather_share",
        Kind::Percent(0),
        Default::number(50),
        "The share of a page's units that is valid from which on one read gathers all units of a command.",
    )
    .only_with("reads", "gather"),
];

/// `[buffer]`, but for what single policies read.
pub(in crate::description) const BUFFER: &[Key] = &[
    Key::new(
        "policy",
        Kind::Word(|| names("buffer.policy")),
        Default::word("none"),
        "A policy by name; `ssdlab list` lists them.",
    ),
    Key::new(
        "size",
        Kind::Size { least: 0, most: LARGEST_BUFFER, step: 512 },
        Default::Means("required with a policy"),
        "Data space, allocated by the sector: a multiple of 512, at least a page, at most 64 GiB. Unused without a \
         policy.",
    ),
    Key::new(
        "latency",
        Kind::Time(LONGEST_WAIT),
        Default::number(Nanos::from_us(1).0),
        "RAM access of a command that the buffer serves; the default is a round number for copying a few kilobytes.",
    ),
    Key::new(
        "destage",
        Kind::Word(words::<Destage>),
        Default::word("watermark"),
        "When data leaves for flash, apart from flushes and FUA writes \
         ([model/buffer.md](model/buffer.md)). `\"watermark\"`: at the high watermark the \
         drive starts to evict, and keeps its chips busy down to the low one. `\"on-demand\"`: a page leaves when a \
         write finds no space. Descriptions of papers whose drives replace pages on demand set this.",
    ),
    Key::new(
        "high_watermark",
        Kind::Percent(1),
        Default::number(80),
        "Share of the space that dirty data (in the buffer, its program not in flight) takes when destaging begins: \
         whole percent from 1. A high mark lets RAM absorb more overwrites, a low one leaves more space for bursts.",
    )
    .only_with("destage", "watermark"),
    Key::new(
        "low_watermark",
        Kind::Percent(0),
        Default::Means("10 points below the high one"),
        "Share at which destaging ends: at most the high watermark. `\"0%\"` empties the buffer down to less than a \
         page.",
    )
    .only_with("destage", "watermark"),
];

/// `[ftl]`, but for what single designs read.
pub(in crate::description) const FTL: &[Key] = &[
    Key::new(
        "design",
        Kind::Word(|| names("ftl.design")),
        Default::word(crate::ftl::DESIGNS[0].name),
        "A design by name; `ssdlab list` lists them.",
    ),
    Key::new(
        "mapping_unit",
        Kind::Size { least: 512, most: u64::MAX, step: 512 },
        Default::Means("a page"),
        "Bytes that one map entry stands for: a power of two from 512 that divides a page (the default is the \
         largest). Fewer than 2^32 - 2 units of flash.",
    ),
    Key::new(
        "allocation",
        Kind::Allocation,
        Default::word("round-robin"),
        "Where host pages go. An order of the letters c (channel), w (way), d (die), p (plane), fastest first, such as \
         `\"cwdp\"`: the logical address decides (static allocation). `\"round-robin:cwdp\"`, or `\"round-robin\"` for \
         short: the next plane in that order, whatever the address. `\"dynamic\"`: the least loaded die.",
    ),
    Key::new(
        "superblock",
        Kind::Word(words::<Superblock>),
        Default::word("none"),
        "Which blocks are opened, written, collected and retired as one: `\"die\"`, a block of each plane of a die; \
         `\"drive\"`, a block of each plane of the drive; `\"none\"`, each block by itself. Pages of a superblock are \
         allocated a row at a time, so that the planes of a die program together, in more than 97 % of programs under \
         collection: see [model/superblocks.md](model/superblocks.md#superblocks). The keys of `[gc]` then apply to \
         superblocks and to a die or the drive instead of blocks and planes. Excludes static allocation and \
         `gc.copyback`.",
    ),
    Key::new(
        "parity",
        Kind::Word(words::<Parity>),
        Default::word("none"),
        "Which pages of a stripe (the pages at one offset of a superblock's members) hold parity. `\"page\"`: one \
         page, the XOR of all others; protects against the loss of any one page of the stripe. Needs superblocks of at \
         least two planes. `\"die\"`: one page for each plane of a die, the XOR of the pages on that plane of the \
         other dies; protects against the loss of any one die. Needs `ftl.superblock = \"drive\"` and at least two \
         dies. Parity pages reduce the over-provisioning: see [model/superblocks.md](model/superblocks.md#parity).",
    ),
    Key::new("separate_gc_frontier", Kind::Boolean, Default::ON, "Relocated pages go to separate blocks."),
    Key::new(
        "streams",
        Kind::Count { unit: "streams", least: 1, most: MOST_STREAMS },
        Default::number(1),
        "Host write streams, each with its own open block: 1 to 256.",
    ),
    Key::new(
        "owners",
        Kind::Word(words::<Owners>),
        Default::word("oob"),
        "What on flash says which logical units are in a page. `\"oob\"`: the page's OOB area. `\"summary\"`, for the design \
         `page`: a list in the last page of each block, and early lists of open blocks for flushes and FUA writes \
         ([model/summaries.md](model/summaries.md)). Excludes superblocks and `gc.pacing`; a list must fit into a page.",
    ),
];

/// `[placement]`, but for what single policies read.
pub(in crate::description) const PLACEMENT: &[Key] = &[Key::new(
    "policy",
    Kind::Word(|| names("placement.policy")),
    Default::word(crate::placement::DEFAULT),
    "Which of the streams (`ftl.streams`) takes a unit that the host writes; `ssdlab list` lists the policies \
     ([model/placement.md](model/placement.md)). All but `\"stream-hint\"` need at least 2 streams.",
)];

/// The victim policy of a description that names none.
pub(in crate::description) const DEFAULT_VICTIM: &str = "greedy";

/// `[gc]`, but for what single victim policies read.
pub(in crate::description) const GC: &[Key] = &[
    Key::new(
        "victim",
        Kind::Word(|| names("gc.victim")),
        Default::word(DEFAULT_VICTIM),
        "A victim policy by name; `ssdlab list` lists them. Of blocks with equally few valid units, greedy takes the lowest \
         number.",
    ),
    Key::new(
        "free_blocks",
        Kind::count("blocks", 2),
        Default::number(3),
        "Garbage collection runs in a plane while fewer blocks than this are free, open blocks not counted: at least \
         2, fewer than a plane's blocks. With 2, a plane reserves one block for relocation, else two. A power cut that \
         tears a page of a relocation costs the reserve that page until a block has been erased. A series of such cuts \
         can leave a full plane without space to relocate; the drive is then read-only, though nothing is worn. With 2 \
         and blocks of a few pages three cuts can be enough; use 3 or more in experiments with power cuts.",
    ),
    Key::new(
        "background_free_blocks",
        Kind::count("blocks", 0),
        Default::number(0),
        "An idle drive collects until this many blocks are free: more than `free_blocks`, or `0` for no background \
         collection.",
    ),
    Key::new(
        "pacing",
        Kind::Word(words::<Pacing>),
        Default::word("off"),
        "When garbage collection runs. `\"off\"`: while a plane or superblock group is short of free blocks. \
         `\"proportional\"`: all the time, a share of relocations for each page that the host writes; a host that is \
         too fast waits ([model/collection.md](model/collection.md#pacing)).",
    ),
    Key::new(
        "idle_after",
        Kind::Time(LONGEST_WAIT),
        Default::number(Nanos::from_ms(100).0),
        "The drive counts as idle after this time without host commands.",
    ),
    Key::new(
        "copyback",
        Kind::Boolean,
        Default::Means("`flash.copyback`; `false` with superblocks"),
        "Move whole valid pages by copyback if source and target share a plane; needs `flash.copyback`.",
    ),
    Key::new(
        "dynamic_wear_levelling",
        Kind::Boolean,
        Default::ON,
        "Open the least worn free block first; otherwise the one that was freed first.",
    ),
    Key::new(
        "static_wear_threshold",
        Kind::count("erases", 0),
        Default::number(0),
        "Move cold data if the erase counts of a plane differ by more than this; `0` is never.",
    ),
];

/// The buffer policies.
pub(in crate::description) static BUFFERS: Family =
    Family { key: "policy", members: || crate::registry::keys(crate::buffer::POLICIES.all()), expands_all: true };
/// The designs of flash translation layers.
pub(in crate::description) static DESIGNS: Family =
    Family { key: "design", members: || crate::registry::keys(crate::ftl::DESIGNS), expands_all: false };
/// The placement policies.
pub(in crate::description) static PLACEMENTS: Family =
    Family { key: "policy", members: || crate::registry::keys(crate::placement::POLICIES.all()), expands_all: true };
/// The victim policies.
pub(in crate::description) static VICTIMS: Family =
    Family { key: "victim", members: || crate::registry::keys(crate::gc::victim::POLICIES.all()), expands_all: true };
