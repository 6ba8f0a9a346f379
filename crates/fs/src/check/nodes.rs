//! What the walk knows of each node, in 3 bits, and where each node is: what the inode map says, read again when it is needed.

use std::collections::BTreeMap;

use super::decode::{Shape, word};

/// What the walk knows of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// The inode map has no place for it, or none that can be.
    Absent,
    /// It has a place.
    Placed,
    /// It is an index block that belongs to an inode.
    Reached,
    /// It is the inode of a file, without a name up to now.
    File,
    /// It is the inode of a file that has a name.
    NamedFile,
    /// It is the inode of a directory, without a name up to now.
    Directory,
    /// It is the inode of a directory that has a name.
    NamedDirectory,
    /// It is the inode of a directory, and the names to it begin at the root.
    LeadsUp,
}

const STATES: [State; 8] = [
    State::Absent,
    State::Placed,
    State::Reached,
    State::File,
    State::NamedFile,
    State::Directory,
    State::NamedDirectory,
    State::LeadsUp,
];

impl State {
    pub(super) const fn is_directory(self) -> bool {
        matches!(self, State::Directory | State::NamedDirectory | State::LeadsUp)
    }

    pub(super) const fn is_file(self) -> bool {
        matches!(self, State::File | State::NamedFile)
    }

    pub(super) const fn is_named(self) -> bool {
        matches!(self, State::NamedFile | State::NamedDirectory | State::LeadsUp)
    }
}

/// The states of all nodes: a plane for each bit.
pub(super) struct Nodes {
    planes: [Vec<u64>; 3],
    count: u32,
}

impl Nodes {
    pub(super) fn new(count: u32) -> Nodes {
        Nodes { planes: std::array::from_fn(|_| vec![0; count as usize / 64 + 1]), count }
    }

    pub(super) fn get(&self, number: u32) -> State {
        if number >= self.count {
            return State::Absent;
        }
        let bit = |plane: usize| (self.planes[plane][number as usize / 64] >> (number % 64) & 1) as usize;
        STATES[bit(0) | bit(1) << 1 | bit(2) << 2]
    }

    pub(super) fn set(&mut self, number: u32, state: State) {
        for (plane, words) in self.planes.iter_mut().enumerate() {
            let mask = 1 << (number % 64);
            let word = &mut words[number as usize / 64];
            *word = if (state as usize) >> plane & 1 == 1 { *word | mask } else { *word & !mask };
        }
    }

    /// The next node from a number on that has a place.
    pub(super) fn next(&self, from: u32) -> Option<u32> {
        let mut number = from;
        while number < self.count {
            let word = number as usize / 64;
            let any = self.planes.iter().fold(0, |any, plane| any | plane[word]) >> (number % 64);
            if any != 0 {
                return Some(number + any.trailing_zeros()).filter(|number| *number < self.count);
            }
            number = (number / 64 + 1) * 64;
        }
        None
    }
}

/// Blocks of the inode map that are kept.
const KEPT: usize = 256;

/// Where blocks of the inode map are, and some of them.
pub(super) struct Map {
    /// By block of the map; 0 where there is none that can be.
    pub(super) table: Vec<u32>,
    kept: Vec<Option<(u32, Box<[u32; 512]>)>>,
    /// Nodes whose place the check-point says in place of the map.
    pub(super) journaled: BTreeMap<u32, u32>,
}

impl Map {
    pub(super) fn new(shape: &Shape) -> Map {
        Map { table: vec![0; shape.nodes.div_ceil(512) as usize], kept: vec![None; KEPT], journaled: BTreeMap::new() }
    }

    /// The place of a node, if its block of the map is kept.
    pub(super) fn kept(&self, number: u32) -> Option<u32> {
        let part = number / 512;
        let (of, places) = self.kept[part as usize % KEPT].as_ref()?;
        (*of == part).then(|| places[number as usize % 512])
    }

    /// Keeps a block of the map that was read.
    pub(super) fn keep(&mut self, part: u32, bytes: &[u8]) {
        let mut places: Box<[u32; 512]> = Box::new(std::array::from_fn(|entry| word(bytes, 8 * entry + 4)));
        for (number, place) in self.journaled.range(part * 512..(part + 1) * 512) {
            places[*number as usize % 512] = *place;
        }
        self.kept[part as usize % KEPT] = Some((part, places));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_kept_apart_and_found_in_order() {
        let mut nodes = Nodes::new(1000);
        for (index, state) in STATES.into_iter().enumerate() {
            nodes.set(index as u32 * 130 + 1, state);
        }
        for (index, state) in STATES.into_iter().enumerate() {
            assert_eq!(nodes.get(index as u32 * 130 + 1), state);
        }
        let mut found = Vec::new();
        let mut from = 0;
        while let Some(number) = nodes.next(from) {
            found.push(number);
            from = number + 1;
        }
        assert_eq!(found, [131, 261, 391, 521, 651, 781, 911]);
        nodes.set(131, State::Absent);
        assert_eq!((nodes.next(0), nodes.get(131), nodes.get(5000)), (Some(261), State::Absent, State::Absent));
    }
}
