//! A drive that is resumed from a checkpoint goes on as the original does, and what an untimed drive does is the same
//! whichever of its ways it takes.

use std::io::ErrorKind;

use rand::RngExt;
use ssdlab_base::{Op, Request, Rng, rng};
use ssdlab_device::{Counters, Description, Drive, DriveConfig, Options, Superblock};
use ssdlab_flash::{Contents, OpKind};
use ssdlab_torture::configs;
use ssdlab_torture::driver::assert_checks;
use ssdlab_torture::seeds::{campaign, tell};

fn untimed(config: &DriveConfig, seed: u64, contents: Contents) -> Drive {
    let mut drive = Drive::new(config, Options { seed, contents }).expect("an accepted drive");
    drive.set_timed(false);
    drive
}

/// Random requests, each done before the next.
fn send(drive: &mut Drive, rng: &mut Rng, requests: u64, flushes: bool) {
    let sectors = drive.user_sectors();
    for _ in 0..requests {
        let sector = rng.random_range(0..sectors);
        let length = rng.random_range(1..=(sectors - sector).min(20));
        let request = match rng.random_range(0..40) {
            0 => Request::new(Op::Trim, sector, length),
            1 if flushes => Request::new(Op::Flush, 0, 0),
            2..5 => Request::new(Op::Read, sector, length),
            _ => Request { stream: rng.random_range(0..3), ..Request::new(Op::Write, sector, length) },
        };
        drive.submit(&request);
        assert_eq!(drive.outstanding(), 0, "without time a command is done at once");
        drive.completions().clear();
    }
}

fn since(drive: &Drive, earlier: &Counters) -> (ssdlab_flash::OpCounts, u64) {
    let counters = drive.counters();
    (counters.flash.since(&earlier.flash), counters.buffer.pages_now)
}

/// Nothing for a drive without room for what is in its buffer: records of trims can take the last of a tiny one.
fn saved(drive: &mut Drive) -> Vec<u8> {
    drive.submit(&Request::new(Op::Flush, 0, 0));
    drive.completions().clear();
    if drive.is_read_only() && drive.counters().buffer.pages_now > 0 {
        return Vec::new();
    }
    let mut bytes = Vec::new();
    drive.save(&mut bytes).expect("a flushed drive is saved");
    bytes
}

#[test]
fn a_resumed_drive_does_what_the_original_does() {
    let (mut seeds, mut not_now, mut flushed) = (0_u64, 0, 0);
    let (mut resumed_with_units, mut tied, mut destaged) = (0, 0, 0);
    campaign("checkpoint", "a_resumed_drive_does_what_the_original_does", 150, |seed| {
        let mut rng = rng(seed, "checkpoint");
        let mut config = configs::random(&mut rng);
        config.buffer.policy = ["none", "lru", "fifo"][rng.random_range(0..3)].to_string();
        config.gc.victim =
            ["greedy", "random", "d-choices", "fifo", "cost-benefit"][rng.random_range(0..5)].to_string();
        if Drive::new(&config, Options { seed, contents: Contents::Nothing }).is_err() {
            return;
        }
        tell(&config);
        seeds += 1;
        let mut original = untimed(&config, seed, Contents::Nothing);
        let units = config.user_bytes / u64::from(config.ftl.mapping_unit);
        let before = rng.random_range(0..(units * 4).min(2000));
        send(&mut original, &mut rng, before, true);
        let mut bytes = Vec::new();
        if let Err(error) = original.checkpoint(&mut bytes) {
            // Buffers that compact small units, and those that pad, are told of with their policies.
            assert!(matches!(error.kind(), ErrorKind::Unsupported | ErrorKind::WouldBlock), "{error}");
            not_now += u64::from(error.kind() == ErrorKind::WouldBlock);
            return;
        }
        resumed_with_units += u64::from(original.counters().buffer.pages_now > 0);
        tied += u64::from(config.ftl.superblock != Superblock::None);
        destaged += original.counters().buffer.destaged_pages;
        let options = Options { seed, contents: Contents::Nothing };
        let mut resumed = Drive::resume(&config, options, &mut bytes.as_slice()).expect("a checkpoint is resumed");
        assert_checks(&resumed);
        let mut again = Vec::new();
        resumed.checkpoint(&mut again).expect("it can be kept again");
        assert!(bytes == again, "a resumed drive gives the same checkpoint");
        let marks = [original.counters(), resumed.counters()];
        let more = rng.random_range(1..600);
        let mut done = Vec::new();
        for (drive, mark) in [&mut original, &mut resumed].into_iter().zip(marks) {
            send(drive, &mut ssdlab_base::rng(seed, "after"), more, true);
            assert_checks(drive);
            done.push((since(drive, &mark), drive.erase_counts(), saved(drive)));
            flushed += u64::from(done.last().is_some_and(|(_, _, saved)| !saved.is_empty()));
        }
        let [first, second] = <[_; 2]>::try_from(done).expect("two drives");
        assert_eq!(first.0, second.0, "flash operations and pages in the buffer");
        assert_eq!(first.1, second.1, "erases of every block");
        assert!(first.2 == second.2, "what both save, byte for byte");
    });
    assert!(not_now * 10 <= seeds, "{not_now} of {seeds} drives had something in hand");
    assert!(flushed > seeds, "most were saved at their end: {flushed} of both of each of {seeds}");
    assert!(resumed_with_units > 0, "some checkpoint holds units of a write buffer");
    assert!(tied > 0 && destaged > 0, "some drive has superblocks ({tied}), some destages ({destaged} pages)");
}

