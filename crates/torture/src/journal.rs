//! The oracle of a run without power cuts: an array of sectors, changed by commands in the order they took effect.

use std::collections::HashMap;

use ssdlab_base::{Op, Request};
use ssdlab_device::{Completion, Status, sector_stamp};

/// The stamps of sectors that were read.
pub fn stamps(cells: &[u8]) -> Vec<u64> {
    let (cells, _) = cells.as_chunks::<8>();
    cells.iter().map(|cell| u64::from_le_bytes(*cell)).collect()
}

/// What was asked, and what came back.
#[derive(Default)]
pub struct Journal {
    /// By tag.
    pub asked: HashMap<u32, (Request, u64)>,
    /// In order of completion.
    pub completed: Vec<Completion>,
    /// By tag.
    pub read: HashMap<u32, Vec<u64>>,
}

impl Journal {
    /// Takes what a drive says out of it.
    pub fn take(&mut self, completions: &mut Vec<Completion>, read: &mut Vec<(u32, Vec<u8>)>) {
        self.completed.append(completions);
        for (tag, cells) in read.drain(..) {
            assert!(self.read.insert(tag, stamps(&cells)).is_none(), "tag {tag} was read twice");
        }
    }

    /// Every command completed once; every read saw exactly what the commands before it left. Returns the sectors.
    pub fn replay(&self, sectors: u64) -> Vec<u64> {
        assert_eq!(self.completed.len(), self.asked.len(), "every command completes exactly once");
        let mut order: Vec<&Completion> = self.completed.iter().collect();
        order.sort_by_key(|completion| completion.order);
        let mut cells = vec![0_u64; sectors as usize];
        let mut seen = std::collections::HashSet::new();
        for (index, completion) in order.into_iter().enumerate() {
            assert_eq!(completion.order, index as u64, "orders count from 0 without a gap");
            assert!(seen.insert(completion.tag), "tag {} completed twice", completion.tag);
            let (request, stamp) = &self.asked[&completion.tag];
            assert_eq!(request.op, completion.op);
            assert!(completion.at >= completion.submitted, "a command ends after it arrives");
            if request.sector.checked_add(request.sectors).is_none_or(|end| end > sectors) {
                assert_eq!(completion.status, Status::OutOfRange, "{request:?}");
                continue;
            }
            assert_eq!(completion.status, Status::Success, "{request:?}");
            let range = request.sector as usize..request.end() as usize;
            match request.op {
                Op::Write => {
                    for sector in range {
                        cells[sector] = sector_stamp(*stamp, sector as u64);
                    }
                }
                Op::Trim | Op::WriteZeroes => cells[range].fill(0),
                Op::Flush => {}
                Op::Read if request.sectors == 0 => {}
                Op::Read => {
                    let found = self.read.get(&completion.tag).expect("a read brings data");
                    assert_eq!(found.len(), range.len(), "a read brings as much as was asked for");
                    for (sector, found) in range.zip(found) {
                        assert_eq!(
                            *found, cells[sector],
                            "sector {sector} read by {request:?} in place {} of the order",
                            completion.order
                        );
                    }
                }
            }
        }
        cells
    }
}
