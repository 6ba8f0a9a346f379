//! A small drive of AFTL at work: what its chips did and when, and where each sector lies afterwards.
//!
//! Nothing is asked of the design. Each sector's bytes say which it is, and are looked for on the chips at the end; times are
//! those that an observer of the chips is told.

use std::sync::{Arc, Mutex, PoisonError};

use ssdlab_base::{Nanos, Op, Request};
use ssdlab_device::{Data, Drive, DriveConfig, Options, Status};
use ssdlab_flash::{Contents, Flash, Geometry, Observer, OpKind, Ppn, Resource, Span, UnitId};

/// What the bytes of a sector begin with; its number follows.
const MARK: [u8; 8] = *b"sector: ";

/// Where a sector of the paper, a flash page, lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// The sector, counted in pages.
    pub(super) sector: u64,
    pub(super) channel: u32,
    pub(super) way: u32,
    /// The block in its plane.
    pub(super) block: u32,
    pub(super) page: u32,
}

/// A sector's way to the flash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sent {
    pub(super) place: Place,
    /// On the channel.
    pub(super) sent: (Nanos, Nanos),
    /// On the chip.
    pub(super) programmed: (Nanos, Nanos),
}

/// All stays of operations on channels and chips.
#[derive(Clone, Default)]
pub(super) struct Spans(Arc<Mutex<Vec<Span>>>);

impl Spans {
    /// Those on chips of operations of a kind, in the order in which they began.
    pub(super) fn on_chips(&self, kind: OpKind) -> Vec<Span> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_one = |span: &&Span| span.kind == kind && !matches!(span.resource, Resource::Channel(_));
        let mut spans: Vec<Span> = all.iter().filter(is_one).copied().collect();
        spans.sort_by_key(|span| span.start);
        spans
    }
}

impl Observer for Spans {
    fn span(&mut self, span: Span) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(span);
    }
}

/// The drive under observation.
pub(super) struct Trial {
    drive: Drive,
    spans: Spans,
    page_bytes: u32,
}

impl Trial {
    /// A fresh drive that keeps bytes.
    ///
    /// # Errors
    /// A drive that cannot be, as a sentence.
    pub(super) fn new(config: &DriveConfig) -> Result<Trial, String> {
        let options = Options { seed: 1, contents: Contents::Bytes };
        let mut drive = Drive::new(config, options).map_err(|error| error.to_string())?;
        let spans = Spans::default();
        drive.observe(Some(Box::new(spans.clone())));
        Ok(Trial { drive, spans, page_bytes: config.flash.geometry.page_bytes })
    }

    /// The drive.
    pub(super) fn drive(&self) -> &Drive {
        &self.drive
    }

    /// The paper's sectors of a segment.
    pub(super) fn segment_sectors(&self) -> u64 {
        self.drive.segments().map_or(0, |shape| shape.sectors / shape.write_unit)
    }

    /// Sends writes of these sectors at this instant, in this order, and waits for all.
    ///
    /// # Errors
    /// A write that the drive refuses, as a sentence.
    pub(super) fn write(&mut self, sectors: &[u64]) -> Result<(), String> {
        for sector in sectors {
            let mut bytes = vec![0; self.page_bytes as usize];
            bytes[..8].copy_from_slice(&MARK);
            bytes[8..16].copy_from_slice(&sector.to_le_bytes());
            let length = u64::from(self.page_bytes / 512);
            self.submit(&Request::new(Op::Write, sector * length, length), Data::Bytes(&bytes));
        }
        self.finish(&format!("writes of {sectors:?}"))
    }

    /// Trims a segment, and waits for it.
    ///
    /// # Errors
    /// A trim that the drive refuses, as a sentence.
    pub(super) fn trim(&mut self, segment: u64) -> Result<(), String> {
        let sectors = self.drive.segments().map_or(0, |shape| shape.sectors);
        self.submit(&Request::new(Op::Trim, segment * sectors, sectors), Data::Nothing);
        self.finish(&format!("a trim of segment {segment}"))
    }

    /// Sends a flush, and waits for it.
    ///
    /// # Errors
    /// A flush that fails, as a sentence.
    pub(super) fn flush(&mut self) -> Result<(), String> {
        self.submit(&Request::new(Op::Flush, 0, 0), Data::Nothing);
        self.finish("a flush")
    }

    /// Lets so much time pass without commands.
    pub(super) fn idle(&mut self, time: Nanos) {
        let until = self.drive.now() + time;
        self.drive.run_until(until);
        // Asked for what is in flight, the design drops the trims whose erases have ended; else the next command has it do so.
        drop(self.drive.in_flight_work());
    }

    /// Blocks erased so far.
    pub(super) fn erases(&self) -> u64 {
        self.drive.counters().flash.total(OpKind::Erase)
    }

    /// A metric of the design by its name, as in results; 0 where it has none.
    pub(super) fn metric(&self, name: &str) -> f64 {
        self.drive.design().into_iter().find(|(known, _)| known == name).map_or(0.0, |(_, value)| value)
    }

    fn submit(&mut self, request: &Request, data: Data<'_>) {
        self.drive.submit_with(&Request { at: self.drive.now(), ..*request }, data);
    }

    fn finish(&mut self, what: &str) -> Result<(), String> {
        let mut refused = None;
        loop {
            let failed = self.drive.completions().drain(..).find(|done| done.status != Status::Success);
            refused = refused.or(failed);
            if self.drive.outstanding() == 0 || !self.drive.run_to_completion(Nanos::MAX) {
                break;
            }
        }
        refused.map_or(Ok(()), |done| Err(format!("{what} on {}: found {:?}", self.drive.config().name, done.status)))
    }

