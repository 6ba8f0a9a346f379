//! Which lines of the map are cached, in the order in which they were used last.

use ssdlab_flash::NONE;

/// A list of lines, the one used last in front; all steps take constant time.
pub(super) struct Lru {
    /// By line: its neighbours; a line that is not in the list is its own.
    links: Vec<Links>,
    head: u32,
    tail: u32,
    len: u32,
}

#[derive(Clone, Copy)]
struct Links {
    before: u32,
    behind: u32,
}

/// Bytes of a line's neighbours.
pub(super) const LINK_BYTES: usize = size_of::<Links>();

/// A line that is in no list.
const OUT: Links = Links { before: NONE - 1, behind: NONE - 1 };

impl Lru {
    pub(super) fn new(lines: u32) -> Lru {
        Lru { links: vec![OUT; lines as usize], head: NONE, tail: NONE, len: 0 }
    }

    pub(super) const fn len(&self) -> u32 {
        self.len
    }

    #[inline]
    pub(super) fn contains(&self, line: u32) -> bool {
        self.links[line as usize].before != OUT.before
    }

    /// A line is used.
    #[inline]
    pub(super) fn touch(&mut self, line: u32) {
        if self.head != line {
            self.remove(line);
            self.insert(line);
        }
    }

    /// A line that was not in the list is used.
    pub(super) fn insert(&mut self, line: u32) {
        debug_assert!(!self.contains(line), "line {line} is cached twice");
        self.links[line as usize] = Links { before: NONE, behind: self.head };
        match self.head {
            NONE => self.tail = line,
            head => self.links[head as usize].before = line,
        }
        self.head = line;
        self.len += 1;
    }

    /// A line that had just left comes back as the one that was used longest ago.
    pub(super) fn insert_oldest(&mut self, line: u32) {
        debug_assert!(!self.contains(line), "line {line} is cached twice");
        self.links[line as usize] = Links { before: self.tail, behind: NONE };
        match self.tail {
            NONE => self.head = line,
            tail => self.links[tail as usize].behind = line,
        }
        self.tail = line;
        self.len += 1;
    }

    pub(super) fn remove(&mut self, line: u32) {
        let Links { before, behind } = self.links[line as usize];
        assert!(self.contains(line), "line {line} is dropped, and is not cached");
        match before {
            NONE => self.head = behind,
            before => self.links[before as usize].behind = behind,
        }
        match behind {
            NONE => self.tail = before,
            behind => self.links[behind as usize].before = before,
        }
        self.links[line as usize] = OUT;
        self.len -= 1;
    }

    /// From the line that was used longest ago.
    pub(super) fn oldest_first(&self) -> impl Iterator<Item = u32> {
        let next = |line: &u32| Some(self.links[*line as usize].before).filter(|line| *line != NONE);
        std::iter::successors(Some(self.tail).filter(|line| *line != NONE), next)
    }

    pub(super) fn clear(&mut self) {
        self.links.fill(OUT);
        (self.head, self.tail, self.len) = (NONE, NONE, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::Lru;
    use proptest::prelude::*;

    proptest! {
        /// Against a list that is searched.
        #[test]
        fn the_order_is_that_of_use(steps in prop::collection::vec((0u32..12, any::<bool>()), 0..300)) {
            let mut lru = Lru::new(12);
            let mut model: Vec<u32> = Vec::new();
            for (page, drop) in steps {
                prop_assert_eq!(lru.contains(page), model.contains(&page));
                match (model.iter().position(|other| *other == page), drop) {
                    (Some(at), true) => {
                        model.remove(at);
                        lru.remove(page);
                    }
                    (Some(at), false) => {
                        model.remove(at);
                        model.push(page);
                        lru.touch(page);
                    }
                    (None, _) => {
                        model.push(page);
                        lru.insert(page);
                    }
                }
                prop_assert_eq!(lru.oldest_first().collect::<Vec<u32>>(), model.clone());
                prop_assert_eq!(lru.len() as usize, model.len());
            }
        }
    }
}
