//! A map that is on flash: what waits for map pages, and how it goes on.

use std::ops::Range;

use ssdlab_base::Nanos;
use ssdlab_flash::{Done, Lpn, OpKind};

use super::Drive;
use super::dispatch::Stall;
use crate::ftl::CachedMap;
use crate::media::{Media, Place};
use crate::waiter::Waiter;

impl Drive {
    fn cached_map(&mut self) -> &mut dyn CachedMap {
        self.ftl.cached_map().expect("the map of this design is cached")
    }

    /// Whether what maps `lpns` is cached; else `waiter` is told when it is.
    #[inline]
    pub(super) fn ask_for_map(&mut self, waiter: Waiter, lpns: &[Lpn]) -> Result<(), Stall> {
        if self.caches_map { self.ask_for_cached(waiter, lpns) } else { Ok(()) }
    }

    /// Whether what maps `lpns` is cached, before they are written to one page; else `waiter` is told when it is.
    /// Without a page for them nothing is asked for: `Stall::NoSpace`.
    #[inline]
    pub(super) fn ask_for_map_to_write(&mut self, waiter: Waiter, lpns: &[Lpn], stream: u16) -> Result<(), Stall> {
        if !self.caches_map {
            return Ok(());
        }
        let map = self.ftl.cached_map().expect("the map of this design is cached");
        if !map.has_page_for(&self.media, lpns[0], stream) {
            return Err(Stall::NoSpace);
        }
        self.ask_for_cached(waiter, lpns)
    }

    /// Whether what maps `units`, of one segment, is cached, before they are trimmed; else `waiter` is told when it is.
    #[inline]
    pub(super) fn ask_for_map_to_trim(&mut self, waiter: Waiter, units: Range<Lpn>) -> Result<(), Stall> {
        if !self.caches_map {
            return Ok(());
        }
        self.ask_until_cached(|map, media| map.request_range(media, waiter, units.clone()))
    }

    #[inline(never)]
    fn ask_for_cached(&mut self, waiter: Waiter, lpns: &[Lpn]) -> Result<(), Stall> {
        self.ask_until_cached(|map, media| map.request(media, waiter, lpns))
    }

    fn ask_until_cached(&mut self, ask: impl Fn(&mut dyn CachedMap, &mut Media) -> bool) -> Result<(), Stall> {
        loop {
            let map = self.ftl.cached_map().expect("the map of this design is cached");
            if ask(map, &mut self.media) {
                return Ok(());
            }
            if self.media.flash.timed() || self.media.wakes.erasable.is_empty() {
                return Err(Stall::Map);
            }
            // Without time a map block is erased as soon as a waiter waits for it.
            self.erase_emptied_superblocks();
        }
    }

    /// Units are about to leave the write buffer.
    #[inline]
    pub(super) fn load_map_ahead(&mut self, lpns: &[Lpn]) {
        if self.caches_map && self.media.flash.timed() {
            let map = self.ftl.cached_map().expect("the map of this design is cached");
            map.load_ahead(&mut self.media, lpns);
        }
    }

    /// A command cannot take effect: it waits for map pages from now on, or for something else.
    pub(super) fn map_wait_begins(&mut self, command: u32, why: Stall) {
        let since = if why == Stall::Map { self.media.now } else { Nanos::MAX };
        match self.waiting.since_for_map.get_mut(&command) {
            Some(before) => {
                let before = std::mem::replace(before, since);
                self.add_map_wait(before);
            }
            None if why == Stall::Map => {
                self.waiting.since_for_map.insert(command, since);
                self.map_waits.commands += 1;
            }
            None => {}
        }
    }

    /// A command takes effect, or is refused.
    #[inline]
    pub(super) fn map_wait_ends(&mut self, command: u32) {
        if !self.waiting.since_for_map.is_empty()
            && let Some(since) = self.waiting.since_for_map.remove(&command)
        {
            self.add_map_wait(since);
        }
    }

    fn add_map_wait(&mut self, since: Nanos) {
        if since != Nanos::MAX {
            let now = self.media.now;
            assert!(since <= now, "a command waits for map pages since {since}, and it is {now}");
            self.map_waits.time += self.media.now.since(since);
        }
    }

    /// The first unit behind those that are looked up together with `lpn`.
    pub(super) fn map_reach(&mut self, lpn: Lpn) -> Lpn {
        self.cached_map().reach(lpn)
    }

