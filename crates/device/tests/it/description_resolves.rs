//! What a right description resolves to: words, defaults, quantities, overrides, and the expanded form.

use proptest::prelude::*;
use ssdlab_base::Nanos;
use ssdlab_device::description::to_toml;
use ssdlab_device::{
    Allocation, Answers, BufferConfig, ControllerConfig, Description, Destage, DestageConfig, Drive, DriveConfig,
    FtlConfig, GcConfig, InterfaceConfig, InterfaceKind, Level, Options, Owners, Pacing, Parity, PlacementConfig,
    ReadUnwritten, Settings, Superblock,
};
use ssdlab_flash::{
    BlockId, Contents, FaultKind, Faults, FlashConfig, Geometry, Latency, MultiPlane, OobUse, SchedulerKind,
    ScriptedFault, Timing,
};

/// The example of the design.
const DESIGN: &str = r#"
name = "waflash-256g"
[flash]
channels = 4
chips_per_channel = 4
dies_per_chip = 2
planes_per_die = 2
blocks_per_plane = 4096
pages_per_block = 256
page_size = "4k"
oob_size = 128                      # bytes
timing = { read = "20us", program = "200us", erase = "1.5ms", transfer = "51.2us" }   # transfer: one page on the channel
[capacity]
over_provisioning = "7%"            # (physical - user) / user; or user = "238g"
[interface]
kind = "nvme"                       # or "sata": one queue of 32
queue_depth = 32
[buffer]
policy = "lru"
size = "64m"
[ftl]
design = "page"
mapping_unit = "4k"                 # at most a page
[gc]
victim = "greedy"
"#;

fn resolve(text: &str, sets: &[&str]) -> DriveConfig {
    let mut description = Description::parse(text, "d.toml").unwrap_or_else(|error| panic!("{error}"));
    for set in sets {
        description.set(set).unwrap_or_else(|error| panic!("{error}"));
    }
    description.resolve().unwrap_or_else(|error| panic!("{error}"))
}

fn fixed(ns: u64) -> Latency {
    Latency { min: Nanos(ns), max: Nanos(ns) }
}

#[test]
fn the_design_s_example_resolves_with_every_default_as_documented() {
    const CWDP: [Level; 4] = [Level::Channel, Level::Way, Level::Die, Level::Plane];
    let expected = DriveConfig {
        name: "waflash-256g".to_string(),
        flash: FlashConfig {
            geometry: Geometry {
                channels: 4,
                chips_per_channel: 4,
                dies_per_chip: 2,
                planes_per_die: 2,
                blocks_per_plane: 4096,
                pages_per_block: 256,
                page_bytes: 4096,
                oob_bytes: 128,
            },
            timing: Timing {
                read: vec![fixed(20_000)],
                program: vec![fixed(200_000)],
                erase: fixed(1_500_000),
                command: Nanos::ZERO,
                transfer: Nanos(51_200),
                suspend: Nanos::ZERO,
                resume: Nanos::ZERO,
            },
            multi_plane: MultiPlane::SameOffset,
            copyback: false,
            checks_copyback: false,
            cache_program: false,
            program_suspend: false,
            erase_suspend: false,
            suspend_limit: 16,
            scheduler: SchedulerKind::Fifo,
            oob: OobUse::Free,
            faults: Faults::default(),
        },
        user_bytes: (256_u64 << 30) * 100 / 107 / 4096 * 4096,
        interface: InterfaceConfig {
            kind: InterfaceKind::Nvme,
            queues: 1,
            queue_depth: 32,
            bandwidth: 0,
            command_overhead: Nanos::ZERO,
            read_overhead: Nanos::ZERO,
            write_overhead: Nanos::ZERO,
            processing: Nanos::ZERO,
            read_unwritten: ReadUnwritten::Error,
            command_codes: 0,
            answers: Answers::Words,
        },
        controller: ControllerConfig::default(),
        buffer: BufferConfig {
            policy: "lru".to_string(),
            bytes: 64 << 20,
            latency: Nanos::from_us(1),
            destage: DestageConfig { when: Destage::Watermark, high_percent: 80, low_percent: 70 },
            own: Settings::default(),
        },
        ftl: FtlConfig {
            design: "page".to_string(),
            mapping_unit: 4096,
            allocation: Allocation::RoundRobin(CWDP),
            separate_gc_frontier: true,
            streams: 1,
            owners: Owners::Oob,
            superblock: Superblock::None,
            parity: Parity::None,
            own: Settings::default(),
        },
        placement: PlacementConfig::default(),
        gc: GcConfig {
            victim: "greedy".to_string(),
            own: Settings::default(),
            free_blocks: 3,
            background_free_blocks: 0,
            pacing: Pacing::Off,
            idle_after: Nanos::from_ms(100),
            copyback: false,
            dynamic_wear_levelling: true,
            static_wear_threshold: 0,
        },
        timed: true,
        below_layers: false,
    };
    assert_eq!(resolve(DESIGN, &[]), expected);
}

