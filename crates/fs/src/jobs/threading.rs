//! Threaded logging (F2FS, section 2.5): where free segments are short, a log writes the blocks of a segment of its own that are not valid,
//! in place of a free segment. The summary of that segment is got ready before the log needs it.

use crate::core::log::{Kind, Thread, log_of};
use crate::core::space::State;
use crate::core::view::Looks;
use crate::core::{Core, Op, Stop, View};
use crate::format::checkpoint::LOGS;
use crate::format::summary::Owner;
use crate::format::usage::MAP_LOG;
use crate::log_structured::LogStructured;
use crate::tasks::Work;

/// Gets ready the segment that a log writes again next.
pub(crate) struct Prepare {
    pub(crate) log: u8,
    pub(crate) segment: u32,
}

impl Op for Prepare {
    type Plan = Option<Vec<Owner>>;
    type Output = ();

    fn gather(&self, view: &View<'_>) -> Result<Option<Vec<Owner>>, Stop> {
        view.writable()?;
        let core = view.core;
        if core.space.get(self.segment).state != State::Sealed(self.log) {
            return Ok(None);
        }
        let (mut looks, mut owners) = (Looks::default(), Vec::new());
        for part in 0..core.superblock.summary_parts() {
            owners.extend(looks.at(view.summary(self.segment, part))?.unwrap_or(&[]));
        }
        looks.end()?;
        owners.truncate(core.superblock.data_blocks() as usize);
        Ok(Some(owners))
    }

    fn apply(self, core: &mut Core, owners: Option<Vec<Owner>>) {
        core.forget_summary(self.segment);
        core.logs.threads[usize::from(self.log)] = owners.map(|owners| Thread { segment: self.segment, owners });
    }
}

impl Core {
    /// Whether fewer segments are free than the file system keeps for itself (as in Linux 3.13).
    pub(crate) fn is_short_of_segments(&self) -> bool {
        self.space.free() < self.superblock.kept_segments()
    }

    /// Whether logs write segments again.
    fn is_threading(&self) -> bool {
        self.options.threaded_logging && self.space.bits.is_some() && self.is_short_of_segments()
    }

    /// Whether pages wait until a segment is got ready that their log writes again. What cleaning moves does not wait.
    pub(crate) fn waits_for_thread(&self, log: u8) -> bool {
        self.is_threading()
            && !self.logs.is_chain(log)
            && self.logs.room(log) == 0
            && self.logs.threads[usize::from(log)].is_none()
            && !self.without_thread[usize::from(log)]
    }
}

impl LogStructured {
    /// The segment of a log with the least valid blocks that has any block to be written again.
    fn thread_of(&self, log: u8) -> Option<u32> {
        let space = &self.core.space;
        let bits = space.bits.as_ref()?;
        let may = |(segment, one): &(u32, &crate::core::space::Segment)| {
            one.state == State::Sealed(log)
                && one.writing == 0
                && (1..self.core.superblock.data_blocks()).contains(&one.valid)
                && self.core.cleaning != Some(*segment)
                && !self.core.cleaned.contains(segment)
        };
        let mut segments: Vec<(u32, u32)> =
            space.all().filter(may).map(|(segment, one)| (one.valid, segment)).collect();
        segments.sort_unstable();
        segments.into_iter().map(|(_, segment)| segment).find(|segment| !bits.slots(*segment).is_empty())
    }

    /// Gets segments ready for logs; true if anything began.
    pub(crate) fn thread(&mut self) -> bool {
        if self.core.read_only.is_some() || !self.core.is_threading() {
            return false;
        }
        let mut any = false;
        for log in 0..LOGS as u8 {
            let at = usize::from(log);
            // A log that has nothing to write needs no segment.
            let has_pages = self.core.dirty_pages > 0 && log == log_of(Kind::Data, self.core.superblock.logs);
            let is_used = log != MAP_LOG
                && !self.core.logs.is_chain(log)
                && (self.core.logs.positions()[at].segment != 0 || has_pages);
            let is_ready = self.core.logs.threads[at].is_some() || self.threading[at].is_some();
            if !is_used || is_ready || self.core.without_thread[at] {
                continue;
            }
            let found = self.thread_of(log);
            // Only a check-point makes blocks free to be written again.
            self.core.without_thread[at] = found.is_none();
            if found.is_none() && has_pages {
                // Pages that waited for it take free segments.
                self.room_may_have_come();
                any = true;
            }
            if let Some(segment) = found {
                self.threading[at] = Some(segment);
                self.start(Work::Thread { log, segment });
                any = true;
            }
        }
        any
    }

    /// A segment is ready, or could not be got ready.
    pub(crate) fn thread_ended(&mut self, log: u8) {
        self.threading[usize::from(log)] = None;
        // Pages may have waited for it.
        self.room_may_have_come();
    }
}
