//! Cleaning (AMF, section 3.4): what is valid in a segment becomes dirty in memory, as if it were written again, and goes to the
//! cold log. The segment leaves with the next check-point. So nothing that a call writes meanwhile can be overtaken by a copy.

use crate::call::{Errno, FileKind};
use crate::core::cache::{Body, Key};
use crate::core::space::State;
use crate::core::view::{Leaf, Looks};
use crate::core::{Core, Op, Stop, View};
use crate::format::LOST;
use crate::format::inode::MOST_BLOCKS;
use crate::format::summary::Owner;
use crate::format::usage::MAP_LOG;
use crate::jobs::write_out::FOR_CLEANING;
use crate::log_structured::LogStructured;
use crate::tasks::Work;

/// Most blocks that are looked at together.
const CHUNK: u32 = 32;

/// Free segments below which calls wait for cleaning, beyond those for cleaning itself.
const LOW: u32 = FOR_CLEANING + 3;

/// What cleaning for room has won. Where pages fill few blocks of their write units, or each page makes another node dirty, cleaning may
/// write as much as it frees.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    /// Most free segments since a task that needs room went on.
    most_free: u32,
    /// Segments cleaned since then, or since there were that many.
    cleaned: u32,
}

impl Progress {
    /// A task that needs room goes on now.
    pub(crate) fn since_now(core: &Core) -> Progress {
        Progress { most_free: core.free_segments(), cleaned: 0 }
    }
}

/// Looks at some blocks of a segment, and makes dirty what is valid.
pub(crate) struct CleanStep {
    pub(crate) segment: u32,
    pub(crate) next: u32,
}

/// A valid block.
pub(crate) enum Valid {
    Node(u32),
    Page {
        inode: u32,
        index: u32,
        leaf: u32,
        kind: FileKind,
    },
    /// A block of a file that cannot be read.
    Lost {
        inode: u32,
        index: u32,
        leaf: u32,
    },
}

/// What a block is that was written for an owner; `None` if it is not valid any more.
fn judge(view: &View<'_>, owner: Owner, address: u32) -> Result<Option<Valid>, Stop> {
    match owner {
        Owner::Nothing => Ok(None),
        Owner::Node(number) => {
            if number >= view.core.superblock.nodes {
                return Ok(None);
            }
            if view.map(number / 512)?[number as usize % 512] != address {
                return Ok(None);
            }
            Ok(view.node(number)?.then_some(Valid::Node(number)))
        }
        Owner::Data { inode: number, index } => {
            if number >= view.core.superblock.nodes || u64::from(index) >= MOST_BLOCKS {
                return Ok(None);
            }
            let Some(inode) = view.inode_numbered(number)? else { return Ok(None) };
            let Leaf::In(leaf) = view.leaf(inode, index)? else { return Ok(None) };
            if view.address(inode, index)? != address {
                return Ok(None);
            }
            if view.core.freeing.contains_key(&number) {
                return Err(Stop::Busy(number));
            }
            view.may_change(leaf)?;
            view.may_change(number)?;
            match view.page(inode, index) {
                Ok(_) => Ok(Some(Valid::Page { inode: number, index, leaf, kind: inode.kind })),
                Err(Stop::Failed(Errno::Io)) if inode.kind == FileKind::File => {
                    Ok(Some(Valid::Lost { inode: number, index, leaf }))
                }
                Err(stop) => Err(stop),
            }
        }
    }
}

impl Op for CleanStep {
    type Plan = (Vec<Valid>, u32);
    /// Pages of files that are to be sent, and the block behind those that were looked at.
    type Output = (Vec<(u32, u32)>, u32);

    fn gather(&self, view: &View<'_>) -> Result<(Vec<Valid>, u32), Stop> {
        view.writable()?;
        let superblock = &view.core.superblock;
        let (data, entries) = (superblock.data_blocks(), superblock.summary_entries());
        // A check-point may have called it free meanwhile, since calls freed or wrote again what was valid.
        let is_left = matches!(view.core.space.get(self.segment).state, State::Sealed(_) | State::Loose(_));
        if self.next >= data || !is_left {
            return Ok((Vec::new(), data));
        }
        let end = (self.next + (data / 4).clamp(1, CHUNK)).min(data);
        let loose = view.core.logs.loose.get(&self.segment);
        let (mut looks, mut valid) = (Looks::default(), Vec::new());
        for block in self.next..end {
            let owner = match loose {
                Some(loose) => loose.owners.get(block as usize).copied(),
                None => view.summary(self.segment, block / entries as u32)?.get(block as usize % entries).copied(),
            };
            let address = self.segment * superblock.segment_blocks + block;
            valid.extend(looks.at(judge(view, owner.unwrap_or(Owner::Nothing), address))?.flatten());
        }
        looks.end()?;
        view.metadata_room(valid.len() as u32)?;
        Ok((valid, end))
    }

