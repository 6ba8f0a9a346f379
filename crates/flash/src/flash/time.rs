//! How long things take.

use rand::RngExt;
use ssdlab_base::{Nanos, Rng};

use super::Flash;
use super::operation::NONE;
use crate::{Latency, OpKind, Ppn};

impl Flash {
    pub(super) fn array_time(&mut self, kind: OpKind, page: u32, source: Ppn) -> Nanos {
        let timing = &self.config.timing;
        let at = |list: &[Latency], page: u32| {
            if list.len() == 1 { list[0] } else { list[page as usize % list.len()] }
        };
        match kind {
            OpKind::Read => draw(&mut self.rng, at(&timing.read, page)),
            OpKind::Program => draw(&mut self.rng, at(&timing.program, page)),
            OpKind::Erase => draw(&mut self.rng, timing.erase),
            OpKind::Copyback => {
                let read = at(&timing.read, source % self.geometry.pages_per_block);
                draw(&mut self.rng, read) + draw(&mut self.rng, at(&timing.program, page))
            }
        }
    }

    pub(super) fn command_and_data_in_time(&self, group: u32) -> Nanos {
        let mut time = Nanos::ZERO;
        let mut op = group;
        while op != NONE {
            let flight = &self.flights[op as usize];
            time += match flight.submit.kind {
                OpKind::Program => self.config.timing.command + self.transfer_time(flight.submit.bytes),
                // A read's command and a program's command.
                OpKind::Copyback => self.config.timing.command * 2,
                OpKind::Read | OpKind::Erase => self.config.timing.command,
            };
            op = flight.next;
        }
        time
    }

    pub(super) fn data_time(&self, group: u32) -> Nanos {
        let mut time = Nanos::ZERO;
        let mut op = group;
        while op != NONE {
            let flight = &self.flights[op as usize];
            time += self.transfer_time(flight.submit.bytes);
            op = flight.next;
        }
        time
    }

    /// Channel time of `bytes` bytes of a page, rounded up to the nanosecond.
    #[inline]
    pub fn transfer_time(&self, bytes: u32) -> Nanos {
        if bytes == self.geometry.page_bytes {
            return self.config.timing.transfer;
        }
        debug_assert!(bytes < self.geometry.page_bytes, "{bytes} bytes of a page of {}", self.geometry.page_bytes);
        Nanos((self.config.timing.transfer.0 * u64::from(bytes)).div_ceil(u64::from(self.geometry.page_bytes)))
    }
}

#[inline]
fn draw(rng: &mut Rng, latency: Latency) -> Nanos {
    if latency.min == latency.max { latency.min } else { Nanos(rng.random_range(latency.min.0..=latency.max.0)) }
}
