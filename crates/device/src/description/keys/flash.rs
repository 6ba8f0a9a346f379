//! The keys of `[flash]`.

use ssdlab_base::Nanos;
use ssdlab_flash::presets::PRESETS;
use ssdlab_flash::{FaultKind, MultiPlane, OobUse};

use super::{LONGEST_OPERATION, LONGEST_WAIT, SLOWEST_LINK};
use crate::description::key::{Default, Key, Kind, Words, words};
use crate::registry::names;

/// The largest page.
const LARGEST_PAGE: u64 = 1 << 20;

const COUNT: &str = "a whole number of at least 1";
const PAGE: &str = "the data bytes of a page, such as \"4k\" or \"16k\"";

impl Words for MultiPlane {
    const WORDS: &'static [(&'static str, MultiPlane)] =
        &[("off", MultiPlane::Off), ("same-offset", MultiPlane::SameOffset), ("relaxed", MultiPlane::Relaxed)];
}

impl Words for OobUse {
    const WORDS: &'static [(&'static str, OobUse)] = &[("free", OobUse::Free), ("ecc", OobUse::Ecc)];
}

impl Words for FaultKind {
    const WORDS: &'static [(&'static str, FaultKind)] = &[
        ("read", FaultKind::Read),
        ("program", FaultKind::Program),
        ("erase", FaultKind::Erase),
        ("factory", FaultKind::Factory),
        ("die", FaultKind::Die),
    ];
}

fn presets() -> Vec<&'static str> {
    PRESETS.iter().map(|preset| preset.name).collect()
}

fn presets_or_none() -> Vec<&'static str> {
    presets().into_iter().chain(["none"]).collect()
}

/// `[flash]`.
pub(in crate::description) const FLASH: &[Key] = &[
    Key::new("channels", Kind::count("channels", 1), Default::Required(COUNT), "Channels of the drive."),
    Key::new("chips_per_channel", Kind::count("chips", 1), Default::Required(COUNT), "Chips (ways) on each channel."),
    Key::new(
        "dies_per_chip",
        Kind::count("dies", 1),
        Default::Required(COUNT),
        "Dies in each chip. A die does one array operation at a time.",
    ),
    Key::new("planes_per_die", Kind::count("planes", 1), Default::Required(COUNT), "Planes in each die."),
    Key::new(
        "blocks_per_plane",
        Kind::count("blocks", 1),
        Default::Means("from `die_capacity`; one of the two is required"),
        "Blocks in each plane, over-provisioned and bad ones included.",
    )
    .replacing(&["flash.die_capacity"]),
    Key::new(
        "die_capacity",
        Kind::Bits,
        Default::Means("none"),
        "In place of `blocks_per_plane`: a die's capacity in bits as on its datasheet, such as `\"128Gb\"`. Each plane has as \
         many whole blocks as it takes to reach it; refused if that adds more than 1 %. Blocks beyond it, which most dies \
         have, are not there.",
    )
    .replacing(&["flash.blocks_per_plane"])
    .instead_of("blocks_per_plane"),
    Key::new(
        "pages_per_block",
        Kind::count("pages", 1),
        Default::Required(COUNT),
        "Pages in each block, programmed in order.",
    ),
    Key::new(
        "page_size",
        Kind::Size { least: 512, most: LARGEST_PAGE, step: 512 },
        Default::Required(PAGE),
        "Data bytes of a page: a multiple of 512, at most 1 MiB.",
    ),
    Key::new(
        "oob_size",
        Kind::ANY_SIZE,
        Default::Means("`page_size` / 32"),
        "Out-of-band bytes of a page, at most a page. The default follows Table I of the write amplification paper: \
         128 bytes for a 4 KiB page.",
    ),
    Key::new(
        "oob",
        Kind::Word(words::<OobUse>),
        Default::word("free"),
        "Who has the OOB areas. `\"free\"`: the firmware, beside the error-correcting code. `\"ecc\"`: the code alone; a design that \
         keeps metadata there is refused (`ftl.owners = \"summary\"` helps).",
    ),
    Key::new(
        "cell",
        Kind::Word(presets),
        Default::Means("none"),
        "A preset for the timing: `\"slc\"`, `\"mlc\"`, `\"tlc\"` or `\"qlc\"`.",
    )
    .replacing(&["flash.timing"]),
    Key::new(
        "timing",
        Kind::TableOrWord(TIMING, "preset", presets_or_none),
        Default::Means("the preset of `cell`"),
        "A table (below), a preset's name, or `\"none\"`: operations take no time and a run only counts.",
    )
    .replacing(&["flash.cell"]),
    Key::new(
        "multi_plane",
        Kind::Word(words::<MultiPlane>),
        Default::word("same-offset"),
        "Operations on several planes of a die run as one: `\"off\"` never, `\"same-offset\"` at the same page of the \
         block (ONFI's rule), `\"relaxed\"` at any page.",
    ),
    Key::new(
        "copyback",
        Kind::BooleanOrWord(|| vec!["checked"]),
        Default::OFF,
        "A page can move inside its plane: `true` without crossing the channel; `\"checked\"` after it has crossed the channel \
         once, to the controller's ECC, so that what cannot be corrected is noticed.",
    ),
    Key::new("cache_program", Kind::Boolean, Default::OFF, "The next page's data comes in while a program runs."),
    Key::new("program_suspend", Kind::Boolean, Default::OFF, "A program is suspended for a waiting host read."),
    Key::new("erase_suspend", Kind::Boolean, Default::OFF, "An erase is suspended for a waiting host read."),
    Key::new(
        "suspend_limit",
        Kind::Count { unit: "reads", least: 1, most: 1_000_000 },
        Default::number(16),
        "Host reads that a program or an erase gives way to, over all its suspensions. Then it runs to its end.",
    ),
    Key::new(
        "scheduler",
        Kind::Word(|| names("flash.scheduler")),
        Default::word("fifo"),
        "How a die picks its next operation: `\"fifo\"`; `\"reads-first\"`; `\"host-first\"`, the host's before \
         garbage collection's ([schedulers.md](schedulers.md) compares them). `\"single-fifo\"`: the drive has one queue \
         instead of one for each die, and sends an operation after all earlier ones. `\"in-order\"`: the drive has one queue, \
         and issues an operation when idle dies have accepted all earlier ones; transfers on several channels overlap \
         ([model/chips.md](model/chips.md#one-queue)).",
    ),
    Key::new(
        "scheduler_starvation",
        Kind::Time(LONGEST_WAIT),
        Default::number(Nanos::from_ms(5).0),
        "With `\"host-first\"`: the longest that an operation of garbage collection waits while the host has \
         operations queued on the die. The die then runs the oldest such operation next, and after it one of the host, \
         even if others have waited as long.",
    ),
    Key::section("faults", Kind::Table(FAULTS)),
];