#[test]
fn latencies_are_one_a_list_by_page_position_or_a_range() {
    let timing = resolve(
        DESIGN,
        &["flash.timing.read=[\"50us\", \"80us\"]", "flash.timing.program=400us..600us", "flash.timing.erase=0"],
    )
    .flash
    .timing;
    assert_eq!(timing.read, [fixed(50_000), fixed(80_000)]);
    let range = Latency { min: Nanos::from_us(400), max: Nanos::from_us(600) };
    assert_eq!(timing.program, [range]);
    assert_eq!(timing.erase, fixed(0));
}

#[test]
fn a_channel_is_described_by_a_page_s_time_or_by_its_bandwidth() {
    for (bandwidth, transfer) in [("80MB/s", 51_200), ("80_000_000", 51_200), ("400m", 9_766), ("400MiB/s", 9_766)] {
        let timing = resolve(DESIGN, &[&format!("flash.timing.channel_bandwidth={bandwidth}")]).flash.timing;
        assert_eq!(timing.transfer, Nanos(transfer), "{bandwidth}");
    }
}

#[test]
fn a_preset_fills_in_what_the_table_does_not_say() {
    let preset = ssdlab_flash::presets::preset("mlc").expect("a preset").timing(4096);
    assert_eq!(resolve(DESIGN, &["flash.cell=mlc"]).flash.timing, preset);
    assert_eq!(resolve(DESIGN, &["flash.timing=mlc"]).flash.timing, preset);
    let mut faster = preset;
    faster.read = vec![fixed(30_000)];
    let sets = ["flash.timing=mlc", "flash.timing.read=30us"];
    assert_eq!(resolve(DESIGN, &sets).flash.timing, faster);
}

#[test]
fn timing_none_counts_only() {
    let config = resolve(DESIGN, &["flash.timing=none"]);
    assert!(!config.timed);
    assert_eq!(config.flash.timing.read, [fixed(0)]);
    assert_eq!(config.flash.timing.transfer, Nanos::ZERO);
}

#[test]
fn user_capacity_is_rounded_down_to_a_mapping_unit() {
    assert_eq!(resolve(DESIGN, &["capacity.user=1000000"]).user_bytes, 999_424);
    let config = resolve(DESIGN, &["capacity.user=1000000", "ftl.mapping_unit=512"]);
    assert_eq!(config.user_bytes, 999_936);
    // A third of a percent is exact.
    let config = resolve(DESIGN, &["capacity.over_provisioning=0.333333333%"]);
    let exact = (256_u128 << 30) * 100_000_000_000 / 100_333_333_333;
    assert_eq!(u128::from(config.user_bytes), exact / 4096 * 4096);
}