    /// Cuts the power when all is done, and looks at the chips: each sector that lies there, by block and page.
    pub(super) fn places(self) -> Vec<Place> {
        marked(&self.drive.power_cut(), self.page_bytes)
    }

    /// Cuts the power when all is done, and looks at the chips: each sector that lies there, with its way to the flash,
    /// in the order in which they were sent.
    ///
    /// # Errors
    /// A sector without its operations, as a sentence.
    pub(super) fn sent(self) -> Result<Vec<Sent>, String> {
        let Trial { drive, spans, page_bytes } = self;
        let flash = drive.power_cut();
        let spans = spans.0.lock().unwrap_or_else(PoisonError::into_inner);
        let geometry = flash.geometry();
        let of = |place: &Place| -> Result<Sent, String> {
            let ppn = place.ppn(geometry);
            let find = |on_channel: bool| {
                let is_one = |span: &&Span| {
                    let channel = matches!(span.resource, Resource::Channel(_));
                    span.ppn == ppn && span.kind == OpKind::Program && channel == on_channel
                };
                spans.iter().find(is_one).map(|span| (span.start, span.end))
            };
            let missing = || {
                format!(
                    "sector {} lies on page {ppn} of {} and nothing was seen to write it",
                    place.sector,
                    geometry.pages()
                )
            };
            Ok(Sent {
                place: *place,
                sent: find(true).ok_or_else(missing)?,
                programmed: find(false).ok_or_else(missing)?,
            })
        };
        let mut all = marked(&flash, page_bytes).iter().map(of).collect::<Result<Vec<Sent>, String>>()?;
        all.sort_by_key(|one| (one.sent, one.place.channel));
        Ok(all)
    }
}

impl Place {
    /// Its page.
    pub(super) fn ppn(&self, geometry: &Geometry) -> Ppn {
        let ways = geometry.chips_per_channel * geometry.dies_per_chip * geometry.planes_per_die;
        let plane = self.channel * ways + self.way;
        Ppn((plane * geometry.blocks_per_plane + self.block) * geometry.pages_per_block + self.page)
    }
}

/// Every page of the chips that holds a sector of a trial.
fn marked(flash: &Flash, page_bytes: u32) -> Vec<Place> {
    let of = |(place, bytes): (Place, Vec<u8>)| {
        let mut sector = [0; 8];
        sector.copy_from_slice(&bytes[8..16]);
        (bytes[..8] == MARK).then_some(Place { sector: u64::from_le_bytes(sector), ..place })
    };
    pages(flash, page_bytes).into_iter().filter_map(of).collect()
}

/// Every programmed page of chips that keep bytes, with its bytes; which sector it holds is not known.
pub(super) fn pages(flash: &Flash, page_bytes: u32) -> Vec<(Place, Vec<u8>)> {
    let geometry = flash.geometry();
    let ways = geometry.chips_per_channel * geometry.dies_per_chip * geometry.planes_per_die;
    let mut pages = Vec::new();
    for (number, block) in (0..).zip(flash.blocks.all()) {
        let (plane, block_in_plane) = (number / geometry.blocks_per_plane, number % geometry.blocks_per_plane);
        for page in 0..block.programmed {
            let mut bytes = vec![0; page_bytes as usize];
            if flash.store.read(UnitId(number * geometry.pages_per_block + page), 0, &mut bytes) {
                let (channel, way) = (plane / ways, plane % ways);
                pages.push((Place { sector: 0, channel, way, block: block_in_plane, page }, bytes));
            }
        }
    }
    pages
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::{Library, PaperContext, Size};

    fn config(variant: &str) -> DriveConfig {
        let context = PaperContext::open(&super::super::PAPER, &Library::default(), Size::Quick)
            .expect("the paper's data is right");
        super::super::common::illustrated(&context, variant, &[]).expect("a drive")
    }

    #[test]
    fn every_sector_that_was_written_lies_once_on_the_chips_and_was_seen_on_its_way() {
        let mut trial = Trial::new(&config("Figure 8")).expect("a drive");
        trial.write(&[0, 8, 1, 9]).expect("appends");
        let sent = trial.sent().expect("each was seen");
        assert_eq!(sent.iter().map(|one| one.place.sector).collect::<Vec<u64>>(), [0, 1, 8, 9]);
        assert!(sent.iter().all(|one| one.sent.1 == one.programmed.0 && one.programmed.1 > one.programmed.0));
    }

    #[test]
    fn what_the_drive_refuses_is_said() {
        let mut trial = Trial::new(&config("Figure 8")).expect("a drive");
        let error = trial.write(&[1]).expect_err("a gap");
        assert!(error.contains("[1]") && error.contains("Refused"), "{error}");
    }

    #[test]
    fn a_trimmed_segment_is_erased_when_the_drive_is_idle() {
        let mut trial = Trial::new(&config("Figure 7")).expect("a drive");
        trial.write(&(800..808).collect::<Vec<u64>>()).expect("appends");
        trial.trim(100).expect("a trim");
        trial.flush().expect("a flush");
        assert_eq!((trial.metric("segments_not_erased"), trial.erases()), (1.0, 0));
        trial.idle(Nanos::from_ms(500));
        assert_eq!((trial.metric("segments_not_erased"), trial.erases()), (0.0, 4));
        assert_eq!(trial.places(), []);
    }
}
