//! What a watched run leaves in its results: `ready_busy`.

use serde::{Deserialize, Serialize};
use ssdlab_measure::Model;

use super::Recording;
use super::truth::Programs;
use crate::by_cause::ByCause;
use crate::result::Subtest;

/// What the recorder and the classifiers counted, and what was there to be counted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReadyBusy {
    /// The watched line, as in a VCD.
    pub line: String,
    /// Its die.
    pub die: u32,
    /// Channels x chips x dies x planes.
    pub geometry: String,
    /// `single` or `multi`.
    pub program_model: String,
    /// `M_p`.
    pub pages_per_low: u32,
    /// What lasts longer than the first and shorter than the second is taken for a program.
    pub window_ns: [u64; 2],
    /// The paper's recorder at several sampling intervals; the first is the one that figures show.
    pub recorders: Vec<Recorded>,
    /// The classifiers, from the edges of every line.
    pub estimates: Vec<Estimated>,
    /// The recorder's error, level by level.
    pub levels: LevelFactors,
    /// What the chips really did in the same time.
    pub real: Real,
    /// Tests that quiet divides.
    pub tests: Vec<TestCount>,
}

/// What a recorder brought home.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Recorded {
    /// Time between two samples.
    pub sampling_ns: u64,
    /// `N_Tprogram`.
    pub programs: u64,
    /// `N_page_test`: pages of the whole drive by equation 3.
    pub pages: f64,
    /// Equation 2; nothing when the host wrote nothing.
    pub write_amplification: Option<f64>,
    /// Equation 4 with its sign, as a share.
    pub percentage_error: Option<f64>,
    /// Lows that no sample met.
    pub lows_missed: u64,
    /// Lows that were taken for part of the one before.
    pub lows_merged: u64,
}

/// What a classifier makes of the same time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimated {
    /// Its name.
    pub method: String,
    /// Lines it looked at.
    pub lines: u64,
    /// Programs on a line, on average.
    pub programs_a_line: f64,
    /// Pages of the whole drive.
    pub pages: f64,
    /// 95 % of it.
    pub pages_interval: [f64; 2],
    /// Equation 2; nothing when the host wrote nothing.
    pub write_amplification: Option<f64>,
    /// Equation 4 with its sign, as a share.
    pub percentage_error: Option<f64>,
}

/// By what each step from the recorder's count to the drive's pages is too much (above 1) or too little. Their product is
/// the recorder's pages by the real ones. Nothing where a step has nothing to divide by: no low, no program, no page.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LevelFactors {
    /// Programs that the recorder counted, by the lows in the window: what sampling does.
    pub sampling: Option<f64>,
    /// Lows in the window by programs of the die: what telling operations by their durations does.
    pub classification: Option<f64>,
    /// `M_p` by the pages that a program of the die really was.
    pub plane: Option<f64>,
    /// The die's pages by the mean of its chip's dies.
    pub die: Option<f64>,
    /// The chip's pages by the mean of its channel's chips.
    pub chip: Option<f64>,
    /// The channel's pages by the mean of all channels.
    pub channel: Option<f64>,
}

/// What was really programmed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Real {
    /// `N_page_real`.
    pub pages: u64,
    /// Pages programmed by bytes written; nothing when the host wrote nothing.
    pub write_amplification: Option<f64>,
    /// Pages of each die.
    pub pages_by_die: Vec<u64>,
    /// Program operations of each die.
    pub programs_by_die: Vec<u64>,
    /// Pages by cause.
    pub by_cause: ByCause<u64>,
}

/// A test: from one long quiet to the next.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TestCount {
    /// `N_Tprogram` of the first recorder.
    pub programs: u64,
    /// Pages of the whole drive by equation 3.
    pub pages: f64,
    /// Pages that were really programmed.
    pub real_pages: u64,
    /// These, by cause.
    pub by_cause: ByCause<u64>,
    /// When its first flash operation began.
    pub begun_ns: u64,
    /// When its last one had ended.
    pub ended_ns: u64,
}

/// What was counted in a sub-test and what was there, by what the host wrote in it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SubtestCount {
    /// `N_Tprogram` of the first recorder.
    pub programs: u64,
    /// Equation 2 from these programs; nothing when the host wrote nothing.
    pub counted: Option<f64>,
    /// Equation 2 from the pages that were really programmed; nothing when the host wrote nothing.
    pub real: Option<f64>,
}

impl ReadyBusy {
    /// Write amplification of each sub-test of a run in which the host wrote so many bytes; a sub-test in which no chip
    /// did anything counts none.
    pub fn of_subtests(&self, written_bytes: u64, subtests: &[Subtest]) -> Vec<SubtestCount> {
        let amplification = self.real.write_amplification.unwrap_or(0.0);
        let page_bytes = amplification * written_bytes as f64 / self.real.pages.max(1) as f64;
        let begun: Vec<u64> = subtests.iter().map(|test| test.begun_ns).collect();
        let counts = subtests.iter().zip(self.tests_from(&begun)).map(|(test, counted)| {
            let written = test.written_bytes as f64;
            let of_test = |pages: f64| (test.written_bytes > 0).then(|| pages * page_bytes / written);
            let (programs, pages, real) = counted.map_or((0, 0.0, 0), |it| (it.programs, it.pages, it.real_pages));
            SubtestCount { programs, counted: of_test(pages), real: of_test(real as f64) }
        });
        counts.collect()
    }

    /// What was counted in each of the stretches that begin at these times: one in which no chip did anything has no test.
    pub fn tests_from(&self, begun_ns: &[u64]) -> Vec<Option<&TestCount>> {
        let ends = begun_ns.iter().skip(1).copied().chain([u64::MAX]);
        let of = |(begun, end): (&u64, u64)| self.tests.iter().find(|test| (*begun..end).contains(&test.begun_ns));
        begun_ns.iter().zip(ends).map(of).collect()
    }
}

impl LevelFactors {
    /// `counted` programs of the recorder, `inside` lows in the window, and what was really there.
    pub(super) fn of(model: &Model, recording: Recording, counted: u64, inside: f64, real: &Programs) -> LevelFactors {
        let ratio = |of: f64, by: f64| (by > 0.0).then(|| of / by);
        let levels = &model.levels;
        let (dies, chips) = (levels.dies_per_chip as usize, levels.chips_per_channel as usize);
        let die = recording.die.index();
        let sum = |from: usize, count: usize| real.pages_by_die[from..from + count].iter().sum::<u64>() as f64;
        let of_die = real.pages_by_die[die] as f64;
        let of_chip = sum(die - die % dies, dies);
        let of_channel = sum(die - die % (dies * chips), dies * chips);
        let programs = real.programs_by_die[die] as f64;
        LevelFactors {
            sampling: ratio(counted as f64, inside),
            classification: ratio(inside, programs),
            plane: ratio(f64::from(model.pages_per_low()) * programs, of_die),
            die: ratio(of_die * dies as f64, of_chip),
            chip: ratio(of_chip * chips as f64, of_channel),
            channel: ratio(of_channel * f64::from(levels.channels), real.pages() as f64),
        }
    }
}