#[test]
fn the_capacity_of_a_die_gives_its_blocks() {
    let blocks = |sets: &[&str]| resolve(DESIGN, sets).flash.geometry.blocks_per_plane;
    // 2 planes of blocks of 256 pages of 4 KiB, 1 MiB: 16 Mb a block of each.
    assert_eq!(blocks(&["flash.die_capacity=64Gb"]), 4096);
    assert_eq!(blocks(&["flash.die_capacity=64Gbit", "flash.blocks_per_plane=100"]), 100);
    assert_eq!(blocks(&["flash.blocks_per_plane=100", "flash.die_capacity=2000Mb"]), 125);
    // What is not whole blocks is rounded up: the chips hold at least what the datasheet says. 128 Gb in blocks of 12 MiB.
    let sets = ["flash.die_capacity=128Gb", "flash.pages_per_block=768", "flash.page_size=16k"];
    assert_eq!(blocks(&sets), (128_u64 << 30).div_ceil(8 * 2 * (12 << 20)) as u32);
    assert_eq!(blocks(&sets), 683);
    let written = to_toml(&resolve(DESIGN, &sets));
    assert!(written.contains("blocks_per_plane = 683") && !written.contains("die_capacity"), "{written}");
}

#[test]
fn a_page_that_is_no_power_of_two_is_mapped_in_the_largest_one_that_divides_it() {
    let text = DESIGN.replace("mapping_unit", "# mapping_unit");
    let unit = |set| resolve(&text, &[set]).ftl.mapping_unit;
    assert_eq!(unit("flash.page_size=4k"), 4096);
    assert_eq!(unit("flash.page_size=12k"), 4096);
    assert_eq!(unit("flash.page_size=1536"), 512);
}

#[test]
fn words_are_understood() {
    let config = resolve(
        DESIGN,
        &[
            "flash.scheduler=host-first",
            "flash.scheduler_starvation=2ms",
            "flash.multi_plane=relaxed",
            "flash.copyback=true",
            "ftl.allocation=pdwc",
            "interface.kind=sata",
            "interface.bandwidth=600MB/s",
            "flash.faults.factory_bad=0.5%",
            "flash.faults.script=[{kind=\"erase\", block=7}]",
            "name=42",
        ],
    );
    let starvation = Nanos::from_ms(2);
    assert_eq!(config.flash.scheduler, SchedulerKind::HostFirst { starvation });
    assert_eq!(config.flash.multi_plane, MultiPlane::Relaxed);
    assert!(config.gc.copyback, "GC uses copyback where the chips have it");
    let levels = [Level::Plane, Level::Die, Level::Way, Level::Channel];
    assert_eq!(config.ftl.allocation, Allocation::Static(levels));
    assert_eq!(config.interface.bandwidth, 600_000_000);
    assert_eq!(config.flash.faults.factory_bad, 0.005);
    let fault = ScriptedFault { kind: FaultKind::Erase, block: BlockId(7), nth: 1 };
    assert_eq!(config.flash.faults.script, [fault]);
    assert_eq!(config.name, "42");
    assert_eq!(resolve(DESIGN, &["ftl.allocation=dynamic"]).ftl.allocation, Allocation::Dynamic);
    assert_eq!(resolve(DESIGN, &["buffer.policy=none"]).buffer.bytes, 0);
}

#[test]
fn an_override_makes_the_table_it_needs_and_the_last_one_wins() {
    let small = DESIGN.split("[interface]").next().expect("the first part");
    let config = resolve(small, &["gc.victim=fifo", "gc.victim=random"]);
    assert_eq!(config.gc.victim, "random");
    assert_eq!(resolve(small, &["interface.queue_depth = 7"]).interface.queue_depth, 7);
}

fn latency() -> impl Strategy<Value = Latency> {
    (0..5_000_000_u64, 0..5_000_000_u64).prop_map(|(a, b)| Latency { min: Nanos(a.min(b)), max: Nanos(a.max(b)) })
}

fn span() -> impl Strategy<Value = Nanos> {
    prop_oneof![Just(Nanos::ZERO), (0..60_000_000_000_u64).prop_map(Nanos)]
}