/// Segments of trims that are not on flash yet come back in their order, which is the one of their records.
#[test]
fn trims_are_made_durable_in_the_order_of_the_original() {
    for design in ["page", "mvftl"] {
        let text = format!(
            "flash = {{ channels = 1, chips_per_channel = 1, dies_per_chip = 1, planes_per_die = 2, blocks_per_plane = 192, \
             pages_per_block = 128, page_size = \"512\", timing = \"none\" }}\n\
             capacity = {{ over_provisioning = \"28%\" }}\nftl = {{ design = \"{design}\" }}\n"
        );
        let config = Description::parse(&text, "segments").and_then(|description| description.resolve());
        let config = config.expect("a valid description");
        let mut original = untimed(&config, 1, Contents::Nothing);
        let mut rng = rng(1, "segments");
        send(&mut original, &mut rng, 20_000, false);
        let segments = original.user_sectors() / 4096;
        assert!(segments > 4, "{segments} segments are too few to have an order");
        // The last first, and one in the middle last.
        for segment in (0..segments).rev().chain([segments / 2]) {
            original.submit(&Request::new(Op::Trim, segment * 4096 + 11, 8));
            original.completions().clear();
        }
        let mut bytes = Vec::new();
        original.checkpoint(&mut bytes).expect("a drive between two requests");
        let options = Options { seed: 1, contents: Contents::Nothing };
        let mut resumed = Drive::resume(&config, options, &mut bytes.as_slice()).expect("a checkpoint is resumed");
        assert!(saved(&mut original) == saved(&mut resumed), "{design}: what both save, byte for byte");
    }
}

#[test]
fn damaged_checkpoints_are_refused_or_are_drives() {
    campaign("checkpoint", "damaged_checkpoints_are_refused_or_are_drives", 60, |seed| {
        let mut rng = rng(seed, "damage");
        let mut config = configs::random(&mut rng);
        config.buffer.policy = "lru".to_string();
        config.buffer.bytes = config.buffer.bytes.max(64 << 10);
        if Drive::new(&config, Options { seed, contents: Contents::Nothing }).is_err() {
            return;
        }
        let mut drive = untimed(&config, seed, Contents::Nothing);
        send(&mut drive, &mut rng, 200, false);
        let mut bytes = Vec::new();
        if drive.checkpoint(&mut bytes).is_err() {
            return;
        }
        for _ in 0..20 {
            let mut damaged = bytes.clone();
            // Most of the damage goes where the controller's own state is.
            let end = if rng.random_bool(0.5) { damaged.len().min(400) } else { damaged.len() };
            let at = rng.random_range(0..end);
            damaged[at] ^= 1 << rng.random_range(0..8);
            if rng.random_bool(0.2) {
                damaged.truncate(at);
            }
            let options = Options { seed, contents: Contents::Nothing };
            if let Ok(mut drive) = Drive::resume(&config, options, &mut damaged.as_slice()) {
                send(&mut drive, &mut rng, 20, true);
            }
        }
    });
}

/// A drive that keeps contents moves unit by unit, one that keeps none moves runs of pages where it can.
#[test]
fn relocation_in_runs_does_what_relocation_by_the_unit_does() {
    let mut moved = [0_u64; 4];
    campaign("checkpoint", "relocation_in_runs_does_what_relocation_by_the_unit_does", 150, |seed| {
        let mut rng = rng(seed, "runs");
        let config = configs::random(&mut rng);
        tell(&config);
        let mut counted = Vec::new();
        for contents in [Contents::Nothing, Contents::Stamps] {
            let mut drive = untimed(&config, seed, contents);
            let units = config.user_bytes / u64::from(config.ftl.mapping_unit);
            // Without trims and flushes OOB areas hold nothing but the map.
            let mut rng = ssdlab_base::rng(seed, "requests");
            for _ in 0..(units * 6).min(4000) {
                let sector = rng.random_range(0..drive.user_sectors());
                let length = rng.random_range(1..=(drive.user_sectors() - sector).min(40));
                drive.submit(&Request::new(Op::Write, sector, length));
                drive.completions().clear();
            }
            assert_checks(&drive);
            let mut counters = drive.counters();
            counters.multi_plane = ssdlab_flash::OpCounts::default();
            counted.push((counters, drive.erase_counts()));
        }
        let units_per_page = config.flash.geometry.page_bytes / config.ftl.mapping_unit;
        let gc = counted[0].0.flash.get(OpKind::Program, ssdlab_flash::Cause::Gc);
        let tied = usize::from(config.ftl.superblock != Superblock::None);
        moved[usize::from(units_per_page > 1) + 2 * tied] += gc;
        assert_eq!(counted[0], counted[1]);
    });
    assert!(
        moved.iter().all(|moved| *moved > 0),
        "pages of one unit and of several, without and with superblocks: {moved:?}"
    );
}
