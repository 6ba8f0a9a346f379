//! Draws the requests of a description.

use ssdlab_base::{Op, Rng, SECTOR_BYTES, rng};

use rand::Rng as _;

use super::Drawn;
use super::arrivals::Clock;
use super::description::{Class, Description, Length};
use crate::draw::{Permutation, Zipf, below, unit};

/// A class with its place in the footprint.
struct Stream {
    class: Class,
    /// First sector of its region, with the offset.
    base: u64,
    end: u64,
    places: u64,
    ranks: Option<Zipf>,
    scatter: Permutation,
    /// Where its last request ended.
    cursor: Option<u64>,
}

/// All requests of a model, without an end.
///
/// Times, kinds and places are drawn from streams of their own, so another rate leaves the places alone.
pub(super) struct Generator {
    clock: Clock,
    streams: Vec<Stream>,
    kinds: Rng,
    places: Rng,
}

impl Generator {
    pub(super) fn new(description: &Description, seed: u64) -> Generator {
        let footprint = description.footprint / SECTOR_BYTES;
        let stream = |class: &Class| {
            let (from, end) = class.bounds(footprint);
            let places = class.places(footprint);
            // Classes that share a region share its popular places, so the key is the region's and not the class's.
            let mut key = rng(seed, &format!("model scatter {from} {end} {}", class.align));
            Stream {
                class: class.clone(),
                base: from + class.offset,
                end,
                places,
                ranks: (class.theta > 0.0).then(|| Zipf::new(places, class.theta)),
                scatter: Permutation::new(places, || key.next_u64()),
                cursor: None,
            }
        };
        Generator {
            clock: Clock::new(&description.arrivals, seed),
            streams: description.classes.iter().map(stream).collect(),
            kinds: rng(seed, "model kinds"),
            places: rng(seed, "model places"),
        }
    }
}

/// The length of a request, in sectors.
fn draw_length(lengths: &[Length], rng: &mut Rng) -> u64 {
    let share = unit(rng);
    let found = lengths.iter().find(|length| share < length.up_to).or(lengths.last());
    let found = found.expect("a class without lengths was refused");
    found.low_sectors + below(rng, found.high_sectors - found.low_sectors + 1)
}

impl Stream {
    /// The next request: first sector and length.
    fn draw(&mut self, rng: &mut Rng) -> (u64, u64) {
        let sectors = draw_length(&self.class.lengths, rng);
        let goes_on = unit(rng) < self.class.goes_on;
        let sector = match self.cursor {
            Some(cursor) if goes_on && cursor + sectors <= self.end => cursor,
            // A long run that has met the end of its region begins again at the front, as a log does.
            Some(_) if goes_on => self.base,
            _ => {
                let place = match &self.ranks {
                    Some(zipf) => self.scatter.at(zipf.rank(rng)),
                    None => below(rng, self.places),
                };
                self.base + place * self.class.align
            }
        };
        self.cursor = Some(sector + sectors);
        (sector, sectors)
    }
}

impl Iterator for Generator {
    type Item = Drawn;

    fn next(&mut self) -> Option<Drawn> {
        let at_ns = self.clock.next_ns();
        let share = unit(&mut self.kinds);
        let index = self.streams.iter().position(|stream| share < stream.class.up_to).unwrap_or(0);
        let stream = &mut self.streams[index];
        let (sector, sectors) = stream.draw(&mut self.places);
        let op: Op = stream.class.op;
        Some(Drawn { at_ns, op, offset: sector * SECTOR_BYTES, bytes: sectors * SECTOR_BYTES })
    }
}
