//! Garbage collection, static wear levelling and retirement: one job a group, emptying one superblock at a time. Where
//! every block stands alone a group is a plane, and a superblock is a block.
//!
//! A job moves a few pages at a time, so that the die's queue stays short and host operations can pass. When its victim
//! is empty the block waits for its last pin and is erased. Relocation has blocks of its own to go to (the reserve), so a
//! job that was begun can be finished whatever the host does: [`choice`] has the argument.

mod choice;
pub(crate) mod victim;

use std::fmt;

use ssdlab_base::Nanos;
use ssdlab_flash::{BlockId, Cause, Class, NONE, OpKind, Ppn, Submit};

use crate::block_pool::{BlockKind, BlockState};
use crate::ftl::{Ftl, TrimTarget};
use crate::media::Media;
use crate::pacing::{self, Pace, Space};
use crate::seeded::{Bug, seeded};
use crate::waiter::Waiter;
use crate::{DriveConfig, GcConfig};
use victim::VictimPolicy;

/// Relocations of one job in flight for each plane it works on: enough to keep a die busy, few enough that the host is not queued behind a block.
const RELOCATIONS_IN_FLIGHT: u32 = 8;

/// Relocations of one job in flight for each plane it works on, where collection is paced: one is read, one is
/// transferred, one is programmed. More would only queue up in front of the host.
const PACED_IN_FLIGHT: u32 = 3;

/// Pages of the host, in each plane, that paced collection may lag behind before the host is held back.
const LAG_PAGES: u32 = 2;

/// Static wear levelling moves at most one block for this many victims of garbage collection in a group.
const VICTIMS_PER_WEAR_MOVE: u32 = 16;

#[derive(Clone, Copy, Debug)]
struct Job {
    victim: u32,
    cursor: u32,
    cause: Cause,
    /// Pages that its valid units filled when it was chosen.
    valid_pages: u32,
    list: VictimList,
}

/// Whether a job knows the list of owners of its victim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum VictimList {
    /// It was not read.
    Unread,
    /// Its read is in flight.
    InFlight,
    /// It was read, or there is none.
    Known,
}

/// A victim policy that chose nothing although collection needed a block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IdlePolicy {
    name: &'static str,
    /// Blocks with invalid pages that it could have chosen.
    blocks: usize,
}

impl fmt::Display for IdlePolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let blocks =
            if self.blocks == 1 { "1 block holds".to_string() } else { format!("{} blocks hold", self.blocks) };
        write!(f, "the victim policy {} chose no block although {blocks} invalid pages", self.name)
    }
}

/// The jobs of all groups.
pub(crate) struct Gc {
    config: GcConfig,
    policy: Box<dyn VictimPolicy>,
    jobs: Vec<Option<Job>>,
    /// Relocations of each group that are not on flash yet, of its job and of the one before.
    in_flight: Vec<u32>,
    /// As many of them as there may be.
    in_flight_most: u32,
    /// The drive is idle: the background's threshold holds.
    background: bool,
    /// Jobs in work come to their end and no other begins.
    draining: bool,
    /// A command or a page whose program failed waits for a block, and nothing is in flight: groups short of free
    /// blocks are collected, whatever the pace.
    urgent: bool,
    /// The setpoint is to be reached without time.
    filling: bool,
    retiring: Vec<Vec<u32>>,
    /// Members of each superblock whose erase has been asked for and has not ended.
    erases_in_flight: Vec<u32>,
    /// When the first of them was asked for last.
    erase_sent: Vec<Nanos>,
    /// Why each superblock was emptied last.
    emptied_for: Vec<Cause>,
    victims_since_wear_move: Vec<u32>,
    /// Superblocks whose erase waits for records of trims to be on flash.
    await_metadata: Vec<u32>,
    /// Victims of the foreground, the background, and wear levelling.
    pub(crate) victims: [u64; 3],
    /// Valid units found in victims, for the mean.
    pub(crate) valid_in_victims: u64,
    /// Pages for data that held none when these were chosen: free, or not yet given out by a frontier.
    pub(crate) empty_pages: u64,
    /// Victims of each group that were valid from end to end since the last that was not.
    full_in_a_row: Vec<u32>,
    /// The policy named no block of a group when it was asked last.
    declined: Vec<bool>,
    /// Victims that were valid from end to end.
    pub(crate) full_victims: u64,
    /// Victims that the guard took in place of the policy's.
    pub(crate) guarded_victims: u64,
    pub(crate) grown_bad: u64,
}

