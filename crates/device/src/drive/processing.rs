//! Commands of a drive whose firmware takes time: the processor takes them up and ends them, and data is copied in DRAM.

use ssdlab_base::{Nanos, Op, Request, SECTOR_BYTES, format_size};

use super::latency_trace::Ends;
use super::{Direction, Drive, DriveError, Timer};
use crate::Reads;
use crate::critical_path::Part;
use crate::media::OWNER_LISTS;

/// Bytes of an owner.
const OWNER_BYTES: u64 = 4;

impl Drive {
    /// A command enters the drive: the processor takes it up at `from` or later, its data crosses the link, and what goes to the
    /// write buffer is copied there.
    #[cold]
    #[inline(never)]
    pub(super) fn enter_by_processor(&mut self, command: u32, data: u64, from: Nanos) {
        let Some(processor) = &mut self.media.processor else { return };
        let request = self.commands[command].request;
        let is_write = request.op == Op::Write;
        if is_write && !is_whole(&request, self.sectors_per_unit) {
            processor.counters.misaligned_writes += 1;
        }
        let (processed, work) = processor.take_command(from);
        let arrived = self.host.interface.transfer(processed, data, Direction::ToDrive);
        let buffers = self.stage.buffer.is_some() && is_write;
        let ready = if buffers { processor.copy(arrived, data) } else { arrived };
        debug_assert!(
            ready >= arrived && arrived >= processed,
            "command {command} is in DRAM at {arrived} and {ready}"
        );
        if self.paths.is_some() {
            self.path_enters(command, (processed, work), data, arrived);
        }
        if let Some(paths) = &mut self.paths {
            paths.put(command, Part::Copy, ready);
        }
        if ready > self.media.now {
            self.timers.set(ready, Timer::Dispatch(command));
        } else {
            self.dispatch(command);
        }
    }

    /// All is done inside the drive: the processor ends the command, and a read's data still crosses the link.
    #[cold]
    #[inline(never)]
    pub(super) fn finish_by_processor(&mut self, command: u32, bytes: u64) {
        let now = self.media.now;
        let timed = self.media.flash.timed();
        let Some(processor) = self.media.processor.as_mut().filter(|_| timed) else {
            return self.complete(command);
        };
        let (ended, work) = processor.complete(now);
        let ready = self.host.interface.transfer(ended, bytes, Direction::ToHost);
        debug_assert!(ready >= ended && ended >= now, "command {command} ends at {ended} and {ready}, at {now}");
        if ready == now {
            return self.complete(command);
        }
        if let Some(paths) = &mut self.paths {
            paths.put(command, Part::ControllerWait, ended - work);
            paths.put(command, Part::Controller, ended);
        }
        self.path_to_host(command, bytes, ready);
        self.timers.set(ready, Timer::Complete(command));
    }

    /// When `sectors` sectors of a command that are in DRAM now are copied.
    pub(super) fn copied_at(&mut self, sectors: u64) -> Nanos {
        let now = self.media.now;
        let processor = self.media.processor.as_mut();
        processor.map_or(now, |processor| processor.copy(now, sectors * SECTOR_BYTES))
    }

    /// A copy that a command waited for has ended.
    #[cold]
    pub(super) fn copy_ended(&mut self, command: u32) {
        self.waits_end_by(Ends::Copy);
        self.release_command(command);
        self.waits_end_by(Ends::Other);
    }

    /// Refuses a drive that keeps more than fits its DRAM or SRAM, or whose design cannot say which units of a page are valid.
    pub(super) fn check_controller(&mut self) -> Result<(), DriveError> {
        let looks_up = !self.caches_map && self.ftl.stepped_reads().is_none() && self.admission.is_none();
        let controller = &self.config.controller;
        if controller.reads == Reads::Gather && !looks_up {
            let reason = format!(
                "found \"gather\" under ftl.design = \"{}\", expected \"sectors\" or \"page\": the design does not have the place of \
                 every unit in RAM",
                self.config.ftl.design
            );
            return Err(DriveError { key: "controller.reads".to_string(), reason });
        }
        if controller.dram > 0 {
            let memory = self.memory();
            let in_sram = |name| name == OWNER_LISTS && controller.sram > 0;
            let kept =
                memory.into_iter().filter(|(name, bytes)| *name != "simulator_bytes" && *bytes > 0 && !in_sram(*name));
            fits("dram", controller.dram, &kept.collect::<Vec<_>>())?;
        }
        if controller.sram > 0 {
            fits("sram", controller.sram, &[self.owner_lists()])?;
        }
        Ok(())
    }

    /// The owners that write frontiers list before they are on flash, in bytes: those of a block where its last page lists them, else
    /// those of the page that each fills.
    fn owner_lists(&self) -> (&'static str, u64) {
        let frontiers = u64::from(self.config.frontiers()) * u64::from(self.media.pool.groups());
        let of_pages = frontiers * u64::from(self.media.units_per_page) * OWNER_BYTES;
        self.media.list_memory().unwrap_or((OWNER_LISTS, of_pages))
    }
}

/// Whether a request begins and ends with a unit of so many sectors.
fn is_whole(request: &Request, sectors_per_unit: u64) -> bool {
    request.sector.is_multiple_of(sectors_per_unit) && request.end().is_multiple_of(sectors_per_unit)
}

/// Refuses `kept`, by name and in bytes, if it does not fit.
fn fits(ram: &str, size: u64, kept: &[(&'static str, u64)]) -> Result<(), DriveError> {
    let sum: u64 = kept.iter().map(|(_, bytes)| bytes).sum();
    if sum <= size {
        return Ok(());
    }
    let parts: Vec<String> = kept.iter().map(|(name, bytes)| format!("{name} {}", format_size(*bytes))).collect();
    let reason = format!(
        "found {} ({size} bytes), expected at least {} ({sum} bytes) for what the drive keeps there: {}",
        format_size(size),
        format_size(sum),
        parts.join(", ")
    );
    Err(DriveError { key: format!("controller.{ram}"), reason })
}
