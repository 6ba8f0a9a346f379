//! Append-only segments beside a page map: the same sequential writes, in turns.

use ssdlab_base::{Op, Request};

use crate::{Figure, config, drive, measure};

/// Requests of 128 KiB: 8 GiB.
const REQUESTS: u64 = 65_536;
/// Sectors of one.
const SECTORS: u64 = 256;
/// Fresh drives of each design.
const TURNS: usize = 5;

/// 128 KiB writes to a fresh drive with a page map, and the same as appends.
pub(crate) fn segment_figures() -> Vec<Figure> {
    let page = config("bench-32g", &[]);
    // Both have all planes to write to.
    let common = [
        "ftl.design=aftl",
        "ftl.segment_levels=planes",
        "ftl.superblock=none",
        "ftl.allocation=dynamic",
        "gc.pacing=off",
        "buffer.policy=none",
    ];
    let (geometry, user) = (page.flash.geometry, page.user_bytes);
    let segment = u64::from(geometry.planes()) * u64::from(geometry.pages_per_block) * u64::from(geometry.page_bytes);
    let capacity = format!("capacity.user={}", user / segment * segment);
    let aftl = config("bench-32g", &[&common[..], &[&capacity]].concat());
    let names = ["segments: 128k sequential writes, page", "segments: 128k appends, aftl"];
    let mut best: [Option<Figure>; 2] = [None, None];
    for _ in 0..TURNS {
        for (index, config) in [&page, &aftl].into_iter().enumerate() {
            let mut drive = drive(config);
            let next = |number: u64| Request::new(Op::Write, number * SECTORS, SECTORS);
            let figure = measure(names[index], &mut drive, REQUESTS, true, next);
            if best[index].as_ref().is_none_or(|before| figure.value > before.value) {
                best[index] = Some(figure);
            }
        }
    }
    best.into_iter().flatten().collect()
}