impl Gc {
    pub(crate) fn new(config: &DriveConfig, policy: Box<dyn VictimPolicy>) -> Gc {
        let geometry = &config.flash.geometry;
        let width = config.ftl.superblock.planes(geometry);
        let groups = (geometry.planes() / width) as usize;
        Gc {
            config: config.gc.clone(),
            policy,
            jobs: vec![None; groups],
            in_flight: vec![0; groups],
            in_flight_most: if config.gc.pacing.is_on() { PACED_IN_FLIGHT } else { RELOCATIONS_IN_FLIGHT } * width,
            background: false,
            draining: false,
            urgent: false,
            filling: false,
            retiring: vec![Vec::new(); groups],
            erases_in_flight: vec![0; groups * geometry.blocks_per_plane as usize],
            erase_sent: vec![Nanos::ZERO; groups * geometry.blocks_per_plane as usize],
            emptied_for: vec![Cause::Gc; groups * geometry.blocks_per_plane as usize],
            victims_since_wear_move: vec![0; groups],
            await_metadata: Vec::new(),
            victims: [0; 3],
            valid_in_victims: 0,
            empty_pages: 0,
            full_in_a_row: vec![0; groups],
            declined: vec![false; groups],
            full_victims: 0,
            guarded_victims: 0,
            grown_bad: 0,
        }
    }

    /// Whether the drive counts as idle, so that background collection may run.
    pub(crate) fn set_background(&mut self, on: bool) {
        self.background = on && self.config.background_free_blocks > 0;
    }

    /// Victims of each group since static wear levelling last moved a block, for snapshots.
    pub(crate) fn victims_since_wear_move(&self) -> &[u32] {
        &self.victims_since_wear_move
    }

    /// Victims of each group since static wear levelling last moved a block, to restore from a snapshot.
    pub(crate) fn victims_since_wear_move_mut(&mut self) -> &mut [u32] {
        &mut self.victims_since_wear_move
    }

    /// Victims of each group that were valid from end to end since the last that was not, for checkpoints.
    pub(crate) fn full_in_a_row(&self) -> &[u32] {
        &self.full_in_a_row
    }

    /// Victims of each group that were valid from end to end since the last that was not, to resume from a checkpoint.
    pub(crate) fn full_in_a_row_mut(&mut self) -> &mut [u32] {
        &mut self.full_in_a_row
    }

    /// Forgets what was counted.
    pub(crate) fn reset_counters(&mut self) {
        self.victims = [0; 3];
        self.valid_in_victims = 0;
        self.empty_pages = 0;
        self.full_in_a_row.fill(0);
        self.full_victims = 0;
        self.guarded_victims = 0;
    }

    /// How long without host commands before background collection.
    pub(crate) fn idle_after(&self) -> Option<Nanos> {
        (self.config.background_free_blocks > self.config.free_blocks).then_some(self.config.idle_after)
    }

    /// A superblock must be emptied: a member of it is never used again.
    pub(crate) fn retire(&mut self, media: &mut Media, superblock: u32) {
        if !media.pool.is_retiring(superblock) {
            media.pool.set_retiring(superblock);
            self.retiring[media.pool.group_of(superblock) as usize].push(superblock);
        }
    }

    /// Lets jobs in work come to their end, whatever the pace, and no other begin; `false` goes back to the pace.
    pub(crate) fn set_draining(&mut self, on: bool) {
        self.draining = on;
    }

    /// Collects to the setpoint, so that a drive that was filled without time begins at its pace.
    pub(crate) fn set_filling(&mut self, on: bool) {
        self.filling = on;
    }

