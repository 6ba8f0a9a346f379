//! A drive over an image: the same drive as one in memory, and what is left when its process ends at any moment.

use std::path::Path;

use rand::RngExt;
use ssdlab_base::{Nanos, Op, Request, rng};
use ssdlab_device::{Data, Drive, DriveConfig, Options, Status};
use ssdlab_flash::{BlockId, Contents, FaultKind, Image, ImageError, OpKind, Ppn, ScriptedFault};
use ssdlab_torture::configs;

const OPTIONS: Options = Options { seed: 7, contents: Contents::Bytes };

fn open(config: &DriveConfig, dir: &Path) -> Result<Image, ImageError> {
    Image::open(
        dir,
        &config.flash.geometry,
        config.flash.geometry.page_bytes / config.ftl.mapping_unit,
        config.keeps_origins(),
    )
}

/// A file of an image that was removed, as its owner's alone.
fn put_back(path: &Path, bytes: &[u8]) {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::write(path, bytes).expect("written");
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).expect("the owner may");
}

fn on_image(config: &DriveConfig, dir: &Path) -> Drive {
    Drive::on_image(config, OPTIONS, open(config, dir).expect("an image opens")).expect("a drive comes back").0
}

fn wait(drive: &mut Drive) {
    while drive.outstanding() > 0 {
        drive.completions().clear();
        drive.run_to_completion(Nanos::MAX);
    }
    assert!(drive.completions().iter().all(|completion| completion.status == Status::Success));
    drive.completions().clear();
}

fn read_all(drive: &mut Drive) -> Vec<u8> {
    let sectors = drive.user_sectors();
    drive.submit(&Request { at: drive.now(), ..Request::new(Op::Read, 0, sectors) });
    wait(drive);
    drive.read_data().pop().expect("a read brings data").1
}

/// Random commands with data; whatever completed and was flushed is in the second value.
fn work(drive: &mut Drive, rng: &mut ssdlab_base::Rng, count: u32, model: &mut [u8]) {
    for _ in 0..count {
        let sectors = drive.user_sectors();
        let first = rng.random_range(0..sectors);
        let length = rng.random_range(1..=(sectors - first).min(24));
        let range = first as usize * 512..(first + length) as usize * 512;
        let at = drive.now();
        match rng.random_range(0..10) {
            0 => {
                drive.submit(&Request { at, ..Request::new(Op::Trim, first, length) });
                model[range].fill(0);
            }
            1 => drive.submit(&Request { at, ..Request::new(Op::Flush, 0, 0) }),
            _ => {
                let bytes: Vec<u8> = (0..length * 512).map(|_| rng.random()).collect();
                drive.submit_with(&Request { at, ..Request::new(Op::Write, first, length) }, Data::Bytes(&bytes));
                model[range].copy_from_slice(&bytes);
            }
        }
        wait(drive);
    }
    drive.submit(&Request { at: drive.now(), ..Request::new(Op::Flush, 0, 0) });
    wait(drive);
}

#[test]
fn a_drive_over_an_image_is_the_drive_in_memory_and_comes_back_from_its_files() {
    for seed in 0..30 {
        let mut rng = rng(seed, "image");
        let mut config = configs::random(&mut rng);
        config.timed = rng.random_bool(0.7);
        config.flash.faults = Default::default();
        let dir = tempfile::tempdir().expect("a directory");
        let mut memory = Drive::new(&config, OPTIONS).expect("the configuration is good");
        let mut kept = on_image(&config, dir.path());
        let mut model = vec![0; config.user_bytes as usize];
        for life in 0..4 {
            let mut same = rng.clone();
            let mut again = model.clone();
            work(&mut kept, &mut rng, 60, &mut model);
            if life == 0 {
                work(&mut memory, &mut same, 60, &mut again);
                assert_eq!(format!("{:?}", memory.counters()), format!("{:?}", kept.counters()), "seed {seed}");
                assert_eq!(memory.now(), kept.now());
            }
            assert!(read_all(&mut kept) == model, "seed {seed}, life {life}: data differs");
            // The process ends here, with nothing said.
            drop(kept);
            kept = on_image(&config, dir.path());
            for check in kept.check() {
                assert!(check.passed, "seed {seed}: {}: {}", check.name, check.detail);
            }
            assert!(read_all(&mut kept) == model, "seed {seed}, life {life}: data was lost");
        }
    }
}

