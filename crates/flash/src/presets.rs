//! Timing presets for SLC, MLC, TLC and QLC chips, each with the publication its numbers come from.
//!
//! A preset is a starting point for a description that gives no latencies of its own. It promises that every number
//! has a source named beside it; it never fills in what its source does not say, so none has suspend and resume times.

use ssdlab_base::Nanos;

use crate::{Latency, Timing};

/// Seven command and address cycles of an operation (one command, five addresses, one confirmation: Fig. 2 of
/// "Measuring and Analyzing Write Amplification Characteristics of Solid State Disks") of 25 ns each (ONFI 3.1, the
/// faster tCAD).
const COMMAND: Nanos = Nanos(7 * 25);

/// The fastest mode of ONFI 3.1 (NV-DDR2): 400 MT/s on a bus of one byte.
const ONFI_3_1: u64 = 400_000_000;

/// The fastest mode of ONFI 4.0 (NV-DDR3): 800 MT/s on a bus of one byte.
const ONFI_4_0: u64 = 800_000_000;

/// The latencies of one cell type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preset {
    /// The name a description uses.
    pub name: &'static str,
    /// Array read (tR) by page position in the wordline.
    pub read: &'static [Latency],
    /// Array program (tPROG) by page position in the wordline.
    pub program: &'static [Latency],
    /// Block erase (tBERS).
    pub erase: Latency,
    /// Command and address cycles.
    pub command: Nanos,
    /// Speed of the channel in bytes a second.
    pub channel_bandwidth: u64,
    /// Where the numbers come from.
    pub source: &'static str,
}

const fn ns(ns: u64) -> Latency {
    Latency { min: Nanos(ns), max: Nanos(ns) }
}

/// All presets, from one bit a cell to four.
pub static PRESETS: [Preset; 4] = [
    // WAFLASH section 5.4: "For SLC, we set tRead=20us, tProgram=200us, and tErase=1500us"; section 5.1 names the
    // channel interface, ONFI 3.1.
    Preset {
        name: "slc",
        read: &[ns(20_000)],
        program: &[ns(200_000)],
        erase: ns(1_500_000),
        command: COMMAND,
        channel_bandwidth: ONFI_3_1,
        source: "WAFLASH, section 5.4 (SLC); ONFI 3.1 channel (section 5.1)",
    },
    // Micron L95B profiled in an open-channel drive, published with FEMU (FAST '18): lower page 48 us and 850 us,
    // upper page 64 us and 2.3 ms, erase 3 ms.
    Preset {
        name: "mlc",
        read: &[ns(48_000), ns(64_000)],
        program: &[ns(850_000), ns(2_300_000)],
        erase: ns(3_000_000),
        command: COMMAND,
        channel_bandwidth: ONFI_3_1,
        source: "Micron L95B as profiled for FEMU (FAST '18); ONFI 3.1 channel",
    },
    // WAFLASH section 5.4: "For TLC, these parameters are 75us, 1200us, and 4500us, respectively".
    Preset {
        name: "tlc",
        read: &[ns(75_000)],
        program: &[ns(1_200_000)],
        erase: ns(4_500_000),
        command: COMMAND,
        channel_bandwidth: ONFI_4_0,
        source: "WAFLASH, section 5.4 (TLC); ONFI 4.0 channel",
    },
    // Intel 96-layer QLC (1024Q3D3A) measured in "PACA" (ICCD 2022), Fig. 2 and Table I, as listed by FEMU: four page
    // positions read in 47.9, 76.2, 134.6 and 228.1 us; one average program latency of 1.86 ms; erase 6.34 ms.
    Preset {
        name: "qlc",
        read: &[ns(47_900), ns(76_200), ns(134_600), ns(228_100)],
        program: &[ns(1_860_000)],
        erase: ns(6_340_000),
        command: COMMAND,
        channel_bandwidth: ONFI_4_0,
        source: "Intel 96-layer QLC as measured in PACA (ICCD 2022); ONFI 4.0 channel",
    },
];

/// The preset of that name.
pub fn preset(name: &str) -> Option<&'static Preset> {
    PRESETS.iter().find(|preset| preset.name == name)
}

/// How long `bytes` take on a link of `bytes_per_second`, rounded up to a whole nanosecond; `None` for a link of speed
/// 0 or a time beyond 64 bits.
///
/// ```
/// use ssdlab_base::Nanos;
/// assert_eq!(ssdlab_flash::presets::transfer_time(16_384, 800_000_000), Some(Nanos(20_480)));
/// assert_eq!(ssdlab_flash::presets::transfer_time(1, 0), None);
/// ```
pub fn transfer_time(bytes: u64, bytes_per_second: u64) -> Option<Nanos> {
    if bytes_per_second == 0 {
        return None;
    }
    let ns = (u128::from(bytes) * 1_000_000_000).div_ceil(u128::from(bytes_per_second));
    u64::try_from(ns).ok().map(Nanos)
}

impl Preset {
    /// The timing of chips with pages of `page_bytes`; suspend and resume, which no source gives, are zero.
    pub fn timing(&self, page_bytes: u32) -> Timing {
        Timing {
            read: self.read.to_vec(),
            program: self.program.to_vec(),
            erase: self.erase,
            command: self.command,
            transfer: transfer_time(u64::from(page_bytes), self.channel_bandwidth)
                .expect("a preset's channel moves 4 GiB in seconds"),
            suspend: Nanos::ZERO,
            resume: Nanos::ZERO,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_is_whole_and_gets_slower_with_more_bits() {
        for pair in PRESETS.windows(2) {
            let mean = |preset: &Preset| {
                preset.read.iter().map(|latency| latency.max.0).sum::<u64>() / preset.read.len() as u64
            };
            assert!(mean(&pair[0]) < mean(&pair[1]));
        }
        for preset in &PRESETS {
            assert!(!preset.read.is_empty());
            assert!(!preset.program.is_empty());
            assert!(!preset.source.is_empty());
            assert_eq!(super::preset(preset.name), Some(preset));
        }
        assert_eq!(super::preset("plc"), None);
    }

    #[test]
    fn a_page_takes_its_bytes_over_the_channel_rate_rounded_up() {
        assert_eq!(PRESETS[3].timing(16_384).transfer, Nanos(20_480));
        assert_eq!(transfer_time(1, 3), Some(Nanos(333_333_334)));
        assert_eq!(transfer_time(u64::MAX, 1), None);
        // The largest page a geometry can have does not panic.
        assert_eq!(PRESETS[0].timing(u32::MAX).transfer, Nanos(10_737_418_238));
    }
}