    /// Groups that are short of free blocks are collected whatever the pace.
    pub(crate) fn set_urgent(&mut self, on: bool) {
        self.urgent = on;
        if on {
            self.declined.fill(false);
        }
    }

    /// Whether the policy let blocks with invalid pages be since collection became urgent.
    pub(crate) fn idle_policy(&self, media: &Media) -> Option<IdlePolicy> {
        let mut blocks = 0;
        for group in (0..media.pool.groups()).filter(|group| self.declined[*group as usize]) {
            let view = media.pool.view(group, media.data_units_per_superblock());
            let invalid = |block: &u32| view.is_closed(*block) && view.valid(*block) < view.units_per_block();
            blocks += (0..view.blocks()).filter(invalid).count();
        }
        (blocks > 0).then(|| IdlePolicy { name: self.policy.name(), blocks })
    }

    /// Whether collection keeps pace with the host, which it does in time only.
    pub(crate) fn is_paced(&self, media: &Media) -> bool {
        self.config.pacing.is_on() && media.flash.timed()
    }

    /// Runs the job of a group as far as it goes now, starting one if the group needs it.
    pub(crate) fn pump(&mut self, media: &mut Media, ftl: &mut dyn Ftl, group: u32) {
        self.run_job(media, ftl, group);
        if self.is_paced(media) {
            self.update_host_quota(media, group);
        }
    }

    fn run_job(&mut self, media: &mut Media, ftl: &mut dyn Ftl, group: u32) {
        loop {
            let mut job = match self.jobs[group as usize] {
                Some(job) => job,
                None => match self.begin(media, ftl, group) {
                    Some(job) => job,
                    None => return,
                },
            };
            if job.list != VictimList::Known && !self.knows_list(media, &mut job, group) {
                return;
            }
            let limit = self.may_start(media, group, &job);
            if limit > 0 {
                let owner = Waiter::Gc(group);
                let moved = ftl.relocate(media, job.victim, job.cursor, limit, job.cause, owner);
                let units = media.units_per_superblock();
                assert!(
                    moved.cursor >= job.cursor,
                    "relocation of {} went from {} back to {}",
                    job.victim,
                    job.cursor,
                    moved.cursor
                );
                assert!(moved.cursor <= units, "relocation of {} is at unit {} of {units}", job.victim, moved.cursor);
                assert!(moved.started <= limit, "{} relocations of {} started, not {limit}", moved.started, job.victim);
                job.cursor = moved.cursor;
                if media.flash.timed() {
                    self.in_flight[group as usize] += moved.started;
                }
                self.jobs[group as usize] = Some(job);
                if moved.stuck {
                    if !self.yield_victim(media, ftl, &job, group) {
                        return;
                    }
                    continue;
                }
            }
            if job.cursor < media.units_per_superblock() {
                if limit > 0 && self.config.pacing.is_on() && media.pool.valid(job.victim) == 0 {
                    // The pace was just enough for what was left: the victim is done.
                    continue;
                }
                return;
            }
            // All that was valid is on its way, and pins the victim until it is there: the job need not wait.
            self.emptied_for[job.victim as usize] = job.cause;
            if !self.finish(media, ftl, job.victim, group) {
                return;
            }
            self.jobs[group as usize] = None;
            media.host_pace.job_ends(group);
        }
    }

    /// Whether a job knows the list of its victim; if not, the list is being read. A victim that holds nothing valid goes without.
    #[cold]
    fn knows_list(&mut self, media: &mut Media, job: &mut Job, group: u32) -> bool {
        if job.list == VictimList::InFlight {
            return false;
        }
        let waits =
            media.pool.valid(job.victim) > 0 && media.read_list(job.victim, job.cause, Waiter::VictimList(group));
        job.list = if waits { VictimList::InFlight } else { VictimList::Known };
        self.jobs[group as usize] = Some(*job);
        !waits
    }