#[test]
fn every_design_comes_back_from_its_image_again_and_again() {
    for design in configs::names("ftl.design") {
        let mut rng = rng(3, "image of a design");
        let mut config = configs::random(&mut rng);
        ssdlab_device::draw_design(&mut config, design, &mut rng);
        let units = configs::most_user_units(&config).expect("the design takes the drive");
        config.user_bytes = units * u64::from(config.ftl.mapping_unit);
        let dir = tempfile::tempdir().expect("a directory");
        let mut model = vec![0; config.user_bytes as usize];
        for life in 0..4 {
            let mut drive = on_image(&config, dir.path());
            for check in drive.check() {
                assert!(check.passed, "{design}, life {life}: {}: {}", check.name, check.detail);
            }
            assert!(read_all(&mut drive) == model, "{design}, life {life}: data was lost");
            work(&mut drive, &mut rng, 150, &mut model);
            assert!(read_all(&mut drive) == model, "{design}, life {life}: data differs");
        }
    }
}

#[test]
fn what_was_in_flight_when_the_process_ended_is_old_or_new_and_what_was_flushed_is_there() {
    for seed in 0..60 {
        let mut rng = rng(seed, "image in flight");
        let mut config = configs::random(&mut rng);
        config.timed = true;
        config.flash.faults = Default::default();
        let dir = tempfile::tempdir().expect("a directory");
        let mut model = vec![0; config.user_bytes as usize];
        for life in 0..4 {
            let mut drive = on_image(&config, dir.path());
            assert!(read_all(&mut drive) == model, "seed {seed}, life {life}");
            work(&mut drive, &mut rng, 30, &mut model);
            drive.persist();
            let sectors = drive.user_sectors();
            let (first, byte) = (rng.random_range(0..sectors), rng.random_range(1..=255));
            let length = rng.random_range(1..=(sectors - first).min(64));
            let bytes = vec![byte; length as usize * 512];
            let request = Request { at: drive.now(), ..Request::new(Op::Write, first, length) };
            drive.submit_with(&request, Data::Bytes(&bytes));
            for _ in 0..rng.random_range(0..40) {
                let Some(next) = drive.next_event() else { break };
                drive.run_until(next);
                if rng.random_bool(0.2) {
                    drive.persist();
                }
            }
            // With what was put into the files last, or without it.
            if rng.random_bool(0.5) {
                drive.kill();
            } else {
                drop(drive);
            }
            let found = read_all(&mut on_image(&config, dir.path()));
            for sector in 0..sectors {
                let range = sector as usize * 512..(sector as usize + 1) * 512;
                let new = (first..first + length).contains(&sector) && found[range.clone()].iter().all(|b| *b == byte);
                assert!(new || found[range.clone()] == model[range], "seed {seed}, life {life}, sector {sector}");
            }
            model = found;
        }
    }
}

