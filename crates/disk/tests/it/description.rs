//! Descriptions of disks: the one that ships, and what is refused.

use ssdlab_base::Nanos;
use ssdlab_device::description::with_tables;
use ssdlab_disk::{DiskConfig, KEYS};

use crate::support::{ROUND, repository, round, shipped};

#[test]
fn the_disk_that_ships_is_what_its_data_sheet_says() {
    let disk = shipped(&[]);
    assert_eq!(disk.name, "wd1502faex");
    assert_eq!((disk.sectors, disk.rpm, disk.bandwidth), (2_930_277_168, 7_200, 600_000_000));
    assert_eq!(disk.seek.knee_cylinders, disk.cylinders() / 3);
    let read = disk.read_cache.segment_bytes * u64::from(disk.read_cache.segments);
    assert_eq!(disk.write_cache.bytes + read, 64 << 20, "the cache of the data sheet");
    let all: u64 = disk.zones.iter().map(|zone| u64::from(zone.cylinders) * u64::from(zone.sectors) * 6).sum();
    assert!((disk.sectors..disk.sectors + 500_000).contains(&all), "the zones have {all} sectors");
    assert_eq!(shipped(&["disk.capacity=75g"]).bytes(), 75 << 30);
}

#[test]
fn defaults_are_what_the_table_says() {
    let text = "[disk]\nheads = 4\nzones = [{ cylinders = 10, sectors = 10 }]\nhead_switch = \"1ms\"\n[disk.seek]\nsettle = \"2ms\"\n\
                knee = \"2ms\"\nfull_stroke = \"3ms\"\nwrite_settle = \"100us\"";
    let disk = DiskConfig::parse(text, "some/where/plain.toml", &[]).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((disk.name.as_str(), disk.sectors, disk.seek.knee_cylinders), ("plain", 400, 3));
    assert_eq!((disk.head_skew, disk.cylinder_skew), (Nanos::from_us(1_110), Nanos::from_us(2_110)));
}

#[test]
fn a_description_of_a_disk_is_told_from_one_of_a_drive() {
    assert!(DiskConfig::describes(ROUND));
    for entry in std::fs::read_dir(repository().join("devices")).expect("devices/ ships") {
        let path = entry.expect("an entry").path();
        let text = std::fs::read_to_string(&path).expect("a description");
        assert_eq!(DiskConfig::describes(&text), path.ends_with("wd1502faex.toml"), "{}", path.display());
    }
    assert_eq!(DiskConfig::summary_of("summary = \" a disk \"").as_deref(), Some("a disk"));
}