    /// The list of a group's victim was read.
    pub(crate) fn list_read(&mut self, media: &mut Media, ftl: &mut dyn Ftl, group: u32) {
        let job = self.jobs[group as usize].as_mut().expect("a job that reads a list is in work");
        assert_eq!(job.list, VictimList::InFlight, "the list of {} was read twice", job.victim);
        job.list = VictimList::Known;
        self.pump(media, ftl, group);
    }

    /// Puts a victim back that a design cannot empty now, if the group has another that goes first.
    fn yield_victim(&mut self, media: &mut Media, ftl: &mut dyn Ftl, job: &Job, group: u32) -> bool {
        let Some(design) = ftl.own_collection() else { return false };
        if !design.has_empty_victim(media, group) {
            return false;
        }
        media.pool.put_back(job.victim);
        if job.cause == Cause::Retirement {
            self.retiring[group as usize].push(job.victim);
        } else {
            design.put_back(job.victim);
        }
        self.jobs[group as usize] = None;
        media.host_pace.job_ends(group);
        true
    }

    /// A relocation of a group's job is on flash.
    pub(crate) fn relocated(&mut self, media: &mut Media, ftl: &mut dyn Ftl, group: u32) {
        assert!(self.in_flight[group as usize] > 0, "a relocation of group {group} ended, and none was in flight");
        self.in_flight[group as usize] -= 1;
        // Refill in halves: half as many calls, and neighbours on other planes find each other.
        if self.in_flight[group as usize] <= self.in_flight_most / 2 {
            self.pump(media, ftl, group);
        }
    }

    /// Whether collection works at the host's pace now, and not until a threshold is reached.
    fn keeps_pace(&self, media: &Media) -> bool {
        self.is_paced(media) && !self.background && !self.draining && !self.urgent && !media.log_waits
    }

    /// Relocations of a job that may start now.
    fn may_start(&self, media: &Media, group: u32, job: &Job) -> u32 {
        if !media.flash.timed() {
            return u32::MAX;
        }
        let in_flight = self.in_flight[group as usize];
        let most = self.in_flight_most.saturating_sub(in_flight);
        if !self.keeps_pace(media) || job.cause != Cause::Gc {
            return media.whole_rows(group, most);
        }
        let paced = self.pace(media, group).relocations;
        let whole = media.whole_rows(group, paced);
        // Less than a row is moved as a row, so that planes program together, if nothing else is in flight.
        let row = media.pool.superblocks.together();
        let rounded = if whole == 0 && paced > 0 && in_flight == 0 { row } else { whole };
        rounded.max(u32::from(media.pool.valid(job.victim) == 0))
    }

    /// Decides how far the host may go on in a group.
    fn update_host_quota(&self, media: &mut Media, group: u32) {
        let allowed = if self.keeps_pace(media) { self.pace(media, group).host_pages } else { u32::MAX };
        media.allow_host(group, allowed);
    }

    /// Headroom of all groups, in pages.
    pub(crate) fn headroom_pages(&self, media: &Media) -> u64 {
        (0..media.pool.groups()).map(|group| u64::from(self.space(media, group).headroom())).sum()
    }

    /// What a group may do now.
    fn pace(&self, media: &Media, group: u32) -> Pace {
        pacing::pace(&self.space(media, group), self.in_flight[group as usize], self.in_flight_most)
    }

    /// A group's space, as pacing sees it.
    fn space(&self, media: &Media, group: u32) -> Space {
        let (valid, left) = match self.jobs[group as usize] {
            Some(Job { victim, cause: Cause::Gc, valid_pages, .. }) => (valid_pages, pages_needed(media, victim)),
            _ => (0, 0),
        };
        Space {
            block_pages: media.data_pages_per_superblock(),
            slack: LAG_PAGES * media.pool.superblocks.width(),
            empty_pages: media.empty_pages(group),
            keep_free: self.config.free_blocks - 1,
            frontiers: media.open_frontiers(group),
            host_is_blocked: media.host_is_blocked(group),
            victim_valid: valid,
            victim_left: left,
        }
    }