#[test]
fn an_image_that_is_not_whole_or_not_ours_is_refused_with_what_is_wrong() {
    let config = configs::handful();
    let dir = tempfile::tempdir().expect("a directory");
    let mut model = vec![0; config.user_bytes as usize];
    let mut drive = on_image(&config, dir.path());
    work(&mut drive, &mut rng(1, "damage"), 50, &mut model);
    let refusal = |config: &DriveConfig| match open(config, dir.path()) {
        Err(error) => error.to_string(),
        Ok(image) => match Drive::on_image(config, OPTIONS, image) {
            Err(error) => error.to_string(),
            Ok(_) => panic!("the image is taken"),
        },
    };
    assert!(refusal(&config).contains("in use by another process"));
    drop(drive);

    let mut other = config.clone();
    other.flash.geometry.blocks_per_plane += 1;
    assert!(refusal(&other).contains("flash.blocks_per_plane is"), "{}", refusal(&other));

    let damage = |file: &str, change: &dyn Fn(&mut Vec<u8>)| {
        let path = dir.path().join(file);
        let whole = std::fs::read(&path).expect("a file of the image");
        let mut bytes = whole.clone();
        change(&mut bytes);
        std::fs::write(&path, bytes).expect("written");
        let said = refusal(&config);
        std::fs::write(&path, whole).expect("written");
        said
    };
    assert!(damage("pages", &|bytes| bytes.truncate(512)).contains("truncated"));
    assert!(damage("oob", &|bytes| bytes.truncate(512)).contains("truncated"));
    assert!(damage("blocks", &|bytes| bytes.truncate(100)).contains("truncated"));
    assert!(damage("blocks", &|bytes| bytes[0] = b'9').contains("not an image"));
    assert!(damage("blocks", &|bytes| bytes[13] = b'9').contains("another version"));
    assert!(damage("blocks", &|bytes| bytes[30] ^= 1).contains("header"));
    let used = |bytes: &[u8]| bytes.iter().position(|byte| *byte != 0).expect("something is written");
    assert!(
        damage("oob", &|bytes| {
            let at = used(bytes);
            bytes[at + 9] ^= 4
        })
        .contains("does not agree with its check")
    );
    assert!(damage("blocks", &|bytes| bytes[4096 + 5] ^= 1).contains("does not agree with its check"));
    // Without its header the image was once taken for a new one, and all of its data was thrown away.
    let blocks = dir.path().join("blocks");
    let kept = std::fs::read(&blocks).expect("the header");
    std::fs::remove_file(&blocks).expect("removed");
    assert!(refusal(&config).contains("the file is missing: it holds the header"), "{}", refusal(&config));
    put_back(&blocks, &kept);
    assert!(read_all(&mut on_image(&config, dir.path())) == model, "undamaged, it is all there");

    let strange = tempfile::tempdir().expect("a directory");
    std::fs::write(strange.path().join("letter.txt"), "dear").expect("written");
    assert!(matches!(open(&config, strange.path()), Err(ImageError::NotAnImage { .. })));
}

#[test]
fn an_image_is_its_owners_alone_and_one_that_is_refused_gains_no_file() {
    use std::os::unix::fs::PermissionsExt as _;
    let config = configs::handful();
    let dir = tempfile::tempdir().expect("a directory");
    let dir = dir.path().join("drive");
    let mode = |path: &Path| std::fs::metadata(path).expect("it is there").permissions().mode() & 0o777;
    let files = || {
        let entries = std::fs::read_dir(&dir).expect("a directory").map(|entry| entry.expect("an entry").path());
        entries.collect::<std::collections::BTreeSet<_>>()
    };
    drop(on_image(&config, &dir));
    let private = || mode(&dir) == 0o700 && files().iter().all(|file| mode(file) == 0o600);
    assert!(private(), "a new one");
    let permit = |path: &Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("the owner may");
    };
    permit(&dir, 0o755);
    drop(on_image(&config, &dir));
    assert!(private(), "one whose folder others could look into");
    for path in files() {
        permit(&path, 0o604);
        let said = open(&config, &dir).err().map(|error| error.to_string());
        let is_known = path.file_name().is_some_and(|name| name != "description.toml");
        assert_eq!(said.is_some(), is_known, "{path:?}: {said:?}");
        assert!(said.is_none_or(|said| said.contains("mode is 604")), "{path:?}");
        permit(&path, 0o600);
    }
    for name in ["pages", "oob", "records"] {
        let kept = std::fs::read(dir.join(name)).expect("a file of the image");
        std::fs::remove_file(dir.join(name)).expect("removed");
        let before = files();
        let said = open(&config, &dir).err().expect("it is not whole").to_string();
        assert!(said.contains(name), "{said}");
        assert_eq!(files(), before, "without {name}");
        put_back(&dir.join(name), &kept);
    }
}

/// What is done to an image's files.
#[derive(Clone, Copy, Debug)]
enum Damage {
    Flip,
    Zero,
    Copy,
    Swap,
    Truncate,
    /// Bytes that the file had earlier.
    Old,
    /// Bytes of another image's file of this name.
    Foreign,
}

/// One place of a file, of the size of an entry up to that of a page of the host's, in what is used.
fn place(bytes: &[u8], rng: &mut ssdlab_base::Rng) -> std::ops::Range<usize> {
    let size = [16, 64, 512, 4096, 4096][rng.random_range(0..5)].min(bytes.len());
    let used: Vec<usize> =
        (0..bytes.len() / size).filter(|at| bytes[at * size..][..size].iter().any(|byte| *byte != 0)).collect();
    let at = if used.is_empty() || rng.random_bool(0.1) {
        rng.random_range(0..=(bytes.len() / size).saturating_sub(1))
    } else {
        used[rng.random_range(0..used.len())]
    };
    at * size..(at * size + size).min(bytes.len())
}

