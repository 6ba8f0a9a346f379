//! The drives that ship under `devices/` and the examples of the documentation resolve to what they say.

use std::path::{Path, PathBuf};

use ssdlab_base::Nanos;
use ssdlab_device::description::{idle_settings, keys, one_line, to_toml};
use ssdlab_device::{Description, Drive, DriveConfig, InterfaceKind, Options, Setting};
use ssdlab_flash::{Contents, MultiPlane, presets};

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Those of drives; descriptions of disks have the table `[disk]`.
fn shipped() -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(repository().join("devices"))
        .expect("devices/ ships with the sources")
        .map(|entry| entry.expect("devices/ can be listed").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
        .filter(|path| !std::fs::read_to_string(path).expect("a description can be read").contains("\n[disk]\n"))
        .collect();
    files.sort();
    files
}

fn drive(name: &str) -> DriveConfig {
    let path = repository().join("devices").join(format!("{name}.toml"));
    Description::load(&path).and_then(|description| description.resolve()).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn every_shipped_drive_resolves_and_says_what_it_is() {
    let files = shipped();
    assert!(files.len() >= 15, "only {} drives ship", files.len());
    for path in files {
        let description = Description::load(&path).unwrap_or_else(|error| panic!("{error}"));
        let config = description.resolve().unwrap_or_else(|error| panic!("{error}"));
        let stem = path.file_stem().expect("a file has a stem").to_string_lossy();
        assert_eq!(config.name, stem, "the name is the file's");
        assert!(description.source().is_some(), "{stem} names its source");
        let summary = description.summary().unwrap_or_default();
        assert!((20..=120).contains(&summary.chars().count()), "{stem}: '{summary}'");
        assert_eq!(idle_settings(&config, true), Vec::<String>::new(), "{stem} sets nothing in vain");
        assert!(!one_line(&config).contains('\n'));
        let spare = config.flash.geometry.bytes() - config.user_bytes;
        // Append-only segments need blocks for bad ones alone.
        let percent = if config.segment_units().is_some() { 1 } else { 5 };
        assert!(spare * 100 >= config.user_bytes * percent, "{stem} has {spare} bytes of spare");
    }
}

#[test]
fn every_shipped_drive_reads_back_from_its_expanded_form() {
    for path in shipped() {
        let config = Description::load(&path)
            .and_then(|description| description.resolve())
            .unwrap_or_else(|error| panic!("{error}"));
        let again = Description::parse(&to_toml(&config), "expanded.toml")
            .and_then(|description| description.resolve())
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert_eq!(again, config);
    }
}

#[test]
fn the_benchmark_drive_is_the_one_the_benchmarks_define() {
    let bench = drive("bench-32g");
    let geometry = bench.flash.geometry;
    assert_eq!(geometry.bytes(), 32 << 30);
    assert_eq!((geometry.channels, geometry.chips_per_channel), (8, 4));
    assert_eq!((geometry.dies_per_chip, geometry.planes_per_die), (1, 2));
    assert_eq!((geometry.page_bytes, geometry.pages_per_block), (4096, 256));
    // OverProvisioning is 10 % of the user capacity, to a page.
    assert_eq!(bench.user_bytes, (32 << 30) * 10 / 11 / 4096 * 4096);
    assert_eq!(bench.flash.timing.read[0].max, Nanos::from_us(50));
    assert_eq!(bench.flash.timing.program[0].max, Nanos::from_us(500));
    assert_eq!(bench.flash.timing.erase.max, Nanos(3_500_000));
    assert_eq!(bench.interface.queue_depth, 32);
    assert_eq!((bench.buffer.policy.as_str(), bench.buffer.bytes), ("none", 0));
}

#[test]
fn the_papers_drives_have_the_papers_capacities() {
    for (name, physical, user) in [
        ("waflash-256g-4k", 256 << 30, None),
        ("waflash-256g-8k", 256 << 30, None),
        ("waflash-256g-16k", 256 << 30, None),
        ("shrd-sm843-120g", 120 << 30, Some(110_u64 << 30)),
        ("amf-16g", 16 << 30, None),
        ("amf-512g", 512 << 30, None),
        ("amf-1t", 1 << 40, None),
        ("wa-ssd-v-16g", 16 << 30, Some(14 << 30)),
        ("wa-ssd-i-40g", 40 << 30, None),
        ("wa-ssd-m-64g", 64 << 30, None),
        ("wa-ssd-s-32g", 32 << 30, None),
        ("jasmine-8g", 8 << 30, None),
        ("jasmine-64g", 64 << 30, None),
        ("jasmine-128g", 128 << 30, None),
        ("jasmine-256g", 256 << 30, None),
        ("tlc-dramless-500g", 512 << 30, Some(500_107_862_016)),
    ] {
        let config = drive(name);
        assert_eq!(config.flash.geometry.bytes(), physical, "{name}");
        if let Some(user) = user {
            assert_eq!(config.user_bytes, user, "{name}");
        }
    }
    // Table 1 of WAFLASH.
    let timing = drive("waflash-256g-4k").flash.timing;
    assert_eq!(timing.read[0].max, Nanos::from_us(20));
    assert_eq!(timing.program[0].max, Nanos::from_us(200));
    assert_eq!(timing.erase.max, Nanos(1_500_000));
    assert_eq!(timing.transfer, Nanos(51_200));
    // Table I of the write amplification paper.
    let vendor = drive("wa-ssd-v-16g");
    assert_eq!(vendor.interface.kind, InterfaceKind::Sata);
    assert_eq!(vendor.flash.multi_plane, MultiPlane::Off);
    let program = vendor.flash.timing.program[0];
    assert_eq!((program.min, program.max), (Nanos::from_us(200), Nanos::from_us(2_200)));
}

/// The boards of Getting Real differ by their banks and blocks, and by nothing else; a 4 KB map of the largest needs more DRAM.
#[test]
fn the_openssd_boards_are_one_board_of_several_sizes() {
    let largest = drive("jasmine-256g");
    assert_eq!(largest.flash.timing.transfer, Nanos(32_768 / 2 * 30));
    for (name, channels, ways, blocks) in [
        ("jasmine-64g", 2, 4, 2048),
        ("jasmine-128g", 4, 4, 2048),
        ("jasmine-8g", 4, 4, 128),
        ("jasmine-256g", 4, 8, 2048),
    ] {
        let board = drive(name);
        let geometry = &board.flash.geometry;
        assert_eq!(
            (geometry.channels, geometry.chips_per_channel, geometry.blocks_per_plane),
            (channels, ways, blocks)
        );
        let pages = geometry.pages();
        assert!(board.user_bytes.abs_diff(pages / 100 * 93 * 32_768) < pages / 1000 * 32_768, "93 % are the user's");
        let mut other = largest.clone();
        (other.name, other.user_bytes) = (board.name.clone(), board.user_bytes);
        other.flash.geometry = *geometry;
        assert_eq!(board, other, "{name}");
        let options = Options { seed: 1, contents: Contents::Nothing };
        assert!(Drive::new(&board, options).is_ok(), "{name} fits its DRAM");
        let mut mapped_4k = board.clone();
        mapped_4k.ftl.mapping_unit = 4096;
        let fits = Drive::new(&mapped_4k, options).map(|_| ()).map_err(|error| error.key);
        let expected = if board.user_bytes > 32 << 30 { Err("controller.dram".to_string()) } else { Ok(()) };
        assert_eq!(fits, expected, "{name} with a map of 4 KB units");
    }
}

/// The drives of Application-Managed Flash differ by their FTL and their number of blocks, and by nothing else.
#[test]
fn the_drives_of_amf_are_one_drive_under_its_ftls_and_of_three_sizes() {
    let prototype = drive("amf-512g");
    for (size, blocks) in [("16g", 1024_u32), ("512g", 32_768), ("1t", 65_536)] {
        let page = drive(&format!("amf-{size}"));
        for (system, design, percent) in [
            ("", "page", 85.0),
            ("-block", "block-mapped", 85.0),
            ("-bast", "bast", 84.3),
            ("-fast", "fast", 84.3),
            ("-dftl", "dftl", 85.0),
            ("-aftl", "aftl", 98.4),
        ] {
            let name = format!("amf-{size}{system}");
            // The measurements have 16 GB under PFTL, DFTL and AFTL; the others are in Table 2 alone.
            if size == "16g" && !["page", "dftl", "aftl"].contains(&design) {
                continue;
            }
            let config = drive(&name);
            let mut flash = config.flash.clone();
            assert_eq!(flash.geometry.blocks_per_plane, blocks, "{name}");
            flash.geometry.blocks_per_plane = prototype.flash.geometry.blocks_per_plane;
            assert_eq!(flash, prototype.flash, "{name}");
            assert_eq!(config.interface, prototype.interface, "{name}");
            assert_eq!((config.ftl.design.as_str(), &config.gc), (design, &page.gc), "{name}");
            let share = config.user_bytes as f64 * 100.0 / config.flash.geometry.bytes() as f64;
            assert!((share - percent).abs() < 0.05, "{name}: {share} % of the flash is the host's");
        }
    }
    // Section 5.2: a segment of 16 MB, 20 % of the map.
    let segment = drive("amf-512g-aftl").segment_units().expect("it has segments");
    assert_eq!(u64::from(segment) * 4096, 16 << 20);
    for name in ["amf-16g-dftl", "amf-512g-dftl", "amf-1t-dftl"] {
        // In billionths of a per cent.
        assert_eq!(drive(name).own("ftl.map_cache"), Some(Setting::Share(20_000_000_000)), "{name}");
    }
}

#[test]
fn the_demonstration_drives_hold_the_bundled_recordings() {
    for name in ["demo-slc", "demo-tlc", "demo-qlc"] {
        let config = drive(name);
        assert_eq!(config.user_bytes, 8_589_934_592, "{name}");
        assert_eq!(config.flash.geometry.bytes(), 9 << 30, "{name}");
        assert_eq!(config.ftl.mapping_unit, 4096, "{name}");
    }
}

#[test]
fn drives_without_ram_for_their_map_cache_a_part_of_it() {
    // 4 bytes for each unit of 4 KB: of the paper's drive 110 MB, and 1 MB of them is cached (section 5.1).
    for (name, map) in [("shrd-sm843-120g", 110 << 20), ("tlc-dramless-500g", 500_107_862_016 / 1024)] {
        let config = drive(name);
        let whole = u64::from(config.user_units()) * 4;
        assert!(whole.abs_diff(map) < 4096, "{name}: a map of {whole} bytes");
        assert_eq!(config.own("ftl.map_cache"), Some(Setting::Number(1 << 20)), "{name}");
        assert_eq!(config.own("ftl.map_page"), Some(Setting::Number(4096)), "{name}");
        let counters =
            Drive::new(&config, Options { seed: 1, contents: Contents::Nothing }).expect("it is made").counters();
        assert!(counters.map_cache.is_some(), "{name} caches its map");
    }
    let config = drive("shrd-sm843-120g");
    let drive = Drive::new(&config, Options { seed: 1, contents: Contents::Nothing }).expect("it is made");
    let memory: std::collections::BTreeMap<&str, u64> = drive.memory().into_iter().collect();
    // 256 of 28,160 map pages are cached; a bit for each of 31,457,280 physical units, and of map pages that are cached.
    for (table, bytes) in [
        ("map_cache_bytes", 1 << 20),
        ("map_directory_bytes", 28_160 * 4),
        ("map_order_bytes", 256 * 12),
        ("map_state_bytes", 256 * 5),
        ("map_log_bytes", 0),
        ("trim_bitmap_bytes", 256 / 8),
        ("valid_bitmap_bytes", 31_457_280 / 8),
    ] {
        assert_eq!(memory.get(table), Some(&bytes), "{table} of {memory:?}");
    }
    let shrd = config.flash.geometry;
    assert_eq!((shrd.channels, shrd.chips_per_channel * shrd.dies_per_chip, shrd.planes_per_die), (4, 4, 4));
}

/// No host sees an NVMe drive of these products complete a write in less than 5 us (docs/products.md).
#[test]
fn drives_of_products_take_the_time_of_controller_and_host() {
    for name in ["tlc-nvme-1t", "tlc-nvme-4t", "qlc-nvme-3840g", "tlc-dramless-500g", "zns-tlc-1t"] {
        let interface = drive(name).interface;
        let write = interface.command_overhead + interface.processing + interface.write_overhead;
        assert!((5_000..8_000).contains(&write.0), "{name}: {write} for a write");
        assert!(interface.processing > Nanos::ZERO, "{name}: its controller takes any number of commands at once");
    }
    // Dies of 512 Gb, by the source that its file names.
    let geometry = drive("tlc-dramless-500g").flash.geometry;
    assert_eq!((geometry.dies(), geometry.bytes() / u64::from(geometry.dies())), (8, 64 << 30));
}

#[test]
fn the_four_terabyte_drive_has_a_billion_mapping_units() {
    let config = drive("tlc-nvme-4t");
    assert_eq!(config.user_bytes / 512, 7_814_037_168);
    assert_eq!(config.flash.geometry.page_bytes, 16_384);
    assert_eq!(config.flash.geometry.bytes() / u64::from(config.ftl.mapping_unit), 1 << 30);
}

fn documentation() -> String {
    std::fs::read_to_string(repository().join("docs/description.md")).expect("docs/description.md ships")
}

#[test]
fn the_documentation_lists_every_preset() {
    let text = documentation();
    for preset in &presets::PRESETS {
        let row = text
            .lines()
            .find(|line| line.starts_with(&format!("| `\"{}\"` |", preset.name)))
            .unwrap_or_else(|| panic!("docs/description.md has no row for the preset {}", preset.name));
        assert!(row.contains(preset.source), "{row} does not name '{}'", preset.source);
    }
}

#[test]
fn the_documentation_s_examples_resolve() {
    let text = documentation();
    let examples: Vec<&str> =
        text.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap_or_default()).collect();
    assert!(examples.len() >= 2);
    for example in &examples {
        let description = Description::parse(example, "example.toml").unwrap_or_else(|error| panic!("{error}"));
        description.resolve().unwrap_or_else(|error| panic!("{error}\n{example}"));
    }
    // The second one is complete: every key but those that exclude another.
    let complete: toml::Table = examples[1].parse().expect("the example is TOML");
    let mut found = Vec::new();
    collect(&complete, "", &mut found);
    let excluded =
        ["flash.cell", "flash.timing.channel_bandwidth", "capacity.user", "flash.timing.preset", "flash.die_capacity"];
    for key in keys() {
        assert!(found.contains(&key) || excluded.contains(&key.as_str()), "the complete example leaves out {key}");
    }
}

fn collect(table: &toml::Table, path: &str, found: &mut Vec<String>) {
    for (key, value) in table {
        let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        match value {
            toml::Value::Table(inner) => collect(inner, &path, found),
            toml::Value::Array(list) => {
                for entry in list {
                    if let toml::Value::Table(inner) = entry {
                        collect(inner, &path, found);
                    }
                }
            }
            _ => {}
        }
        found.push(path);
    }
}