    fn begin(&mut self, media: &mut Media, ftl: &mut dyn Ftl, group: u32) -> Option<Job> {
        if self.draining {
            return None;
        }
        let (victim, cause) = self.choose(media, ftl, group)?;
        let valid_pages = pages_needed(media, victim);
        assert!(self.jobs[group as usize].is_none(), "group {group} empties {victim} beside another block");
        assert_eq!(media.pool.group_of(victim), group, "victim {victim} is of another group");
        media.pool.collect(victim);
        if self.is_paced(media) {
            // A retired block does not come back.
            media.pace_job_begins(group, victim, cause != Cause::Retirement);
        }
        let list = if media.lists_owners() { VictimList::Unread } else { VictimList::Known };
        let job = Job { victim, cursor: 0, cause, valid_pages, list };
        self.jobs[group as usize] = Some(job);
        Some(job)
    }

    fn choose(&mut self, media: &mut Media, ftl: &mut dyn Ftl, group: u32) -> Option<(u32, Cause)> {
        let retiring = &mut self.retiring[group as usize];
        // A retired block gives nothing back: a block's room must be left to collect with.
        let left = media.data_pages_per_superblock();
        let fits = |media: &Media, block: u32| match media.own_blocks {
            true => media.free_blocks() > 0,
            false => match media.pool.kind(block) {
                BlockKind::Map => pages_needed(media, block) <= media.map_pages_left(group),
                BlockKind::Log => pages_needed(media, block) <= media.log_pages_left_in(group),
                BlockKind::Data => pages_needed(media, block) + left <= media.relocation_room(group),
            },
        };
        let closed = |block: &u32| media.pool.state(*block) == BlockState::Closed && fits(media, *block);
        let mut design = if media.own_blocks { ftl.own_collection() } else { None };
        let mut may_go = |block: &u32| design.as_mut().is_none_or(|design| design.may_retire(media, BlockId(*block)));
        if let Some(index) = retiring.iter().position(|block| closed(block) && may_go(block)) {
            return Some((retiring.swap_remove(index), Cause::Retirement));
        }
        if media.own_blocks {
            let design = ftl.own_collection()?;
            let victim = design.next_victim(media, group, self.background)?;
            let cause = design.cause_of(victim);
            if cause == Cause::WearLevelling {
                self.victims[2] += 1;
            } else {
                self.victims[0] += 1;
                self.valid_in_victims += u64::from(media.pool.valid(victim));
            }
            return Some((victim, cause));
        }
        let wanted = if self.background {
            self.config.free_blocks.max(self.config.background_free_blocks)
        } else {
            self.config.free_blocks
        };
        let free = media.pool.free_or_erasing(group);
        let paced = self.filling || self.keeps_pace(media);
        let enough = if paced { self.space(media, group).owed() == 0 } else { free >= wanted };
        if enough {
            return None;
        }
        if let Some(cold) = self.cold_block(media, group) {
            self.victims[2] += 1;
            return Some((cold, Cause::WearLevelling));
        }
        let in_a_row = self.full_in_a_row[group as usize];
        let named = choice::ask(&mut *self.policy, media, group);
        self.declined[group as usize] = named.is_none();
        let pick = choice::pick(media, group, named?, in_a_row, self.urgent)?;
        if pick.full && paced && free >= self.config.free_blocks {
            // Ahead of need collection takes what gives something; `choice` shows that a round of full blocks ends below.
            return None;
        }
        let victim = pick.block;
        self.full_in_a_row[group as usize] = if pick.full { in_a_row.saturating_add(1) } else { 0 };
        self.full_victims += u64::from(pick.full);
        self.guarded_victims += u64::from(pick.guarded);
        self.victims[usize::from(!paced && free >= self.config.free_blocks)] += 1;
        self.valid_in_victims += u64::from(media.pool.valid(victim));
        self.empty_pages += u64::from(media.empty_pages(group));
        let since = &mut self.victims_since_wear_move[group as usize];
        *since = since.saturating_add(1);
        Some((victim, Cause::Gc))
    }

