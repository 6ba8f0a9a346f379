//! Requests for lines: a command or a job asks for those that it needs, and has them pinned until it uses them.

use super::super::page::PageFtl;
use super::MapCache;
use crate::media::Media;
use crate::waiter::Waiter;

impl MapCache {
    /// Whether all `lines` are cached, for [`super::CachedMap::request`]. They stay so until the next call; if they are
    /// not, they will be. The lines are distinct, and at most as many as the cache holds.
    pub(in crate::ftl) fn request(
        &mut self,
        data: &mut PageFtl,
        media: &mut Media,
        waiter: Waiter,
        lines: &[u32],
    ) -> bool {
        if self.jobs.is_empty() && lines.iter().all(|line| self.is_at_hand(waiter, *line)) {
            self.count(waiter, lines);
            self.use_all(lines);
            return true;
        }
        // A drive that takes no more writes programs nothing: no page is held back for that.
        if self.read_only && lines.iter().all(|line| self.lru.contains(*line)) {
            self.release_job(media, waiter);
            self.use_all(lines);
            return true;
        }
        if let Some(job) = self.jobs.of(waiter) {
            if job.lines == lines {
                if !job.granted || job.missing > 0 {
                    return false;
                }
                self.use_all(lines);
                self.release_job(media, waiter);
                return true;
            }
            self.release_job(media, waiter);
        }
        let (count, most) = (lines.len(), self.shape.capacity);
        assert!(count <= most as usize, "{waiter:?} asks for {count} lines of a cache for {most}");
        debug_assert!(lines.iter().max() < Some(&self.shape.lines()), "{waiter:?} asks for lines {lines:?} of the map");
        self.count(waiter, lines);
        if lines.iter().all(|line| self.is_at_hand(waiter, *line)) {
            self.use_all(lines);
            return true;
        }
        self.jobs.push(waiter, lines.to_vec());
        self.grant(data, media);
        // What was never programmed comes at once, and without time all does, unless a map block has to be erased first.
        let there = self.jobs.of(waiter).is_some_and(|job| job.granted && job.missing == 0);
        if there {
            media.wakes.map_waiters.retain(|other| *other != waiter);
            self.use_all(lines);
            self.release_job(media, waiter);
        }
        there
    }

    /// Ends the request of a waiter that uses now what it asked for, or asks no more. Its lines are unpinned; none of them leaves the
    /// cache within this call.
    pub(in crate::ftl) fn release_job(&mut self, media: &mut Media, waiter: Waiter) {
        let Some(job) = self.jobs.end(waiter) else { return };
        if job.granted {
            for line in job.lines {
                let pins = &mut self.lines[line as usize].pins;
                assert!(*pins > 0, "line {line} of the map is released, and is not pinned");
                *pins -= 1;
            }
        }
        media.wakes.map_slot_free = true;
    }

    /// The waiter's job ends as in [`MapCache::release_job`], if all that it asked for is cached.
    pub(in crate::ftl) fn release_served_job(&mut self, media: &mut Media, waiter: Waiter) {
        if self.jobs.of(waiter).is_some_and(|job| job.granted && job.missing == 0) {
            self.release_job(media, waiter);
        }
    }

    /// Jobs that fit are granted: what they lack is loaded.
    fn grant(&mut self, data: &mut PageFtl, media: &mut Media) {
        while let Some(job) = self.jobs.grant(self.shape.capacity) {
            let (waiter, count) = (self.jobs.job(job).waiter, self.jobs.job(job).lines.len());
            for index in 0..count {
                let line = self.jobs.job(job).lines[index];
                self.lines[line as usize].pins += 1;
                if self.is_at_hand(waiter, line) {
                    continue;
                }
                self.jobs.wait(job, line);
                if self.lru.contains(line) {
                    self.held_lines.entry(self.shape.page_of_line(line)).or_default().push(line);
                } else if !std::mem::replace(&mut self.lines[line as usize].loading, true) {
                    self.lines[line as usize].loaded_for = waiter.user();
                    self.waiting.push_back(line);
                }
            }
            if self.jobs.job(job).missing == 0 {
                media.wakes.map_waiters.push(waiter);
            }
            self.load_waiting(data, media);
        }
    }

    /// Whether a waiter can do with a line what it wants. What is held waits for data in flight, which may wait for a free
    /// block: so GC goes on.
    #[inline]
    fn is_at_hand(&self, waiter: Waiter, line: u32) -> bool {
        let waits = matches!(waiter, Waiter::Command(_) | Waiter::Buffer);
        self.lru.contains(line) && !(waits && self.pages[self.shape.page_of_line(line) as usize].held)
    }

    fn use_all(&mut self, lines: &[u32]) {
        for line in lines {
            debug_assert!(self.lru.contains(*line), "line {line} of the map is used, and is not cached");
            self.lru.touch(*line);
        }
    }

    fn count(&mut self, waiter: Waiter, lines: &[u32]) {
        let counters = self.counters.of(waiter.user());
        for line in lines {
            if std::mem::take(&mut self.lines[*line as usize].ahead) {
                continue;
            }
            if self.lru.contains(*line) {
                counters.hits += 1;
            } else {
                counters.misses += 1;
            }
        }
    }

    /// A waiter has used what was cached for it: others may have the places.
    pub(in crate::ftl) fn on_slot_free(&mut self, data: &mut PageFtl, media: &mut Media) {
        self.grant(data, media);
        self.load_waiting(data, media);
        if !self.log.is_at_rest() {
            self.flush_log(data, media);
        }
    }
}