    /// Pages that ended together are on flash: the map hears of all before anything else begins, since a command that goes on
    /// after one of them may rename what is in another.
    #[inline]
    pub(super) fn data_is_on_flash(&mut self, done: &[Done]) {
        if !self.caches_map {
            return;
        }
        let map = self.ftl.cached_map().expect("the map of this design is cached");
        for done in done {
            if matches!(done.kind, OpKind::Program | OpKind::Copyback) && !done.failed {
                debug_assert!(
                    self.media.flash.is_written(done.block, done.page),
                    "the program of block {} page {} ended, and the page is not written",
                    done.block,
                    done.page
                );
                map.settled(&mut self.media, Place { block: done.block, page: done.page });
            }
        }
    }

    /// What waited for a page of data that is on flash now goes on.
    #[inline]
    pub(super) fn resume_settled(&mut self) {
        if self.caches_map {
            let map = self.ftl.cached_map().expect("the map of this design is cached");
            map.resume_settled(&mut self.media);
        }
    }

    /// A read or a program of the map has ended.
    pub(super) fn map_served(&mut self, op: u32) {
        let map = self.ftl.cached_map().expect("an operation of the map is of one that is cached");
        map.served(&mut self.media, op);
    }

    /// A program of the map failed.
    pub(super) fn map_program_failed(&mut self, op: u32) {
        let map = self.ftl.cached_map().expect("an operation of the map is of one that is cached");
        map.program_failed(&mut self.media, op);
    }

    /// A program of the map failed, and there is no other page for it.
    pub(super) fn map_given_up(&mut self, op: u32) {
        let map = self.ftl.cached_map().expect("an operation of the map is of one that is cached");
        map.given_up(&mut self.media, op);
    }

    fn cached_map_has_room(&mut self) {
        let map = self.ftl.cached_map().expect("the map of this design is cached");
        map.on_slot_free(&mut self.media);
        if self.media.metadata.is_empty() {
            self.metadata_ended();
        }
    }

    /// Superblocks were erased: what waits for one goes on.
    pub(super) fn map_goes_on(&mut self) {
        if self.caches_map {
            let map = self.ftl.cached_map().expect("the map of this design is cached");
            map.resume(&mut self.media);
            if self.media.metadata.is_empty() {
                self.metadata_ended();
            }
        }
    }

    /// The drive takes no more writes: those that wait for map pages hear of it, and reads find a place for theirs.
    pub(super) fn map_is_read_only(&mut self) {
        if !self.caches_map {
            return;
        }
        self.cached_map().set_read_only();
        let waiting: Vec<u32> = self.waiting.stalled.for_map().collect();
        for command in waiting {
            self.retry_for_map(command, Waiter::Command(command));
        }
        self.map_goes_on();
        self.serve_map_waiters();
    }

    /// A command took effect, or was refused and has not used what it waited for.
    #[inline]
    pub(super) fn forget_command(&mut self, command: u32) {
        if self.caches_map {
            self.forget_waiter(Waiter::Command(command));
            self.forget_waiter(Waiter::Read(command));
        }
    }

    /// A command asks for no map page any more.
    pub(super) fn forget_waiter(&mut self, waiter: Waiter) {
        if self.caches_map {
            let map = self.ftl.cached_map().expect("the map of this design is cached");
            map.forget(&mut self.media, waiter);
        }
    }

    /// A waiter whose map pages are all cached had its turn: it asks again when it needs them.
    pub(super) fn forget_waiter_served(&mut self, waiter: Waiter) {
        if let Some(map) = self.ftl.cached_map() {
            map.forget_served(&mut self.media, waiter);
        }
    }

    /// Waiters for map pages that are cached now go on, in the order in which they came.
    pub(super) fn serve_map_waiters(&mut self) {
        while self.media.wakes.is_for_map() {
            self.media.wakes.space_freed |= std::mem::take(&mut self.media.wakes.log_has_space);
            if std::mem::take(&mut self.media.wakes.map_block_closed) {
                self.map_goes_on();
            }
            if std::mem::take(&mut self.media.wakes.map_slot_free) {
                self.cached_map_has_room();
            }
            for waiter in std::mem::take(&mut self.media.wakes.map_waiters) {
                match waiter {
                    Waiter::Command(command) | Waiter::Read(command) => self.retry_for_map(command, waiter),
                    Waiter::Gc(group) => {
                        self.gc.pump(&mut self.media, &mut *self.ftl, group);
                        // The pace may not let it go on now, and others need the places.
                        self.forget_waiter_served(waiter);
                    }
                    Waiter::Log => self.cached_map_has_room(),
                    Waiter::Buffer => {
                        self.stage.destage_waits = false;
                        self.media.wakes.space_freed = true;
                    }
                    waiter => unreachable!("{waiter:?} asks for no map pages"),
                }
            }
        }
    }
}