    /// The least worn closed superblock of a group, if its wear lags too far behind.
    fn cold_block(&mut self, media: &Media, group: u32) -> Option<u32> {
        let threshold = self.config.static_wear_threshold;
        if threshold == 0 || self.victims_since_wear_move[group as usize] < VICTIMS_PER_WEAR_MOVE {
            return None;
        }
        self.victims_since_wear_move[group as usize] = 0;
        let first = group * media.pool.per_group;
        let blocks = (first..first + media.pool.per_group).filter(|b| media.pool.state(*b) != BlockState::Bad);
        let most = blocks.clone().map(|block| media.pool.wear(block, &media.flash)).max()?;
        let is_data =
            |block: &u32| media.pool.state(*block) == BlockState::Closed && media.pool.kind(*block) == BlockKind::Data;
        let closed = blocks.filter(is_data);
        let (least, cold) = closed.map(|block| (media.pool.wear(block, &media.flash), block)).min()?;
        let room = choice::has_room_for(media, group, pages_needed(media, cold));
        (most - least > threshold && room).then_some(cold)
    }

    /// The victim is empty: its erase may follow. False when trims must be recorded first and there is no room.
    fn finish(&mut self, media: &mut Media, ftl: &mut dyn Ftl, victim: u32, group: u32) -> bool {
        let trimmed = media.pool.is_trimmed(victim) && !seeded(Bug::EraseBeforeTrimRecord);
        if trimmed && ftl.trims_pending() > 0 && !self.saves_trims(media, ftl, group) {
            return false;
        }
        media.pool.await_erase(victim);
        if trimmed && (!media.metadata.is_empty() || media.has_unlisted()) {
            media.pool.pin_superblock(victim);
            if media.metadata.is_empty() {
                media.unpin_when_listed([BlockId(victim)]);
            } else {
                self.await_metadata.push(victim);
            }
        }
        media.was_emptied(victim);
        if media.pool.pins(victim) == 0 {
            self.erase(media, victim);
        }
        true
    }

    /// Records of trims go to the group whose victim waits for them. Where power cuts have left that without a page and nothing goes on,
    /// they go to another that can spare one: without them the victim would never be free.
    fn saves_trims(&self, media: &mut Media, ftl: &mut dyn Ftl, group: u32) -> bool {
        let mut into = |media: &mut Media, group| ftl.save_trims(media, TrimTarget::Gc(group), Waiter::None).is_ok();
        into(media, group)
            || self.urgent
                && (0..media.pool.groups())
                    .any(|other| other != group && choice::has_room_for(media, other, 1) && into(media, other))
    }

    /// Records of trims are on flash: what waited for them need not wait any longer.
    pub(crate) fn metadata_done(&mut self, media: &mut Media) {
        assert!(media.metadata.is_empty(), "erases wait for records that are not on flash");
        for superblock in self.await_metadata.drain(..) {
            if media.has_unlisted() {
                media.unpin_when_listed([BlockId(superblock)]);
            } else if media.pool.unpin_superblock(superblock) {
                media.wakes.erasable.push(superblock);
            }
        }
    }

    /// Whether no group has a superblock in hand.
    pub(crate) fn is_idle(&self) -> bool {
        self.jobs.iter().all(Option::is_none)
            && self.retiring.iter().all(Vec::is_empty)
            && self.await_metadata.is_empty()
    }

    /// Superblocks whose erase waits for records of trims.
    pub(crate) fn waiting_for_records(&self) -> usize {
        self.await_metadata.len()
    }