/// `flash.timing`, where it is a table.
pub(in crate::description) const TIMING: &[Key] = &[
    Key::new(
        "preset",
        Kind::Word(presets),
        Default::Means("none"),
        "The preset that the table starts from; the same as `flash.cell`.",
    )
    .replacing(&["flash.cell"]),
    Key::new(
        "read",
        Kind::Latencies(LONGEST_OPERATION),
        Default::Means("the preset's"),
        "Array read (tR): a time, a range, or a list of them by page position in the wordline. Page `p` of a block \
         takes entry `p` modulo the list's length.",
    ),
    Key::new(
        "program",
        Kind::Latencies(LONGEST_OPERATION),
        Default::Means("the preset's"),
        "Array program (tPROG): as `read`.",
    ),
    Key::new(
        "erase",
        Kind::Latency(LONGEST_OPERATION),
        Default::Means("the preset's"),
        "Block erase (tBERS): a time or a range.",
    ),
    Key::new(
        "transfer",
        Kind::Time(LONGEST_OPERATION),
        Default::Means("the preset's bandwidth"),
        "Time for the data of one whole page on the channel, without OOB; a part of a page takes its share.",
    )
    .replacing(&["flash.timing.channel_bandwidth"]),
    Key::new(
        "channel_bandwidth",
        Kind::Bandwidth { least: SLOWEST_LINK, zero: false },
        Default::Means("the preset's"),
        "In place of `transfer`: bytes a second on the channel, a page's time rounded up to a nanosecond.",
    )
    .replacing(&["flash.timing.transfer"])
    .instead_of("transfer"),
    Key::new(
        "command",
        Kind::Time(LONGEST_OPERATION),
        Default::Means("the preset's, else `0`"),
        "Command and address cycles of one operation on the channel.",
    ),
    Key::new(
        "suspend",
        Kind::Time(LONGEST_OPERATION),
        Default::Means("required with a suspend, else `0`"),
        "Time from the suspend command until the die is ready for a read. No preset has it.",
    ),
    Key::new(
        "resume",
        Kind::Time(LONGEST_OPERATION),
        Default::Means("required with a suspend, else `0`"),
        "Time from the resume command until the operation makes progress again. No preset has it.",
    ),
];

/// `[flash.faults]`.
pub(in crate::description) const FAULTS: &[Key] = &[
    Key::new("program_failure", Kind::Probability, Default::number(0), "Probability that a program fails."),
    Key::new("erase_failure", Kind::Probability, Default::number(0), "Probability that an erase fails."),
    Key::new("uncorrectable_read", Kind::Probability, Default::number(0), "Probability that a read is uncorrectable."),
    Key::new("factory_bad", Kind::Probability, Default::number(0), "Probability that a block is bad from the factory."),
    Key::new(
        "endurance",
        Kind::count("erases", 1),
        Default::Means("none: never"),
        "Erases after which a block's next erase fails.",
    ),
    Key::new("script", Kind::Tables(SCRIPT, None), Default::Means("`[]`"), "A list of `{ kind, block, nth }`."),
];

/// An entry of `flash.faults.script`.
pub(in crate::description) const SCRIPT: &[Key] = &[
    Key::new(
        "kind",
        Kind::Word(words::<FaultKind>),
        Default::Required("read, program, erase, factory or die"),
        "What fails: `\"read\"`, `\"program\"`, `\"erase\"`; `\"factory\"`: the block is bad from the start; or \
         `\"die\"`: the block's whole die is lost.",
    ),
    Key::new(
        "block",
        Kind::count("block number", 0),
        Default::Required("the block's number over the whole drive"),
        "The block, numbered over the whole drive from 0.",
    ),
    Key::new(
        "nth",
        Kind::count("operations", 1),
        Default::number(1),
        "The number of the operation that fails, counted from 1 among those of that kind on that block; unused for \
         `\"factory\"`. For `\"die\"`: among all operations on that die; all later ones fail, too.",
    ),
];