fn flash() -> impl Strategy<Value = FlashConfig> {
    let geometry = (1..9_u32, 1..5_u32, 1..3_u32, 1..5_u32, 5..300_u32, 1..300_u32, 1..65_u32, 0..512_u32).prop_map(
        |(
            channels,
            chips_per_channel,
            dies_per_chip,
            planes_per_die,
            blocks_per_plane,
            pages_per_block,
            sectors,
            oob,
        )| {
            Geometry {
                channels,
                chips_per_channel,
                dies_per_chip,
                planes_per_die,
                blocks_per_plane,
                pages_per_block,
                page_bytes: sectors * 512,
                oob_bytes: oob,
            }
        },
    );
    let timing = (latency(), latency(), latency(), [span(), span(), span(), span()]);
    let multi_plane = prop_oneof![Just(MultiPlane::Off), Just(MultiPlane::SameOffset), Just(MultiPlane::Relaxed)];
    let scheduler = prop_oneof![
        Just(SchedulerKind::Fifo),
        Just(SchedulerKind::ReadsFirst),
        Just(SchedulerKind::SingleFifo),
        Just(SchedulerKind::InOrder),
        span().prop_map(|starvation| SchedulerKind::HostFirst { starvation })
    ];
    let rate = || 0.0..=1.0_f64;
    let kind =
        prop_oneof![Just(FaultKind::Read), Just(FaultKind::Program), Just(FaultKind::Erase), Just(FaultKind::Factory)];
    let script = prop::collection::vec((kind, 0..5_u32, 1..u32::MAX), 0..4);
    let faults = (rate(), rate(), rate(), rate(), prop::option::of(1..u32::MAX), script);
    (geometry, timing, multi_plane, scheduler, faults, any::<[bool; 5]>()).prop_map(
        |(geometry, (read, program, erase, spans), multi_plane, scheduler, faults, flags)| {
            let mut reads = vec![read];
            if flags[4] && geometry.pages_per_block > 1 {
                reads.push(program);
            }
            FlashConfig {
                timing: Timing {
                    read: reads,
                    program: vec![program],
                    erase,
                    command: spans[0],
                    transfer: spans[1],
                    suspend: spans[2],
                    resume: spans[3],
                },
                geometry,
                multi_plane,
                copyback: flags[0],
                checks_copyback: flags[0] && flags[1],
                cache_program: flags[1],
                program_suspend: flags[2],
                erase_suspend: flags[3],
                suspend_limit: 16,
                scheduler,
                oob: OobUse::Free,
                faults: Faults {
                    program_failure: faults.0,
                    erase_failure: faults.1,
                    uncorrectable_read: faults.2,
                    factory_bad: faults.3,
                    endurance: faults.4,
                    script: faults
                        .5
                        .into_iter()
                        .map(|(kind, block, nth)| ScriptedFault { kind, block: BlockId(block), nth })
                        .collect(),
                },
            }
        },
    )
}