fn damaged(damage: Damage, good: &[u8], old: &[u8], other: &[u8], rng: &mut ssdlab_base::Rng) -> Vec<u8> {
    let mut bytes = good.to_vec();
    let to = place(good, rng);
    match damage {
        Damage::Flip => bytes[rng.random_range(to)] ^= 1 << rng.random_range(0..8),
        Damage::Zero => bytes[to].fill(0),
        Damage::Copy | Damage::Swap => {
            let from = rng.random_range(0..=(bytes.len() - to.len()) / to.len()) * to.len();
            bytes.copy_within(from..from + to.len(), to.start);
            if matches!(damage, Damage::Swap) {
                bytes[from..from + to.len()].copy_from_slice(&good[to]);
            }
        }
        Damage::Truncate => bytes.truncate(rng.random_range(0..good.len())),
        Damage::Old if to.end <= old.len() => bytes[to.clone()].copy_from_slice(&old[to]),
        Damage::Foreign if to.end <= other.len() => bytes[to.clone()].copy_from_slice(&other[to]),
        Damage::Old | Damage::Foreign => {}
    }
    bytes
}

/// Every sector as it can be read, nothing where that is an error.
fn read_each(drive: &mut Drive) -> Vec<Option<Vec<u8>>> {
    let sectors = drive.user_sectors();
    let read = |sector| {
        drive.submit(&Request { at: drive.now(), tag: 1, ..Request::new(Op::Read, sector, 1) });
        while drive.completions().is_empty() {
            drive.run_to_completion(Nanos::MAX);
        }
        let status = drive.completions()[0].status;
        drive.completions().clear();
        let data = drive.read_data().pop().map(|(_, data)| data);
        assert!(matches!(status, Status::Success | Status::UncorrectableRead), "sector {sector} ends with {status:?}");
        data.filter(|_| status == Status::Success)
    };
    (0..sectors).map(read).collect()
}

