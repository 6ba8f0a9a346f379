//! Append-only segments beside a page map: the same sequential writes, and overwrites through a host that appends, in turns.

use ssdlab_base::{Op, Request, rng};
use ssdlab_device::{DriveConfig, Options};
use ssdlab_flash::Contents;
use ssdlab_host::{Host, Member};

use crate::{Figure, age, config, drive, keep_better, measure, random, resident_bytes};

/// Requests of 128 KiB: 8 GiB.
const REQUESTS: u64 = 65_536;
/// Sectors of one.
const SECTORS: u64 = 256;
/// Fresh drives of each design.
const TURNS: usize = 5;

/// Segments that the drive has for the host: of 512 blocks a plane it keeps some for those that go bad.
const SEGMENTS: u64 = 504;
/// Overwrites of one turn.
const OVERWRITES: u64 = 1_000_000;

/// 128 KiB writes to a fresh drive with a page map, and the same as appends; then 4 KiB overwrites of a full drive, cleaned by the
/// drive and by the host.
pub(crate) fn segment_figures() -> Vec<Figure> {
    let page = config("bench-32g", &[]);
    let segment = u64::from(page.flash.geometry.planes()) * u64::from(page.flash.geometry.pages_per_block) * 4096;
    let aftl = segmented(page.user_bytes / segment * segment);
    let names = ["segments: 128k sequential writes, page", "segments: 128k appends, aftl"];
    let mut best: [Option<Figure>; 2] = [None, None];
    for _ in 0..TURNS {
        for (index, config) in [&page, &aftl].into_iter().enumerate() {
            let mut drive = drive(config);
            let next = |number: u64| Request::new(Op::Write, number * SECTORS, SECTORS);
            keep_better(&mut best[index], measure(names[index], &mut drive, REQUESTS, true, next));
        }
    }
    best.into_iter().flatten().chain(overwrites(&page, &segmented(SEGMENTS * segment))).collect()
}

/// The drive `bench-32g` with the design `aftl`, all planes to write to, and so many bytes for the user.
fn segmented(user: u64) -> DriveConfig {
    let sets = [
        "ftl.design=aftl",
        "ftl.segment_levels=planes",
        "ftl.superblock=none",
        "ftl.allocation=dynamic",
        "gc.pacing=off",
        "buffer.policy=none",
    ];
    let capacity = format!("capacity.user={user}");
    config("bench-32g", &[&sets[..], &[&capacity]].concat())
}

fn overwrites(page: &DriveConfig, aftl: &DriveConfig) -> Vec<Figure> {
    let names = ["segments: 4k overwrites, page", "segments: 4k overwrites, append over aftl"];
    let options = Options { seed: 1, contents: Contents::Nothing };
    // All of the flash but the drive's reserve is the layer's: at this share it copies as much as the drive of the line above.
    let host = Host::parse("[[layer]]\nkind = \"append\"\nover_provisioning = \"10%\"\n", "bench").expect("a host");
    let before = resident_bytes();
    let member = Member::of("bench", drive(aftl), options);
    let mut append = host.build(vec![member]).expect("a stack");
    age(&mut *append);
    let units = aftl.user_bytes / u64::from(aftl.ftl.mapping_unit);
    let value = (resident_bytes() - before) as f64 / units as f64;
    let detail = "resident, ageing included".to_string();
    let memory = Figure { name: "segments: memory, append over aftl", value, unit: "bytes/unit", detail };
    let mut page = Member::alone(drive(page), options);
    age(&mut *page);
    let mut devices = [page, append];
    let mut rngs = [rng(1, "page"), rng(1, "append")];
    let mut best: [Option<Figure>; 2] = [None, None];
    for _ in 0..2 {
        for (index, device) in devices.iter_mut().enumerate() {
            let pages = device.sectors() / 8;
            let next = |_| random(&mut rngs[index], Op::Write, pages);
            keep_better(&mut best[index], measure(names[index], &mut **device, OVERWRITES, true, next));
        }
    }
    best.into_iter().flatten().chain([memory]).collect()
}