fn drive() -> impl Strategy<Value = DriveConfig> {
    let order = Just([Level::Channel, Level::Way, Level::Die, Level::Plane]).prop_shuffle();
    let allocation = (0..3_u8, order).prop_map(|(which, levels)| match which {
        0 => Allocation::Static(levels),
        1 => Allocation::RoundRobin(levels),
        _ => Allocation::Dynamic,
    });
    let interface = (any::<bool>(), 1..16_u32, 1..33_u32, prop_oneof![Just(0), 65_536..u64::MAX], span());
    let destage = (any::<bool>(), 1..101_u32, 0..101_u32);
    let buffer = (prop::sample::select(vec!["none", "fifo", "lru"]), 0..1_000_u64, span(), destage);
    let victim = prop::sample::select(vec!["greedy", "cost-benefit", "fifo", "random", "d-choices"]);
    let gc = (victim, 1..100_u32, 2..4_u32, any::<bool>(), span(), any::<[bool; 2]>(), any::<u32>());
    let ftl = (allocation, any::<bool>(), 1..9_u32, 0..8_u32);
    (flash(), interface, buffer, ftl, gc, 1..1_000_u64, any::<bool>()).prop_map(
        |(mut flash, interface, buffer, ftl, gc, used, timed)| {
            let page = flash.geometry.page_bytes;
            let unit = 1 << (9 + ftl.3).min(page.trailing_zeros());
            let units = flash.geometry.bytes() / u64::from(unit);
            let user = (units * used / 1_000).clamp(1, (units - 1).max(1));
            if !timed {
                flash.timing = Timing {
                    read: vec![fixed(0)],
                    program: vec![fixed(0)],
                    erase: fixed(0),
                    command: Nanos::ZERO,
                    transfer: Nanos::ZERO,
                    suspend: Nanos::ZERO,
                    resume: Nanos::ZERO,
                };
            }
            let superblock = match (ftl.0, ftl.3 % 3) {
                (Allocation::Static(_), _) | (_, 0) => Superblock::None,
                (_, 1) => Superblock::Die,
                _ => Superblock::Drive,
            };
            let geometry = flash.geometry;
            let parity = match (superblock, ftl.3 / 3) {
                (Superblock::Drive, 1) if geometry.dies() > 1 => Parity::Die,
                (Superblock::Die, 1 | 2) if geometry.planes_per_die > 1 => Parity::Page,
                (Superblock::Drive, 2) if geometry.planes() > 1 => Parity::Page,
                _ => Parity::None,
            };
            let kind = if interface.0 { InterfaceKind::Sata } else { InterfaceKind::Nvme };
            DriveConfig {
                name: "a \"name\" of one's own #1".to_string(),
                user_bytes: user * u64::from(unit),
                interface: InterfaceConfig {
                    kind,
                    queues: if interface.0 { 1 } else { interface.1 },
                    queue_depth: interface.2,
                    bandwidth: interface.3,
                    command_overhead: interface.4,
                    read_overhead: Nanos(interface.4.0 / 3),
                    write_overhead: Nanos(interface.4.0 / 2),
                    processing: Nanos::ZERO,
                    read_unwritten: ReadUnwritten::Error,
                    command_codes: 0,
                    answers: Answers::Words,
                },
                controller: ControllerConfig::default(),
                buffer: BufferConfig {
                    policy: buffer.0.to_string(),
                    bytes: if buffer.0 == "none" {
                        0
                    } else {
                        (u64::from(page) + buffer.1 * 512).next_multiple_of(512)
                    },
                    latency: buffer.2,
                    destage: DestageConfig {
                        when: if buffer.3.0 { Destage::OnDemand } else { Destage::Watermark },
                        high_percent: buffer.3.1,
                        low_percent: buffer.3.1 * buffer.3.2 / 100,
                    },
                    own: Settings::default(),
                },
                ftl: FtlConfig {
                    design: "page".to_string(),
                    mapping_unit: unit,
                    allocation: ftl.0,
                    separate_gc_frontier: ftl.1,
                    streams: ftl.2,
                    owners: Owners::Oob,
                    superblock,
                    parity,
                    own: Settings::default(),
                },
                placement: match ftl.2 {
                    1 => PlacementConfig::default(),
                    streams => PlacementConfig {
                        policy: ["stream-hint", "recency"][streams as usize % 2].to_string(),
                        own: Settings::default().with("hot_age", streams.min(100)),
                    },
                },
                gc: GcConfig {
                    victim: gc.0.to_string(),
                    own: if gc.1 == 10 { Settings::default() } else { Settings::default().with("choices", gc.1) },
                    free_blocks: gc.2,
                    background_free_blocks: if gc.3 { gc.2 + 1 } else { 0 },
                    pacing: if gc.6 % 2 == 0 { Pacing::Off } else { Pacing::Proportional },
                    idle_after: gc.4,
                    copyback: gc.5[0] && flash.copyback && superblock == Superblock::None,
                    dynamic_wear_levelling: gc.5[1],
                    static_wear_threshold: gc.6,
                },
                flash,
                timed,
                below_layers: false,
            }
        },
    )
}

