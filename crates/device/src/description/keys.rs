//! Every key a description may hold. The reader refuses all others, and the documentation is tested against this list.

pub(super) const ROOT: &[&str] =
    &["name", "summary", "source", "notes", "flash", "capacity", "interface", "buffer", "ftl", "gc"];

pub(super) const FLASH: &[&str] = &[
    "channels",
    "chips_per_channel",
    "dies_per_chip",
    "planes_per_die",
    "blocks_per_plane",
    "pages_per_block",
    "page_size",
    "oob_size",
    "cell",
    "timing",
    "multi_plane",
    "copyback",
    "cache_program",
    "program_suspend",
    "erase_suspend",
    "scheduler",
    "scheduler_starvation",
    "faults",
];

pub(super) const TIMING: &[&str] =
    &["preset", "read", "program", "erase", "transfer", "channel_bandwidth", "command", "suspend", "resume"];

pub(super) const FAULTS: &[&str] =
    &["program_failure", "erase_failure", "uncorrectable_read", "factory_bad", "endurance", "script"];

pub(super) const SCRIPT: &[&str] = &["kind", "block", "nth"];

pub(super) const CAPACITY: &[&str] = &["over_provisioning", "user"];

pub(super) const INTERFACE: &[&str] = &["kind", "queues", "queue_depth", "bandwidth", "command_overhead"];

pub(super) const BUFFER: &[&str] = &[
    "policy",
    "size",
    "latency",
    "destage",
    "high_watermark",
    "low_watermark",
    "mca_window",
    "cflru_window_permille",
    "block_pages",
    "bplru_padding",
    "lirs_hir_permille",
];

pub(crate) const FTL: &[&str] = &[
    "design",
    "mapping_unit",
    "allocation",
    "superblock",
    "parity",
    "separate_gc_frontier",
    "streams",
    "version_index",
    "version_bits",
    "version_chain",
    "version_group",
    "version_spare",
    "version_masks",
    "idle_merge",
    "merge_load",
    "compaction",
    "compaction_index",
    "region",
];

pub(super) const GC: &[&str] = &[
    "victim",
    "choices",
    "free_blocks",
    "background_free_blocks",
    "pacing",
    "idle_after",
    "copyback",
    "dynamic_wear_levelling",
    "static_wear_threshold",
];

/// Every key of a description, dotted, as `--set` takes it (the keys of a scripted fault stand in a list and cannot be
/// set one by one).
pub fn keys() -> Vec<String> {
    let tables: [(&str, &[&str]); 9] = [
        ("flash", FLASH),
        ("flash.timing", TIMING),
        ("flash.faults", FAULTS),
        ("flash.faults.script", SCRIPT),
        ("capacity", CAPACITY),
        ("interface", INTERFACE),
        ("buffer", BUFFER),
        ("ftl", FTL),
        ("gc", GC),
    ];
    let mut all: Vec<String> = ROOT.iter().map(|key| (*key).to_string()).collect();
    for (table, keys) in tables {
        all.extend(keys.iter().map(|key| format!("{table}.{key}")));
    }
    all.retain(|key| {
        !tables.iter().any(|(table, _)| key == table) || key == "flash.timing" || key == "flash.faults.script"
    });
    all
}
