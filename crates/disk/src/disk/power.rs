//! Power cuts, and the state of a disk as bytes.

use std::io::{self, Read, Write};

use ssdlab_base::{Nanos, Saved, damaged, load, load_magic};
use ssdlab_device::Status;
use ssdlab_flash::Contents as Payload;

use super::heads::Operation;
use super::{Disk, Event};
use crate::config::DiskConfig;
use crate::contents::Contents;
use crate::mechanism::Track;
use crate::medium::Medium;
use crate::seeded::{DiskBug, seeded};

const MAGIC: &[u8; 8] = b"ssddisk2";

impl Disk {
    /// The power goes now and comes back at once. What was written to the medium stays, up to the last sector that has passed a
    /// head as a whole; the caches are empty. Commands in flight end with [`Status::Aborted`]. The heads are on the first
    /// cylinder.
    pub fn cut_power(&mut self) {
        if let Some(operation) = self.operation.take().filter(|operation| operation.sectors_to_write() > 0) {
            self.keep_what_passed(&operation);
        }
        self.counters.aborted_reads += self.reads_for_heads();
        let per_sector = self.sector_data_bytes();
        self.cache = crate::cache::WriteCache::new(per_sector);
        self.segments.clear();
        self.link.clear();
        self.events.clear();
        self.waiting.clear();
        self.no_space.clear();
        self.for_heads.clear();
        (self.flush, self.rested_at, self.is_exclusive, self.in_disk) = (None, None, false, 0);
        (self.track, self.behind, self.last_read) = (Track::default(), 0, self.now.0);
        let is_free = |slot: usize| self.free.contains(&(slot as u32));
        let mut aborted: Vec<usize> = (0..self.commands.len()).filter(|slot| !is_free(*slot)).collect();
        // Those that took effect have their place in the order already.
        aborted.sort_by_key(|slot| {
            (self.commands[*slot].order.is_none(), self.commands[*slot].order, self.commands[*slot].submitted)
        });
        for slot in aborted {
            let mut command = self.commands[slot].clone();
            command.status = Status::Aborted;
            let bytes = (command.range.end - command.range.start) * ssdlab_base::SECTOR_BYTES;
            self.report(command, bytes);
        }
        self.commands.clear();
        self.free.clear();
        assert_eq!(self.outstanding, 0, "a power cut ends every command");
    }

    /// Writes the sectors of an interrupted operation that have passed a head. A sector has an error-correcting code of its own
    /// and is written as a whole or not at all: the one below the head keeps its old data.
    fn keep_what_passed(&mut self, operation: &Operation) {
        let per_sector = self.sector_data_bytes();
        let range = operation.range();
        let passed = self.mechanism.passed(range.start, range.end, Nanos(operation.on_track), true, self.now);
        self.medium.write(&(range.start..range.start + passed), &operation.data[..passed as usize * per_sector]);
        if seeded(DiskBug::SectorTorn) && passed < range.end - range.start && per_sector > 0 {
            let torn = range.start + passed;
            let mut sector = self.on_medium(&(torn..torn + 1));
            let half = per_sector / 2;
            sector[..half].copy_from_slice(&operation.data[passed as usize * per_sector..][..half]);
            self.medium.write(&(torn..torn + 1), &sector);
        }
    }

    /// Writes the state of a disk that has no command.
    ///
    /// # Errors
    /// Those of the writer, and [`io::ErrorKind::InvalidInput`] while a command is outstanding.
    pub fn save(&self, to: &mut dyn Write) -> io::Result<()> {
        if self.outstanding > 0 {
            let reason = format!("the disk has {} commands outstanding; it is saved without", self.outstanding);
            return Err(io::Error::new(io::ErrorKind::InvalidInput, reason));
        }
        to.write_all(MAGIC)?;
        (self.sectors(), self.sector_data_bytes() as u64).save_to(to)?;
        (self.now.0, self.orders, self.writes).save_to(to)?;
        (self.track.cylinder, self.track.head, self.behind).save_to(to)?;
        (self.last_read, self.reads_before, self.since_oldest).save_to(to)?;
        let Medium::Memory(medium) = &self.medium else {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "the disk is in an image, which is its saved state",
            ));
        };
        medium.save_to(to)?;
        self.cache.save_to(to)?;
        self.segments.save_to(to)?;
        self.link.save_to(to)?;
        self.operation.save_to(to)?;
        self.counters.save_to(to)
    }

    /// A disk as [`Disk::save`] left it, made with the same description and payload.
    ///
    /// # Errors
    /// Those of the reader, and [`io::ErrorKind::InvalidData`] for the bytes of another disk, or such as contradict themselves.
    pub fn load(config: &DiskConfig, payload: Payload, from: &mut dyn Read) -> io::Result<Disk> {
        let mut disk = Disk::new(config, payload);
        load_magic(MAGIC, from, "this is not the saved state of a disk, or of another version")?;
        let (sectors, per_sector) = load::<(u64, u64)>(from)?;
        if (sectors, per_sector) != (disk.sectors(), disk.sector_data_bytes() as u64) {
            let (found, expected) = (disk.sectors(), disk.sector_data_bytes());
            return Err(damaged(format!(
                "the saved state is of a disk of {sectors} sectors that keeps {per_sector} bytes of each, and not {found} and {expected}"
            )));
        }
        let (now, orders, writes) = load::<(u64, u64, u64)>(from)?;
        let (cylinder, head, behind) = load::<(u32, u32, u64)>(from)?;
        (disk.last_read, disk.reads_before, disk.since_oldest) = load(from)?;
        (disk.now, disk.orders, disk.writes, disk.behind) = (Nanos(now), orders, writes, behind);
        disk.track = Track { cylinder, head };
        let mut medium = Contents::new(disk.sector_data_bytes());
        medium.load_from(from)?;
        disk.medium = Medium::Memory(medium);
        disk.cache.load_from(from)?;
        disk.segments.load_from(from)?;
        disk.link.load_from(from)?;
        disk.operation = load(from)?;
        disk.counters.load_from(from)?;
        if cylinder >= config.cylinders() || head >= config.heads || now >= Nanos::HORIZON.0 || disk.last_read > now {
            return Err(damaged(format!(
                "the heads of the saved state are on cylinder {cylinder}, head {head}, at {now} ns"
            )));
        }
        if [orders, writes].iter().any(|count| *count >= u64::MAX / 2) || !disk.link.is_consistent() {
            return Err(damaged("a count or a time of the saved state is beyond what a disk reaches"));
        }
        if let Some(operation) = &disk.operation {
            let range = operation.range();
            let is_on_disk = range.start < range.end && range.end <= sectors;
            let fits =
                is_on_disk && operation.sectors_to_write() as usize * disk.sector_data_bytes() == operation.data.len();
            if !fits || operation.sectors_to_write() == 0 || operation.done < now || operation.done >= Nanos::HORIZON.0
            {
                return Err(damaged("the heads of the saved state do what this disk cannot do"));
            }
            let done = Nanos(operation.done);
            disk.schedule(done, Event::Heads);
        }
        if let Some(failed) = disk.check().into_iter().find(|check| !check.passed) {
            return Err(damaged(format!("the saved state does not hold: {}: {}", failed.name, failed.detail)));
        }
        disk.use_heads();
        Ok(disk)
    }
}