#[test]
fn what_is_wrong_is_told_with_its_place() {
    let said = |from: &str, to: &str| {
        assert!(ROUND.contains(from), "'{from}' is no part of the description");
        DiskConfig::parse(&ROUND.replace(from, to), "d.toml", &[]).expect_err("it is wrong").to_string()
    };
    assert_eq!(
        said("rpm = 6000", "rpm = 6"),
        "d.toml:4:7: disk.rpm: found 6, expected a whole number from 60 to 30000"
    );
    assert_eq!(
        said("heads = 2", "haeds = 2"),
        "d.toml:5:1: disk.haeds: found an unknown key, expected one of capacity, rpm, heads, zones, head_switch, head_skew, \
         cylinder_skew, seek, interface, queue, write_cache or read_cache; did you mean 'heads'?"
    );
    assert_eq!(
        said("sectors = 100", "sectors = 0"),
        "d.toml:6:38: disk.zones[0].sectors: found 0, expected a whole number from 1 to 100000"
    );
    assert_eq!(
        said("[{ cylinders = 50, sectors = 100 }]", "[]"),
        "d.toml:6:9: disk.zones: found a list of 0, expected from 1 to 1000 zones"
    );
    assert_eq!(
        said("knee_cylinders = 49", "knee_cylinders = 51"),
        "d.toml:12:18: disk.seek.knee_cylinders: found 51, expected at most the 50 cylinders of the disk"
    );
    assert_eq!(
        said("knee = \"8ms\"", "knee = \"0.5ms\""),
        "d.toml:13:8: disk.seek.knee: found 500 us, expected at least the 1.00 ms of seek.settle"
    );
    assert_eq!(
        said("full_stroke = \"8ms\"", "full_stroke = \"7ms\""),
        "d.toml:14:15: disk.seek.full_stroke: found 7.00 ms, expected at least the 8.00 ms of seek.knee"
    );
    assert_eq!(
        said("ahead = 0", "ahead = \"2m\""),
        "d.toml:18:9: disk.read_cache.ahead: found 2097152 bytes to read ahead, expected at most a segment of 1048576 bytes"
    );
    assert_eq!(
        said("rpm = 6000", "capacity = \"6m\""),
        "d.toml:4:12: disk.capacity: found \"6m\", expected at most the 5120000 bytes of all zones"
    );
    let several = said("settle = \"1ms\"", "settel = 1");
    assert!(several.contains("did you mean 'settle'?"), "{several}");
    let empty = DiskConfig::parse("", "empty.toml", &[]).expect_err("it is empty").to_string();
    assert!(empty.contains("empty.toml: disk.heads: missing, expected the number of heads"), "{empty}");
    let set = DiskConfig::parse(ROUND, "d.toml", &["disk.rpm=1".to_string()]).expect_err("it is wrong").to_string();
    assert_eq!(set, "--set 'disk.rpm=1': disk.rpm: found 1, expected a whole number from 60 to 30000");
}

#[test]
fn no_text_makes_the_reader_panic() {
    let lines: Vec<&str> = ROUND.lines().collect();
    for index in 0..lines.len() {
        let mut left = lines.clone();
        left.remove(index);
        let _ = DiskConfig::parse(&left.join("\n"), "d.toml", &[]);
        for value in [
            "-1",
            "\"9e99\"",
            "true",
            "{}",
            "[[]]",
            "340282366920938463463374607431768211456",
            "\"18446744073709551615\"",
        ] {
            let mut other = lines.clone();
            let line = other[index].split('=').next().map(|key| format!("{key}= {value}")).unwrap_or_default();
            other[index] = &line;
            let _ = DiskConfig::parse(&other.join("\n"), "d.toml", &[]);
        }
    }
    let most = round(&["disk.zones=[{ cylinders = 16777216, sectors = 100000 }]", "disk.heads=255", "disk.rpm=30000"]);
    assert_eq!(most.sectors, 16_777_216 * 255 * 100_000);
}

#[test]
fn the_tables_of_the_documentation_are_the_tables_of_keys() {
    let path = repository().join("docs/disk.md");
    let page = std::fs::read_to_string(&path).expect("docs/disk.md ships");
    let right = with_tables(&page, KEYS).unwrap_or_else(|error| panic!("docs/disk.md: {error}"));
    if std::env::var_os("SSDLAB_WRITE_DOCS").is_some() {
        return std::fs::write(&path, right).expect("docs/disk.md can be written");
    }
    assert!(
        page == right,
        "docs/disk.md does not show the keys as they are; write its tables with: \
         SSDLAB_WRITE_DOCS=1 cargo test -p ssdlab-disk --test it description::"
    );
}

#[test]
fn the_documentation_has_every_counter_and_every_seeded_bug_a_sentence() {
    let page = std::fs::read_to_string(repository().join("docs/disk.md")).expect("docs/disk.md ships");
    for (name, value) in ssdlab_disk::DiskCounters::default().named() {
        assert!(page.contains(&format!("`{name}`")), "docs/disk.md does not have {name}");
        assert_eq!(value, 0);
    }
    for bug in ssdlab_disk::seeded::DiskBug::ALL {
        assert!(page.contains(bug.story()), "docs/disk.md does not have '{}'", bug.story());
    }
}