    /// Starts the erase of all members of an empty superblock that nothing pins; a member in which a program failed goes
    /// bad instead.
    pub(crate) fn erase(&mut self, media: &mut Media, superblock: u32) {
        assert_eq!(media.pool.pins(superblock), 0, "block {superblock} is erased only when nothing pins it");
        if self.erases_in_flight[superblock as usize] > 0 {
            // Its last pin went just before it was empty, and both were heard of.
            return;
        }
        let state = media.pool.state(superblock);
        assert_eq!(state, BlockState::Erasing, "block {superblock} is erased only when it was emptied");
        let valid = media.pool.valid(superblock);
        assert_eq!(valid, 0, "block {superblock} is erased, and {valid} units of it are valid");
        let alone = media.pool.superblocks.width() == 1;
        let is_map = media.pool.is_map_block(superblock);
        let cause = if is_map { Cause::Mapping } else { self.emptied_for[superblock as usize] };
        for block in media.pool.superblocks.members(superblock) {
            let state = *media.flash.blocks.get(block);
            if state.suspect && !seeded(Bug::BadBlockUsed) {
                self.grow_bad(media, block);
            } else if !alone && state.programmed == 0 && !state.torn {
                // The power went when others of the superblock had been erased, or it was given up early.
            } else if !media.flash.timed() {
                if media.flash.execute(OpKind::Erase, cause, block, 0) {
                    self.grow_bad(media, block);
                }
            } else {
                let submit = Submit {
                    kind: OpKind::Erase,
                    cause,
                    class: Class::Erase,
                    block,
                    page: 0,
                    source: Ppn::NONE,
                    bytes: 0,
                    token: Waiter::None.pack(),
                    pin: BlockId::NONE,
                    waits_for: 0,
                };
                self.erases_in_flight[superblock as usize] += 1;
                self.erase_sent[superblock as usize] = media.now;
                media.issue(submit);
            }
        }
        if self.erases_in_flight[superblock as usize] == 0 {
            self.all_erased(media, superblock);
        }
    }

    /// The erase of a block has ended. If that was the last member of its superblock, it is free, and the answer is when its
    /// erase was asked for.
    pub(crate) fn erased(&mut self, media: &mut Media, block: BlockId, failed: bool) -> Option<Nanos> {
        let superblock = media.pool.superblocks.of(block);
        assert_ne!(superblock, NONE, "block {block} was erased, and is in no superblock");
        assert!(self.erases_in_flight[superblock as usize] > 0, "block {block} was erased, and was not asked for");
        self.erases_in_flight[superblock as usize] -= 1;
        if failed {
            self.grow_bad(media, block);
        }
        let in_flight = self.erases_in_flight[superblock as usize];
        let first = in_flight + 1 == media.pool.superblocks.width();
        let last = if seeded(Bug::FreeAtFirstErase) { first } else { in_flight == 0 };
        if last {
            self.all_erased(media, superblock);
        }
        last.then_some(self.erase_sent[superblock as usize])
    }

    /// A superblock is erased as far as its members are good: it is free again, with substitutes for those that are not.
    fn all_erased(&mut self, media: &mut Media, superblock: u32) {
        let good = media.pool.is_good(superblock, &media.flash);
        let wear = media.pool.wear(superblock, &media.flash);
        let group = media.pool.group_of(superblock);
        if media.pool.is_retiring(superblock) {
            self.retiring[group as usize].retain(|other| *other != superblock);
        }
        if good && !seeded(Bug::FreeAtFirstErase) {
            assert_eq!(media.programmed(superblock), 0, "block {superblock} is free again, and has written pages");
        }
        media.pool.erased(superblock, wear, good);
        media.forget_lists(superblock);
        if !good {
            media.pool.mend(group, &mut media.flash);
        }
        if cfg!(debug_assertions) {
            media.pool.audit(group);
        }
    }

    fn grow_bad(&mut self, media: &mut Media, block: BlockId) {
        assert!(!media.flash.blocks.get(block).bad, "block {block} goes bad twice");
        media.flash.retire(block);
        media.pool.superblocks.remove(block);
        self.grown_bad += 1;
    }
}

/// Pages that the valid units of a superblock fill.
fn pages_needed(media: &Media, block: u32) -> u32 {
    let (valid, units) = (media.pool.valid(block), media.data_units_per_superblock());
    debug_assert!(valid <= units, "{valid} units of block {block} are valid, of {units}");
    valid.div_ceil(media.units_per_page)
}
