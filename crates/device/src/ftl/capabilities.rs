//! What a design can do beyond the core of [`Ftl`](super::Ftl). A design opts in by returning itself from the getter.

use std::io::{self, Read, Write};
use std::ops::Range;

use ssdlab_base::{Opcode, Refusal};
use ssdlab_flash::{BlockId, Cause, Lpn};

use super::{CannotYet, Compaction, NoSpace, Outcome, SetCommand, UnitWrite, VersionPart};
use crate::media::{Media, Place};
use crate::waiter::Waiter;

/// Reads that take several steps: what one page tells decides whether another one is read.
pub(crate) trait SteppedReads {
    /// Where the sectors `wanted` of a unit in [`Found::Versions`](super::Found::Versions) are: its versions, newest first,
    /// each needed only if those before it have not told all.
    fn versions(&mut self, media: &Media, lpn: Lpn, wanted: u64, out: &mut Vec<VersionPart>);

    /// The data of sectors from `first` on of such a unit, as many as `out` takes. False if what is kept is damaged.
    fn read_versions(&self, media: &Media, lpn: Lpn, first: u64, out: &mut [u8]) -> bool;
}

/// Small partial units of a region leave the buffer together, into one page.
pub(crate) trait Compacts {
    /// How many, and how large; asked once, when the drive is made.
    fn limits(&self) -> Compaction;

    /// Whether a small partial unit may be one of a compacted page now.
    fn may_compact(&self, media: &Media, lpn: Lpn) -> bool;

    /// Writes two or more small partial units of one region into one page: different LPNs, each
    /// [`may_compact`](Compacts::may_compact), all within the [`limits`](Compacts::limits). `Err` leaves everything as it was.
    fn write_compacted(
        &mut self,
        media: &mut Media,
        units: &[UnitWrite<'_>],
        stream: u16,
        cause: Cause,
        owner: Waiter,
    ) -> Result<(), NoSpace>;
}

/// Work that is done while the drive is idle.
pub(crate) trait IdleWork {
    /// Whether there is any now.
    fn has_work(&self) -> bool;

    /// Commands in flight at most for the drive to count as idle for it; asked once, when the drive is made.
    fn light_load(&self) -> u64;

    /// Does some of it: starts at most `limit` programs, and returns how many. Each reports to `owner`.
    fn work(&mut self, media: &mut Media, limit: u32, owner: Waiter) -> u32;
}

/// Blocks and collection of its own. Such a design opens blocks with [`Media::open_block`] and closes them with
/// [`Media::end_block`]; it has no frontiers, no victim policy is asked, and what recovery finds partly written is closed.
pub(crate) trait OwnCollection {
    /// The closed superblock of a group that is to be erased next, if there is one. [`Ftl::relocate`](super::Ftl::relocate) is
    /// asked to move what is valid there. A group is asked again whenever one of its superblocks is opened or closed, or a
    /// superblock becomes free anywhere, and where the design puts it on [`Wakes::groups`](crate::wakes::Wakes::groups).
    ///
    /// `idle`: the drive has had nothing to do for a while (`gc.idle_after`).
    fn next_victim(&mut self, media: &Media, group: u32, idle: bool) -> Option<u32>;

    /// Whether a group has a victim with nothing valid: it goes before one that the design cannot empty for want of free blocks.
    fn has_empty_victim(&self, _: &Media, _: u32) -> bool {
        false
    }

    /// A victim was not emptied, because the group has an empty one: [`next_victim`](OwnCollection::next_victim) returns it later.
    fn put_back(&mut self, _: u32) {}

    /// Why such a superblock is emptied.
    fn cause_of(&self, _: u32) -> Cause {
        Cause::Gc
    }

    /// Whether a closed block in which a program failed may be emptied and go bad now. If not, it is asked again as
    /// [`next_victim`](OwnCollection::next_victim) is.
    fn may_retire(&mut self, _: &Media, _: BlockId) -> bool {
        true
    }

    /// Whether pages go on being given out of a block that recovery found partly written, or one in which a program failed is
    /// kept as it is. The others are closed.
    fn stays_open(&self, _: BlockId) -> bool {
        false
    }
}

/// Append-only segments (Application-Managed Flash, section 2). The drive takes nothing else: a write that reaches the design
/// goes on where its segment ends, and is whole pages; a trim is of whole segments.
pub(crate) trait AppendOnly {
    /// Units in a segment.
    fn segment_units(&self) -> u32;

    /// Units of a segment up to the last that was written, and whether it takes no more.
    fn written(&self, segment: u32) -> (u32, bool);
}

/// Checkpoints of a map, in blocks that nothing else uses ([`Make::checkpoint_blocks`](super::Make::checkpoint_blocks)). Such a design
/// programs and erases them with [`Media::program_checkpoint`] and [`Media::erase_checkpoint`].
pub(crate) trait Checkpoints {
    /// The host wants what it wrote to be durable: a checkpoint begins, or will when the one in flight has ended. Who waits for
    /// metadata waits for it.
    fn save_map(&mut self, media: &mut Media);

    /// The program of a page has ended.
    fn programmed(&mut self, media: &mut Media, place: Place, failed: bool);