/// Files of an image that were damaged were once taken for what they said: a page whose entry was gone had never been written, and
/// the drive returned what was there before, or panicked. An image that is damaged anywhere is refused with the file's name, or
/// what it cannot tell any more is an error; anything that is read is the newest data.
#[test]
fn a_damaged_image_is_refused_or_has_unreadable_pages_and_never_returns_older_data() {
    const FILES: [&str; 4] = ["pages", "oob", "blocks", "records"];
    const DAMAGES: [Damage; 7] = {
        use Damage::{Copy, Flip, Foreign, Old, Swap, Truncate, Zero};
        [Flip, Zero, Copy, Swap, Truncate, Old, Foreign]
    };
    let (mut refused, mut unreadable, mut harmless) = (0, 0, 0);
    for (design, seed) in configs::names("ftl.design").into_iter().flat_map(|design| [(design, 1), (design, 2)]) {
        let mut rng = rng(seed, "damage");
        let config = loop {
            let mut config = configs::random(&mut rng);
            ssdlab_device::draw_design(&mut config, design, &mut rng);
            config.flash.faults = Default::default();
            let Some(units) = configs::most_user_units(&config) else { continue };
            config.user_bytes = units * u64::from(config.ftl.mapping_unit);
            if config.user_bytes <= 96 << 10 {
                break config;
            }
        };
        let files = |dir: &Path| FILES.map(|name| std::fs::read(dir.join(name)).expect("a file of the image"));
        let (dir, another) = (tempfile::tempdir().expect("a directory"), tempfile::tempdir().expect("a directory"));
        let mut model = vec![0; config.user_bytes as usize];
        let mut drive = on_image(&config, another.path());
        work(&mut drive, &mut rng, 60, &mut model);
        drop(drive);
        model.fill(0);
        let mut drive = on_image(&config, dir.path());
        work(&mut drive, &mut rng, 60, &mut model);
        drive.persist();
        let old = files(dir.path());
        work(&mut drive, &mut rng, 25, &mut model);
        drive.persist();
        // As a killed process leaves it.
        drive.kill();
        let (good, other) = (files(dir.path()), files(another.path()));
        for round in 0..28 {
            let (number, damage) = (rng.random_range(0..FILES.len()), DAMAGES[round % DAMAGES.len()]);
            if good[number].is_empty() {
                continue;
            }
            let bytes = damaged(damage, &good[number], &old[number], &other[number], &mut rng);
            let what = format!("{design}, seed {seed}, round {round}: {damage:?} of {}", FILES[number]);
            for (name, bytes) in FILES.iter().zip(&good) {
                std::fs::write(dir.path().join(name), bytes).expect("written");
            }
            std::fs::write(dir.path().join(FILES[number]), bytes).expect("written");
            let opened = match open(&config, dir.path()) {
                Err(error) => Err(error.to_string()),
                Ok(image) => Drive::on_image(&config, OPTIONS, image).map_err(|error| error.to_string()),
            };
            let mut drive = match opened {
                Err(said) => {
                    assert!(said.contains(&dir.path().display().to_string()), "{what}: no file is named: {said}");
                    refused += 1;
                    continue;
                }
                Ok((drive, _)) => drive,
            };
            let mut newest = model.clone();
            for step in 0..2 {
                let found = read_each(&mut drive);
                for (sector, (found, newest)) in found.iter().zip(newest.chunks_exact(512)).enumerate() {
                    let fits = found.as_ref().is_none_or(|found| found == newest);
                    assert!(fits, "{what}: sector {sector} holds something else, step {step}");
                }
                let errors = found.iter().filter(|found| found.is_none()).count();
                if step == 0 {
                    *(if errors > 0 { &mut unreadable } else { &mut harmless }) += 1;
                    // A write of a part of what cannot be read does not make the rest good.
                    for sector in (0..drive.user_sectors()).step_by(7) {
                        let bytes = [sector as u8 | 1; 512];
                        let request = Request { at: drive.now(), ..Request::new(Op::Write, sector, 1) };
                        drive.submit_with(&request, Data::Bytes(&bytes));
                        while drive.outstanding() > 0 {
                            drive.run_to_completion(Nanos::MAX);
                        }
                        let status = drive.completions()[0].status;
                        drive.completions().clear();
                        if status == Status::Success {
                            newest[sector as usize * 512..][..512].copy_from_slice(&bytes);
                        }
                    }
                }
            }
            drive.kill();
        }
    }
    println!("{refused} refused, {unreadable} with unreadable sectors, {harmless} without harm");
    assert!(refused > 100 && unreadable > 20 && harmless > 0);
}

#[test]
fn an_image_of_an_earlier_layout_is_refused_with_its_version_and_what_to_do() {
    let config = configs::handful();
    let dir = tempfile::tempdir().expect("a directory");
    drop(on_image(&config, dir.path()));
    let path = dir.path().join("blocks");
    let mut header = std::fs::read(&path).expect("the header");
    assert_eq!(&header[..14], b"ssdlab image 4");
    header[13] = b'3';
    std::fs::write(&path, header).expect("written");
    let said = open(&config, dir.path()).err().expect("refused").to_string();
    assert!(said.contains("\"ssdlab image 3\"") && said.contains("\"ssdlab image 4\""), "{said}");
    assert!(said.contains("copy its data"), "{said}");
}