    fn apply(self, core: &mut Core, (valid, end): (Vec<Valid>, u32)) -> (Vec<(u32, u32)>, u32) {
        let mut pages = Vec::new();
        for one in valid {
            match one {
                Valid::Node(number) => {
                    core.metrics.moved_metadata_blocks += u64::from(!core.dirty_nodes.contains(&number));
                    core.set_node_dirty(number);
                }
                Valid::Page { inode, index, leaf, kind } => {
                    let key = Key::page(inode, index);
                    let Some(entry) = core.cache.entry(key) else { continue };
                    // What is dirty goes to the drive now, so that the segment is empty with the next check-point.
                    if entry.is_dirty {
                        if kind == FileKind::File {
                            pages.push((inode, index));
                        }
                        continue;
                    }
                    if matches!(&entry.body, Body::Page(page) if page.writing != 0) {
                        continue;
                    }
                    core.set_page_dirty(inode, index, leaf, kind);
                    if kind == FileKind::File {
                        if let Some(page) = core.cache.page_mut(inode, index) {
                            page.is_moved = true;
                        }
                        pages.push((inode, index));
                    } else {
                        core.metrics.moved_metadata_blocks += 1;
                    }
                }
                Valid::Lost { inode, index, leaf } => {
                    core.metrics.lost_blocks += 1;
                    core.move_block(inode, leaf, index, LOST);
                }
            }
        }
        (pages, end)
    }
}

impl Core {
    /// The summary of a segment that is written anew is another one.
    pub(crate) fn forget_summary(&mut self, segment: u32) {
        for part in 0..self.superblock.summary_parts() {
            self.cache.remove(Key::summary(segment, part));
        }
    }
}

impl LogStructured {
    /// Segments leave that hold nothing any more. What of one has not been looked at for cleaning is not valid, and is not looked at.
    pub(crate) fn end_cleaning_of(&mut self, leaving: &[u32]) {
        let Some(segment) = self.core.cleaning.filter(|segment| leaving.contains(segment)) else { return };
        let Some(task) = self.cleaning_task else { return };
        if let Work::Clean { segment: cleaned, next } = &mut self.tasks.get_mut(task).work
            && *cleaned == segment
        {
            *next = self.core.superblock.data_blocks();
        }
    }

    /// Free segments, and those that are about to be: trimmed, empty, or cleaned with pages on their way.
    fn free_soon(&self) -> u32 {
        let space = &self.core.space;
        let is_on_its_way = |segment: &&u32| {
            let one = space.get(**segment);
            matches!(one.state, State::Sealed(_) | State::Loose(_)) && one.valid > 0
        };
        let cleaned = self.core.cleaned.iter().filter(is_on_its_way).count() as u32;
        let leaving = space.empties() + self.checkpoints.to_trim.len() as u32 + self.checkpoints.trims;
        self.core.free_segments() + leaving + cleaned
    }

    /// The segment to clean next: the one with the least valid blocks, or with the most benefit for its cost.
    fn victim(&self, by_benefit: bool) -> Option<u32> {
        let core = &self.core;
        let data = core.superblock.data_blocks();
        let room = core.free_segments().saturating_mul(data);
        let may = core.space.all().filter(|(segment, one)| {
            let is_left = matches!(one.state, State::Sealed(log) | State::Loose(log) if log != MAP_LOG);
            is_left
                && one.writing == 0
                && (1..data).contains(&one.valid)
                && one.valid <= room
                && !self.core.cleaned.contains(segment)
                && !self.is_thread(*segment)
        });
        if by_benefit {
            // (1 - u) * age / (1 + u) (Rosenblum and Ousterhout, 1992), in whole numbers.
            let benefit = |segment: u32| {
                let one = core.space.get(segment);
                let (valid, data) = (u128::from(one.valid), u128::from(data));
                let age = u128::from(core.space.clock - one.age) + 1;
                (data - valid) * age * 1_000_000 / (data + valid)
            };
            return may.map(|(segment, _)| segment).max_by_key(|segment| (benefit(*segment), u32::MAX - segment));
        }
        may.min_by_key(|(segment, one)| (one.valid, *segment)).map(|(segment, _)| segment)
    }