    /// The erase of a block has ended; one that failed is bad by now.
    fn erased(&mut self, media: &mut Media, block: BlockId);
}

/// Commands of a set of its own. A design whose commands change its mapping implements them itself; others stand beside a
/// mapping that knows nothing of them ([`Make::beside`](super::Make::beside)), and after a power cut the drive has fresh ones.
pub(crate) trait Commands: Send {
    /// Units that must not be in the write buffer when a command is executed.
    fn leaves_buffer(&self, _: &Media, _: &SetCommand<'_>) -> Vec<Lpn> {
        Vec::new()
    }

    /// Executes one, as far as it can; what the drive does next for it, on any mapping, the [`Outcome`] says. A refused one
    /// changes nothing; `Err` is tried again when what it waits for is there.
    fn execute(&mut self, media: &mut Media, command: SetCommand<'_>) -> Result<Outcome, CannotYet>;

    /// Whether a command has changed something, and is not done: it is not refused any more.
    fn has_begun(&self, _: Waiter) -> bool {
        false
    }

    /// Units that a command which was executed was to write never will be: the drive takes no more writes.
    fn never_written(&mut self, _: &Media, _: &[Lpn]) {}

    /// Writes what they keep beside a mapping, for a snapshot; a mapping that executes them saves it with the rest.
    fn save_state(&self, _: &mut dyn Write) -> io::Result<()> {
        Ok(())
    }

    /// Reads what [`save_state`](Commands::save_state) wrote.
    fn restore_state(&mut self, _: &mut dyn Read) -> io::Result<()> {
        Ok(())
    }

    /// RAM that a real drive would need for what they keep beside a mapping, by name.
    fn memory(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }
}

/// More addresses than room for data. Some data may be dropped.
pub(crate) trait LimitedRoom {
    /// Units that it has room for.
    fn room(&self) -> u64;

    /// Units that it has to keep, on flash or on their way there.
    fn kept(&self) -> u64;

    /// Whether it has to keep a unit.
    fn is_kept(&self, lpn: Lpn) -> bool;

    /// Units that it need not keep any more, while a power cut could bring them back as units that it has to; at most.
    fn may_return(&self) -> u64;

    /// Whether what a write of the set brings has to be kept; what block I/O writes has to be.
    fn keeps(&self, opcode: Opcode) -> bool;

    /// Whether units that are expendable have to be kept all the same.
    fn keeps_expendable(&self) -> bool;

    /// Why a write is refused that finds no room.
    fn refusal(&self) -> Refusal;
}

/// A map on flash, partly cached in RAM. A waiter that looks a unit up or changes its entry asks for its
/// map page first; when all that was asked for is cached, the waiter is put on [`Wakes::map_waiters`](crate::wakes::Wakes::map_waiters), and asks again.
pub(crate) trait CachedMap {
    /// Whether the map pages of all `lpns` are cached. They stay so until the next call; if they are not, they will be.
    fn request(&mut self, media: &mut Media, waiter: Waiter, lpns: &[Lpn]) -> bool;

    /// Whether the map pages of `units`, of one segment that is trimmed at once, are cached. They stay so until the
    /// next call; if they are not, they will be.
    fn request_range(&mut self, media: &mut Media, waiter: Waiter, units: Range<Lpn>) -> bool;

    /// Whether there is a page for data of a unit. Who has none does not ask for its map page: it waits for a block.
    fn has_page_for(&self, media: &Media, lpn: Lpn, stream: u16) -> bool;

    /// The first unit behind those that can be looked up together with `first`.
    fn reach(&self, first: Lpn) -> Lpn;

    /// The waiter asks no more.
    fn forget(&mut self, media: &mut Media, waiter: Waiter);

    /// The waiter asks no more, if all that it asked for is cached.
    fn forget_served(&mut self, media: &mut Media, waiter: Waiter);

    /// What a page holds is on flash, or, after a failed program, was sent elsewhere.
    fn settled(&mut self, media: &mut Media, place: Place);

    /// Waiters for pages that settled go on: all that ended with them was told of by [`settled`](Self::settled).
    fn resume_settled(&mut self, media: &mut Media);

    /// An operation of the map has ended.
    fn served(&mut self, media: &mut Media, op: u32);

    /// A program of the map failed: it goes on elsewhere when there is room.
    fn program_failed(&mut self, media: &mut Media, op: u32);

    /// A program of the map failed, and its pages stay in RAM.
    fn given_up(&mut self, media: &mut Media, op: u32);

    /// The drive takes no more writes: pages that can never leave the cache, since they name data that is in RAM alone, are kept
    /// beside it, in RAM that writes need no more.
    fn set_read_only(&mut self);

    /// Units that are about to leave the write buffer: their map pages are loaded side by side, as far as the cache is large
    /// enough to keep them until then.
    fn load_ahead(&mut self, media: &mut Media, lpns: &[Lpn]);

    /// A waiter has used what was cached for it: others may have the places.
    fn on_slot_free(&mut self, media: &mut Media);

    /// Blocks were erased: what waits for a map page to program goes on.
    fn resume(&mut self, media: &mut Media);
}