proptest! {
    #[test]
    fn any_drive_reads_back_from_its_expanded_form(config in drive()) {
        let text = to_toml(&config);
        let again = Description::parse(&text, "expanded.toml").and_then(|description| description.resolve());
        match again {
            Ok(again) => prop_assert_eq!(again, config),
            Err(error) => prop_assert!(false, "{}\n{}", error, text),
        }
    }

    #[test]
    fn no_text_and_no_override_panics(
        text in "\\PC{0,200}",
        set in "[a-z_.]{0,20}=?[\\PC]{0,20}",
        at in 0..DESIGN.len(),
        with in "[-\\[\\]{}\"=.,0-9a-z%\n]{0,12}",
    ) {
        let _ = Description::parse(&text, "d.toml").and_then(|description| description.resolve());
        // The design's example with a few characters overwritten, and an override.
        if DESIGN.is_char_boundary(at) {
            let mut broken = DESIGN.to_string();
            broken.replace_range(at..(at + with.len()).min(DESIGN.len()), &with);
            if let Ok(mut description) = Description::parse(&broken, "d.toml") {
                let _ = description.set(&set);
                let _ = description.resolve();
            }
        }
    }

    #[test]
    fn no_number_panics_anywhere(
        key in prop::sample::select(ssdlab_device::description::keys()),
        value in prop::sample::select(vec![
            "0", "-1", "1", "2", "513", "4294967295", "4294967296", "9223372036854775807", "18446744073709551615",
            "1e308", "nan", "inf", "18446744073709551615t", "16777215t", "1e999", "100%", "0%", "0.000000001%",
            "18446744073.709551615s", "5000000h", "0..0", "..", "1ns..60s", "[]", "[[]]", "{}", "[{}]", "true",
            "0.0000000000000000000001k", "18014398509481983k", "\"\"", "'é'", "/s", "1/s", "1GB/s", "1B/s",
        ]),
    ) {
        let mut description = Description::parse(DESIGN, "d.toml").expect("the design's example");
        let resolved = description.set(&format!("{key}={value}")).and_then(|()| description.resolve());
        if let Ok(config) = resolved {
            let again = Description::parse(&to_toml(&config), "expanded.toml")
                .and_then(|description| description.resolve());
            prop_assert_eq!(again, Ok(config));
        }
    }
}

#[test]
fn a_share_of_the_map_is_so_many_whole_map_pages() {
    // 61,440 MB in units of 4 KB: 15,728,640 units, and 15,360 map pages of 4 KB (60 MB).
    let sets = ["ftl.design=dftl", "capacity.user=61440m", "buffer.policy=none", "buffer.size=0"];
    let cached = |set: &str| {
        let config = resolve(&DESIGN.replace("4096\npages", "1024\npages"), &[&sets[..], &[set]].concat());
        let again = Description::parse(&to_toml(&config), "expanded.toml").and_then(|text| text.resolve());
        assert_eq!(again.as_ref(), Ok(&config), "{set}");
        let drive = Drive::new(&config, Options { seed: 1, contents: Contents::Nothing }).expect("an accepted drive");
        drive.memory().into_iter().find(|(name, _)| *name == "map_cache_bytes").map(|(_, bytes)| bytes / 4096)
    };
    for (value, pages) in [
        ("20%", 3072),
        ("0.1%", 15),
        ("12.5%", 1920),
        ("33.3%", 5114),
        ("100%", 15_360),
        ("12m", 3072),
        ("1t", 15_360),
        ("8k", 2),
    ] {
        assert_eq!(cached(&format!("ftl.map_cache={value}")), Some(pages), "{value}");
    }
    let text = to_toml(&resolve(DESIGN, &["ftl.design=dftl", "ftl.map_cache= 12.50 %"]));
    assert!(text.contains("map_cache = \"12.5%\""), "{text}");
}