    /// Whether a log is about to write a segment again.
    fn is_thread(&self, segment: u32) -> bool {
        self.threading.contains(&Some(segment))
            || self.core.logs.threads.iter().flatten().any(|thread| thread.segment == segment)
    }

    /// A task that needs room went on.
    pub(crate) fn went_on(&mut self) {
        self.progress = Progress::since_now(&self.core);
    }

    /// Notes whether more segments are free than since a task went on.
    pub(crate) fn note_progress(&mut self) {
        if self.core.free_segments() > self.progress.most_free {
            self.went_on();
        }
    }

    /// Whether so few segments are free that calls may have to wait for cleaning.
    fn is_short(&self) -> bool {
        self.free_soon() < LOW
    }

    /// Whether so few segments are free, and all were cleaned twice, and neither did a task go on nor did more segments become free.
    pub(crate) fn cleans_in_vain(&self) -> bool {
        self.progress.cleaned >= 2 * self.core.superblock.segments && self.is_short()
    }

    /// Whether a segment is being cleaned and that does not wait for room, nor for an inode that is being freed, which may wait for room.
    fn cleaning_goes_on(&self) -> bool {
        let is_ours = |task: &u32| Some(*task) == self.cleaning_task;
        self.core.cleaning.is_some()
            && !self.for_room.iter().any(is_ours)
            && !self.busy.iter().any(|(_, task)| is_ours(task))
    }

    /// Begins to clean where free segments run out, or nothing else is to be done; true if anything began.
    pub(crate) fn clean(&mut self) -> bool {
        if self.core.read_only.is_some() {
            return false;
        }
        let is_short = self.is_short();
        let in_background = std::mem::take(&mut self.clean_in_background);
        if self.core.cleaning.is_some() || !(is_short || in_background) {
            return false;
        }
        if !self.moved.is_empty() || self.cleans_in_vain() {
            return false;
        }
        let Some(segment) = self.victim(!is_short) else {
            self.has_no_victim = true;
            return false;
        };
        self.progress.cleaned += u32::from(is_short);
        self.core.metrics.cleaned_segments += 1;
        self.core.metrics.cleaned_valid_blocks += u64::from(self.core.space.get(segment).valid);
        self.core.cleaned.push(segment);
        self.core.cleaning = Some(segment);
        self.start(Work::Clean { segment, next: 0 });
        true
    }

    /// Where tasks wait for segments: a check-point, or cleaning, or the end of what can be done. True if anything began.
    pub(crate) fn make_room(&mut self) -> bool {
        let is_asked = !self.for_room.is_empty() || self.wants_room;
        if self.core.read_only.is_some() || !is_asked {
            return false;
        }
        // What is sent alone fills up a write unit: while a segment is being cleaned, more may follow.
        if !self.cleaning_goes_on() && self.send_unsent() {
            return true;
        }
        let is_waiting = self.threading.iter().any(Option::is_some)
            || !self.checkpoints.is_idle()
            || self.checkpoints.is_wanted
            || self.checkpoints.trims > 0
            || self.core.writing_pages > 0
            || !self.checkpoints.to_trim.is_empty();
        if is_waiting {
            return false;
        }
        if self.core.space.any_empty() || !self.core.cleaned.is_empty() && self.core.cleaning.is_none() {
            self.checkpoints.is_wanted = true;
            return true;
        }
        // A check-point that frees nothing comes last: while a segment is being cleaned, that makes room.
        if self.cleaning_goes_on() {
            return false;
        }
        if self.core.dirty_metadata() > 0 || self.core.map.freed > 0 {
            self.checkpoints.is_wanted = true;
            return true;
        }
        // Pages that were being written kept room for their nodes (`Core::checkpoint_segments`).
        if std::mem::take(&mut self.has_written) {
            self.room_may_have_come();
            return true;
        }
        // Nothing more can be won.
        self.wants_room = false;
        let mut tasks = std::mem::take(&mut self.for_room);
        // Calls that wait for write-out wait for room, too: what is dirty finds none.
        tasks.append(&mut self.throttled);
        let any = !tasks.is_empty();
        self.without_room += tasks.len() as u64;
        for task in tasks {
            self.fail_for_room(task);
        }
        any
    }
}
