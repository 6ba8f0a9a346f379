//! What the nodes of an fsync say beside what they are, so that a mount finds them behind the newest check-point (F2FS, roll-forward
//! recovery).
//!
//! ```text
//!   fsync 7 of check-point 31:   index block   index block   inode
//!                                place 0 of 3  place 1 of 3  place 2 of 3, the name if the check-point has none
//! ```
//!
//! The nodes of an fsync follow each other in one log. A mount takes all of them, or none.

use super::inode::{DIRECT, INDEX, INODE, is_inode};
use super::{Bytes, get_u32, mend, open, put_u32, put_u64};

/// The fields of the header that say the version of the check-point.
const VERSION: usize = 24;
/// Where the mark is in an inode, and in an index block.
const IN_INODE: usize = 100;
const IN_INDEX: usize = 40;
/// Where the name is in an inode: its length, and its bytes.
const NAME: usize = 160 + 4 * DIRECT;

/// Which fsync a node belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mark {
    /// The version of the check-point that it follows.
    pub version: u64,
    /// Number of the fsync since that check-point, from 1.
    pub fsync: u32,
    /// Place of the node among those of the fsync, from 0.
    pub place: u32,
    /// How many nodes the fsync has.
    pub count: u32,
    /// The segment that the log takes behind the node, where the node is the last of its segment and no summary behind it says so; or 0.
    pub next: u32,
}

const fn at(is_inode: bool) -> usize {
    if is_inode { IN_INODE } else { IN_INDEX }
}

/// Marks a node that is encoded. An inode has a name where the check-point has none for it.
///
/// # Panics
/// The block is no node, or the name is longer than 255 bytes.
pub fn set(block: &mut Bytes, volume: u64, mark: Mark, name: Option<&[u8]>) {
    let is_inode = is_inode(block).expect("a node is marked");
    put_u64(block, VERSION, mark.version);
    for (index, field) in [mark.fsync, mark.place, mark.count, mark.next].into_iter().enumerate() {
        put_u32(block, at(is_inode) + 4 * index, field);
    }
    if let Some(name) = name.filter(|_| is_inode) {
        block[NAME] = u8::try_from(name.len()).expect("a name has at most 255 bytes");
        block[NAME + 1..=NAME + name.len()].copy_from_slice(name);
    }
    mend(block, volume);
}

/// The mark of a node that is whole and of this volume, with the number of the node; `None` if it has none.
pub fn of(block: &Bytes, volume: u64) -> Option<(Mark, u32)> {
    let is_inode = is_inode(block)?;
    let header = open(block, volume, if is_inode { INODE } else { INDEX }, "node").ok()?;
    let field = |index: usize| get_u32(block, at(is_inode) + 4 * index);
    let mark = Mark { version: header.version, fsync: field(0), place: field(1), count: field(2), next: field(3) };
    (mark.fsync > 0 && mark.place < mark.count).then_some((mark, header.a))
}

/// The name that an inode has with its mark.
pub fn name_of(block: &Bytes) -> Option<&[u8]> {
    let length = usize::from(block[NAME]);
    (length > 0).then(|| &block[NAME + 1..=NAME + length])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::FileKind;
    use crate::format::inode::{Index, Inode};
    use ssdlab_base::Nanos;

    #[test]
    fn a_mark_comes_back_with_its_node_and_its_name() {
        let mark = Mark { version: 1 << 40, fsync: 7, place: 1, count: 3, next: 77 };
        let mut inode = Inode::new(5, 9, FileKind::File, 1, Nanos(3));
        (0..DIRECT as u32).for_each(|block| inode.set_direct(block, block + 1));
        let plain = inode.encode(11, 4096);
        assert_eq!((of(&plain, 11), name_of(&plain)), (None, None));
        for name in [&b"a"[..], &[b'x'; 255][..]] {
            let mut block = plain.clone();
            set(&mut block, 11, mark, Some(name));
            assert_eq!((of(&block, 11), name_of(&block)), (Some((mark, 5)), Some(name)));
            assert_eq!(of(&block, 12), None);
            let decoded = Inode::decode(&block, 11, 5, 1 << 20).expect("it is an inode");
            assert_eq!(decoded, Inode { size: 4096, ..inode.clone() });
        }
        let mut index = Index::new(6, 5, 9, 1, DIRECT as u32);
        index.set(3, 99);
        let mut block = index.encode(11);
        set(&mut block, 11, mark, None);
        assert_eq!(of(&block, 11), Some((mark, 6)));
        assert_eq!(Index::decode(&block, 11, 6, 1 << 20), Ok(index));
    }
}
