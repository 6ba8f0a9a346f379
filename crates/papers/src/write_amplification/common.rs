//! What several figures need: volumes, runs under the recorder, and what they left.

use crate::frame::{Column, Input, Measured, PaperContext, Preparation, Reading, Run};

pub(super) use crate::frame::point;

/// The tested drives.
pub(super) const DRIVES: [&str; 4] = ["SSD-v", "SSD-I", "SSD-M", "SSD-S"];

/// Write amplification by the recorder, by the chips, and the largest of its causes.
pub(super) const CAUSES: [Column<Reading>; 5] = [
    ("WA", "", |run| run.number("ready_busy.recorders.0.write_amplification")),
    ("true WA", "", |run| run.number("ready_busy.real.write_amplification")),
    ("host and padding", "", |run| cause(run, "host")),
    ("read-modify-write", "", |run| cause(run, "rmw")),
    ("GC", "", |run| cause(run, "gc")),
];

/// A cause's part of write amplification.
pub(super) fn cause(run: &Measured, cause: &str) -> Option<f64> {
    run.number(&format!("write_amplification.by_cause.{cause}"))
}

/// The die whose line the recorder is on: the paper watches one and does not say which.
pub(super) const DIE: u32 = 0;

/// The shares of writes, as settings: what the paper's figures are divided by.
pub(super) const WRITES: [(&str, &str); 2] = [("100%", "100 % write"), ("50%", "50 % write")];

/// What is written in a quick run, whatever the figure says.
const QUICK: u64 = 512 << 10;

/// `--subtests` of so many volumes of so many bytes.
pub(super) fn volumes(context: &PaperContext, count: u64, bytes: u64) -> String {
    let mib = if context.is_quick() { format!("{}k", QUICK >> 10) } else { format!("{}m", context.sized(bytes) >> 20) };
    if count == 1 { mib } else { format!("{count}x{mib}") }
}

/// The micro-benchmarks of an access (`SQ`, `RD`) and a share of writes, with the setting that tables have for it.
pub(super) fn micro<'s>(context: &'s PaperContext, access: &str) -> Vec<(&'s Input, &'static str)> {
    let of = |(share, setting): (&str, &'static str)| {
        let group = format!("{access} {share}");
        let all: Vec<_> = context.inputs.iter().filter(|input| input.group == group && input.is_there()).collect();
        all.into_iter().map(move |input| (input, setting))
    };
    WRITES.into_iter().flat_map(of).collect()
}

/// A run of a micro-benchmark in steady state under the recorder, until so many bytes are written.
pub(super) fn steady(context: &PaperContext, drive: &str, input: &Input, bytes: u64) -> Run {
    let run = context.run(drive, "described", input, "");
    run.prepared(Preparation::Steady).recorded(DIE).divided(volumes(context, 1, bytes))
}

/// Settings of a product.
type Settings = [&'static str; 2];

/// Products with an eighth of their blocks, for runs that would take an hour on the whole drive. Collection keeps as many
/// blocks of a plane free as before, so the user capacity is what leaves the effective over-provisioning as it was:
/// `user (B/8 - 3.5) / (B - 3.5)` with `B` blocks a plane. The cache is not scaled.
const EIGHTHS: [(&str, Settings); 3] = [
    ("SSD-I", ["flash.blocks_per_plane=256", "capacity.user=4.594g"]),
    ("SSD-M", ["flash.blocks_per_plane=256", "capacity.user=7.361g"]),
    ("SSD-S", ["flash.blocks_per_plane=128", "capacity.user=3.428g"]),
];

/// A run of a product as a run of its eighth. Quick runs have their own small drive.
pub(super) fn eighth(context: &PaperContext, drive: &str, run: Run) -> Run {
    let of_drive = EIGHTHS.into_iter().filter(|(name, _)| *name == drive && context.is_full());
    of_drive.flat_map(|(_, settings)| settings).fold(run, |run, set| run.with(set))
}

/// A share, per cent.
pub(super) fn percent(share: Option<f64>) -> Option<f64> {
    share.map(|share| 100.0 * share)
}

/// The magnitude of a share, per cent.
pub(super) fn magnitude(share: Option<f64>) -> Option<f64> {
    percent(share).map(f64::abs)
}

/// A factor of the recorder's WA, as what it adds or takes away, per cent.
pub(super) fn level(run: &Measured, level: &str) -> Option<f64> {
    percent(run.number(&format!("ready_busy.levels.{level}")).map(|factor| factor - 1.0))
}

#[cfg(test)]
mod tests {
    use ssdlab_device::{Drive, Options};
    use ssdlab_flash::Contents;

    use super::*;
    use crate::frame::{Library, Size};
    use crate::write_amplification::PAPER;

    #[test]
    fn an_eighth_of_a_product_has_its_effective_over_provisioning() {
        // Opened as for quick runs, which look at a part of the inputs; then drives are whole.
        let mut context =
            PaperContext::open(&PAPER, &Library::default(), Size::Quick).expect("the paper's data is right");
        context.size = Size::Full;
        for (name, settings) in EIGHTHS {
            let of = |set: &[&str]| {
                let config = context.variant(name, "described", set).expect("known keys");
                let drive = Drive::new(&config, Options { seed: 1, contents: Contents::Nothing }).expect("a drive");
                (config.flash.geometry.pages(), drive.over_provisioning().effective)
            };
            let ((pages, whole), (of_eighth, eighth)) = (of(&[]), of(&settings));
            assert_eq!(8 * of_eighth, pages, "{name}");
            assert!((eighth / whole - 1.0).abs() < 2e-3, "{name}: {eighth} for {whole}");
        }
    }
}