#[test]
fn data_that_was_damaged_is_an_error_and_never_read_as_good() {
    let config = configs::handful();
    let dir = tempfile::tempdir().expect("a directory");
    let mut model = vec![0; config.user_bytes as usize];
    let mut drive = on_image(&config, dir.path());
    work(&mut drive, &mut rng(2, "damage"), 50, &mut model);
    drop(drive);
    let path = dir.path().join("pages");
    let mut bytes = std::fs::read(&path).expect("the pages");
    bytes.iter_mut().step_by(64).for_each(|byte| *byte ^= 0x10);
    std::fs::write(&path, bytes).expect("written");
    let mut drive = on_image(&config, dir.path());
    let (mut failed, mut named) = (0, Vec::new());
    for sector in (0..drive.user_sectors()).chain(0..drive.user_sectors()) {
        drive.submit(&Request { at: drive.now(), tag: 1, ..Request::new(Op::Read, sector, 1) });
        while drive.completions().is_empty() {
            drive.run_to_completion(Nanos::MAX);
        }
        let status = drive.completions()[0].status;
        drive.completions().clear();
        let data = drive.read_data().pop().expect("data").1;
        let range = sector as usize * 512..(sector as usize + 1) * 512;
        assert!(status == Status::UncorrectableRead || data == model[range], "sector {sector} lies");
        failed += u32::from(status == Status::UncorrectableRead);
        named.extend(drive.image().expect("an image").take_damage());
    }
    assert!(failed > 0);
    // Each damaged page is named once, with its place in the file, and only so many are.
    let pages: std::collections::BTreeSet<Ppn> = named.iter().map(|damage| damage.page).collect();
    assert!(pages.len() == named.len() && (1..=16).contains(&named.len()), "{} of {pages:?}", named.len());
    let counted = drive.image().expect("an image").damaged_pages();
    assert!(counted >= named.len() as u64, "{counted} pages, {} named", named.len());
    let geometry = config.flash.geometry;
    for damage in named {
        assert_eq!(damage.path, path);
        let first = u64::from(damage.page.0) * u64::from(geometry.page_bytes);
        assert_eq!(damage.offset, first + u64::from(damage.unit_in_page * damage.bytes));
        let (block, page) = (damage.page.0 / geometry.pages_per_block, damage.page.0 % geometry.pages_per_block);
        let said = damage.to_string();
        assert!(said.contains(&format!("page {page} of block {block} (channel ")), "{said}");
        assert!(said.contains(&format!("at offset {} ", damage.offset)) && said.contains("expected 0x"), "{said}");
    }
}

/// An image without damage has none, though programs were torn and some units of pages were never written.
#[test]
fn an_image_that_is_good_has_no_damaged_pages() {
    for seed in 1..=60 {
        let mut rng = rng(seed, "good");
        let config = loop {
            let mut config = configs::random(&mut rng);
            config.flash.faults = Default::default();
            let Some(units) = configs::most_user_units(&config) else { continue };
            config.user_bytes = units * u64::from(config.ftl.mapping_unit);
            if config.user_bytes <= 96 << 10 {
                break config;
            }
        };
        let dir = tempfile::tempdir().expect("a directory");
        let mut model = vec![0; config.user_bytes as usize];
        for _ in 0..4 {
            let mut drive = on_image(&config, dir.path());
            work(&mut drive, &mut rng, 60, &mut model);
            read_each(&mut drive);
            let damages = drive.image().expect("an image").take_damage();
            assert!(damages.is_empty(), "seed {seed}, design {}: {}", config.ftl.design, damages[0]);
            // Programs in flight are torn.
            for sector in (0..drive.user_sectors()).step_by(9) {
                let request = Request { at: drive.now(), ..Request::new(Op::Write, sector, 1) };
                drive.submit_with(&request, Data::Bytes(&[sector as u8; 512]));
                drive.run_until(drive.now() + Nanos(20_000));
            }
            drive.persist();
            drive.kill();
        }
    }
}

#[test]
fn a_block_that_failed_a_program_is_still_marked_when_the_image_is_opened_again() {
    let mut config = configs::handful();
    config.flash.geometry.blocks_per_plane = 20;
    config.gc.free_blocks = 3;
    config.user_bytes = 8 * 1024;
    config.flash.faults.script = vec![ScriptedFault { kind: FaultKind::Program, block: BlockId(0), nth: 1 }];
    let dir = tempfile::tempdir().expect("a directory");
    let mut drive = on_image(&config, dir.path());
    drive.submit_with(&Request::new(Op::Write, 0, 2), Data::Bytes(&[1; 1024]));
    while drive.counters().flash.total(OpKind::Program) == 0 {
        let next = drive.next_event().expect("a program is in flight");
        drive.run_until(next);
    }
    // The process ends with the failure, before the block could be retired.
    drop(drive);
    config.flash.faults.script.clear();
    let block = *on_image(&config, dir.path()).power_cut().blocks.get(BlockId(0));
    assert_eq!((block.suspect, block.bad, block.erases, block.programmed), (true, true, 0, 1));
    let mut model = vec![0; config.user_bytes as usize];
    let mut drive = on_image(&config, dir.path());
    work(&mut drive, &mut rng(3, "suspect"), 100, &mut model);
    drop(drive);
    assert_eq!(*on_image(&config, dir.path()).power_cut().blocks.get(BlockId(0)), block, "nothing was written to it");
}
