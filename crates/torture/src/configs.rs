//! Random drives: small, odd geometries and every policy there is.

use rand::RngExt;
use ssdlab_base::{Nanos, Rng};
use ssdlab_device::{
    Allocation, Answers, BufferConfig, ControllerConfig, Destage, DestageConfig, Drive, DriveConfig, FtlConfig,
    GcConfig, InterfaceConfig, InterfaceKind, Level, Options, Owners, Pacing, Parity, PlacementConfig, ReadUnwritten,
    Reads, Settings, Superblock, draw_design, draw_owners, draw_user_units, drawn_designs, has_own_campaign,
    registered,
};
use ssdlab_flash::{Contents, Faults, FlashConfig, Geometry, Latency, MultiPlane, OobUse, SchedulerKind, Timing};

/// The names registered for one kind of policy.
pub fn names(kind: &str) -> Vec<&'static str> {
    let of_kind = registered().into_iter().filter(|entry| entry.kind == kind && !has_own_campaign(entry.name));
    of_kind.map(|entry| entry.name).collect()
}

/// One of several.
pub fn one_of<T: Clone>(rng: &mut Rng, of: &[T]) -> T {
    of[rng.random_range(0..of.len())].clone()
}

/// An order of the four levels.
pub fn order(rng: &mut Rng) -> [Level; 4] {
    let mut levels = [Level::Channel, Level::Way, Level::Die, Level::Plane];
    for index in (1..4).rev() {
        levels.swap(index, rng.random_range(0..=index));
    }
    levels
}

/// Any allocation.
pub fn allocation(rng: &mut Rng) -> Allocation {
    match rng.random_range(0..4) {
        0 | 1 => Allocation::Static(order(rng)),
        2 => Allocation::RoundRobin(order(rng)),
        _ => Allocation::Dynamic,
    }
}

fn latency(rng: &mut Rng, us: u64) -> Latency {
    let min = Nanos(rng.random_range(us * 500..=us * 1000));
    let max = if rng.random_bool(0.5) { min } else { Nanos(min.0 + rng.random_range(0..us * 1000)) };
    Latency { min, max }
}

fn latencies(rng: &mut Rng, us: u64) -> Vec<Latency> {
    (0..rng.random_range(1..=3)).map(|_| latency(rng, us)).collect()
}

fn timing(rng: &mut Rng) -> Timing {
    // Now and then transfers cost nothing at all: events then fall together.
    let channel = if rng.random_bool(0.15) { 0 } else { 1 };
    Timing {
        read: latencies(rng, 50),
        program: latencies(rng, 500),
        erase: latency(rng, 3000),
        command: Nanos(channel * rng.random_range(0..400)),
        transfer: Nanos(channel * rng.random_range(1..60_000)),
        suspend: Nanos(rng.random_range(0..20_000)),
        resume: Nanos(rng.random_range(0..20_000)),
    }
}

/// A random geometry with at most `pages` pages or a little more.
pub fn geometry(rng: &mut Rng, least_blocks: u32) -> Geometry {
    let channels = one_of(rng, &[1, 1, 2, 3]);
    let chips_per_channel = one_of(rng, &[1, 1, 2]);
    let dies_per_chip = one_of(rng, &[1, 1, 2]);
    let planes_per_die = one_of(rng, &[1, 1, 2, 3, 4]);
    Geometry {
        channels,
        chips_per_channel,
        dies_per_chip,
        planes_per_die,
        blocks_per_plane: least_blocks + rng.random_range(0..10),
        pages_per_block: one_of(rng, &[1, 2, 3, 4, 5, 7, 8, 16]),
        page_bytes: one_of(rng, &[512, 1024, 1536, 2048, 4096, 8192]),
        oob_bytes: 64,
    }
}

/// A drive drawn from everything a description can say. Faults are off; it is timed.
pub fn random(rng: &mut Rng) -> DriveConfig {
    loop {
        let mut config = draw(rng);
        let Some(most) = most_user_units(&config) else { continue };
        // Often as full as may be, else anywhere.
        let units = if rng.random_bool(0.5) { most } else { rng.random_range(1..=most) };
        let units = draw_user_units(units, &config, rng);
        config.user_bytes = units * u64::from(config.ftl.mapping_unit);
        draw_board(&mut config, units);
        return config;
    }
}

/// The largest user capacity that the drive accepts, in units.
pub fn most_user_units(config: &DriveConfig) -> Option<u64> {
    let unit = u64::from(config.ftl.mapping_unit);
    let accepts = |units: u64| {
        let config = DriveConfig { user_bytes: units * unit, ..config.clone() };
        Drive::new(&config, Options { seed: 1, contents: Contents::Nothing }).is_ok()
    };
    let step = u64::from(config.segment_units().unwrap_or(1));
    let accepts = |steps: u64| accepts(steps * step);
    if !accepts(1) {
        return None;
    }
    let (mut good, mut bad) = (1, config.flash.geometry.bytes() / unit / step + 1);
    while bad - good > 1 {
        let middle = (good + bad) / 2;
        if accepts(middle) { good = middle } else { bad = middle }
    }
    Some(good * step)
}

/// A drive drawn from everything that [`random`] draws from, with a user capacity of one mapping unit. It is not tried
/// whether the drive is accepted.
pub fn draw(rng: &mut Rng) -> DriveConfig {
    let free_blocks = one_of(rng, &[2, 2, 3, 3, 4]);
    let streams = one_of(rng, &[1, 1, 1, 2, 3]);
    let separate = rng.random_bool(0.5);
    let geometry = geometry(rng, free_blocks + streams + u32::from(separate) + 1);
    let units: Vec<u32> =
        (0..7).map(|shift| 512 << shift).filter(|unit| geometry.page_bytes.is_multiple_of(*unit)).collect();
    let mapping_unit = if rng.random_bool(0.4) { units[units.len() - 1] } else { one_of(rng, &units) };
    let sata = rng.random_bool(0.3);
    let suspend = rng.random_bool(0.4);
    let mut config = DriveConfig {
        name: "random".to_string(),
        flash: FlashConfig {
            geometry,
            timing: timing(rng),
            multi_plane: one_of(rng, &[MultiPlane::Off, MultiPlane::SameOffset, MultiPlane::Relaxed]),
            copyback: rng.random_bool(0.4),
            checks_copyback: false,
            cache_program: rng.random_bool(0.4),
            program_suspend: suspend && rng.random_bool(0.8),
            erase_suspend: suspend && rng.random_bool(0.8),
            // Taken from what is drawn already.
            suspend_limit: [16, 16, 1, 1000][geometry.blocks() as usize % 4],
            scheduler: one_of(
                rng,
                &[
                    SchedulerKind::Fifo,
                    SchedulerKind::ReadsFirst,
                    SchedulerKind::HostFirst { starvation: Nanos(100_000) },
                    SchedulerKind::HostFirst { starvation: Nanos(20_000_000) },
                ],
            ),
            oob: OobUse::Free,
            faults: Faults::default(),
        },
        user_bytes: u64::from(mapping_unit),
        interface: InterfaceConfig {
            kind: if sata { InterfaceKind::Sata } else { InterfaceKind::Nvme },
            queues: if sata { 1 } else { rng.random_range(1..=4) },
            queue_depth: rng.random_range(1..=32),
            bandwidth: one_of(rng, &[0, 0, 500_000_000]),
            command_overhead: Nanos(one_of(rng, &[0, 0, 1000])),
            read_overhead: Nanos::ZERO,
            write_overhead: Nanos::ZERO,
            processing: Nanos::ZERO,
            read_unwritten: ReadUnwritten::Error,
            command_codes: 0,
            answers: Answers::Words,
        },
        controller: ControllerConfig::default(),
        buffer: BufferConfig {
            policy: one_of(rng, &names("buffer.policy")).to_string(),
            bytes: u64::from(mapping_unit) * one_of(rng, &[1, 2, 5, 16, 40]) + 512 * rng.random_range(0..3),
            latency: Nanos(one_of(rng, &[0, 0, 2000])),
            // Taken from what is drawn already, so that a seed's case is what it was before there were these keys.
            destage: DestageConfig {
                when: [Destage::OnDemand, Destage::Watermark]
                    [(geometry.planes() + geometry.pages_per_block) as usize % 2],
                high_percent: [1, 50, 80, 100][(geometry.blocks_per_plane % 4) as usize],
                low_percent: [0, 0, 25, 80][(geometry.blocks_per_plane % 4) as usize],
            },
            own: Settings::default()
                .with("mca_window", [1_u32, 3, 32][(geometry.blocks_per_plane % 3) as usize])
                .with("cflru_window_permille", [0_u32, 250, 1000][(geometry.blocks_per_plane % 3) as usize])
                .with("block_pages", [1_u32, 2, 5, 16][(geometry.pages_per_block % 4) as usize])
                .with("bplru_padding", geometry.blocks_per_plane.is_multiple_of(2))
                .with("lirs_hir_permille", [10_u32, 300, 1000][(geometry.planes() % 3) as usize]),
        },
        ftl: FtlConfig {
            design: drawn_design(&geometry, rng),
            mapping_unit,
            allocation: allocation(rng),
            separate_gc_frontier: separate,
            streams,
            owners: Owners::Oob,
            superblock: Superblock::None,
            parity: Parity::None,
            own: Settings::default(),
        },
        placement: drawn_placement(&geometry, streams),
        gc: GcConfig {
            victim: one_of(rng, &names("gc.victim")).to_string(),
            own: Settings::default().with("choices", rng.random_range(1..=4_u32)),
            free_blocks,
            background_free_blocks: one_of(rng, &[0, 0, free_blocks + 2]),
            // As the buffer's keys: from what is drawn already.
            pacing: if geometry.blocks_per_plane.is_multiple_of(2) { Pacing::Proportional } else { Pacing::Off },
            idle_after: Nanos(50_000),
            copyback: rng.random_bool(0.5),
            dynamic_wear_levelling: rng.random_bool(0.5),
            static_wear_threshold: one_of(rng, &[0, 0, 1, 4]),
        },
        timed: true,
        below_layers: false,
    };
    set_superblock(&mut config);
    let design = config.ftl.design.clone();
    draw_design(&mut config, &design, rng);
    draw_owners(&mut config);
    config
}

/// The flash controller, the processor and the read modes of a board such as the OpenSSD Jasmine, for one drive of four: taken from
/// what is drawn already, so that the case of most seeds is what it was before there were these.
fn draw_board(config: &mut DriveConfig, units: u64) {
    let geometry = &config.flash.geometry;
    let number = units + u64::from(geometry.blocks_per_plane + geometry.pages_per_block);
    if !number.is_multiple_of(4) {
        return;
    }
    let pick = |from: u64| (number / from) as usize;
    config.flash.scheduler =
        [SchedulerKind::InOrder, SchedulerKind::InOrder, SchedulerKind::SingleFifo, SchedulerKind::Fifo][pick(4) % 4];
    config.flash.checks_copyback = config.flash.copyback;
    let clock = [0, 87_500_000, 87_500_000, 1_000_000][pick(8) % 4];
    let cycles = |cycles: u32| if clock > 0 { cycles } else { 0 };
    config.controller = ControllerConfig {
        clock,
        command_cycles: cycles(300),
        map_entry_cycles: cycles([0, 70][pick(16) % 2]),
        operation_cycles: cycles([500, 0, 5_000][pick(4) % 3]),
        completion_cycles: cycles([0, 100][pick(8) % 2]),
        copy_bandwidth: [0, 339_000_000][pick(4) % 2],
        dram: 0,
        sram: 0,
        reads: [Reads::Gather, Reads::Page, Reads::Sectors][pick(4) % 3],
        gather_percent: [0, 50, 75, 100][pick(12) % 4],
    };
    let accepts = Drive::new(config, Options { seed: 1, contents: Contents::Nothing }).is_ok();
    if !accepts {
        // The design does not have the place of every unit in RAM.
        config.controller.reads = Reads::Page;
    }
}

/// One of the designs: now and then one of those that came later, taken from what is drawn already, so that the case of
/// most seeds is what it was before there were these.
fn drawn_design(geometry: &Geometry, rng: &mut Rng) -> String {
    let (even, seldom) = drawn_designs();
    let design = one_of(rng, &even);
    let number = geometry.pages_per_block + geometry.blocks_per_plane + geometry.planes();
    let later = seldom.iter().find(|(_, one_in)| number.is_multiple_of(*one_in));
    later.map_or(design, |(design, _)| design).to_string()
}

/// One of the placement policies for a drive with streams to choose from: taken from what is drawn already.
fn drawn_placement(geometry: &Geometry, streams: u32) -> PlacementConfig {
    let (known, number) = (names("placement.policy"), (geometry.blocks_per_plane + geometry.pages_per_block) as usize);
    if streams < 2 {
        return PlacementConfig::default();
    }
    let own = Settings::default().with("hot_age", [1_u32, 20, 50, 100][number / known.len() % 4]);
    PlacementConfig { policy: known[number % known.len()].to_string(), own }
}

/// Superblocks for most drives whose allocation allows them: taken from what is drawn already.
pub fn set_superblock(config: &mut DriveConfig) {
    let kinds = [Superblock::None, Superblock::Die, Superblock::Drive, Superblock::None, Superblock::Drive];
    config.ftl.superblock = match config.ftl.allocation {
        Allocation::Static(_) => Superblock::None,
        _ => kinds[(config.flash.geometry.blocks_per_plane % 5) as usize],
    };
    config.gc.copyback &= config.ftl.superblock == Superblock::None;
    set_parity(config);
}

/// Parity for two thirds of the drives whose superblocks allow it: taken from what is drawn already.
fn set_parity(config: &mut DriveConfig) {
    let geometry = &config.flash.geometry;
    let wide = config.ftl.superblock == Superblock::Drive && geometry.dies() > 1;
    config.ftl.parity = match (geometry.pages_per_block + geometry.blocks_per_plane) % 3 {
        0 => Parity::None,
        1 if wide => Parity::Die,
        _ if wide || config.ftl.superblock != Superblock::None && geometry.planes_per_die > 1 => Parity::Page,
        _ => Parity::None,
    };
}

/// A drive of one channel, one die, two planes and a handful of pages, on which short sequences are tried exhaustively.
pub fn handful() -> DriveConfig {
    let fixed = |us: u64| Latency { min: Nanos::from_us(us), max: Nanos::from_us(us) };
    DriveConfig {
        name: "handful".to_string(),
        flash: FlashConfig {
            geometry: Geometry {
                channels: 1,
                chips_per_channel: 1,
                dies_per_chip: 1,
                planes_per_die: 1,
                blocks_per_plane: 6,
                pages_per_block: 2,
                page_bytes: 1024,
                oob_bytes: 32,
            },
            timing: Timing {
                read: vec![fixed(50)],
                program: vec![fixed(500)],
                erase: fixed(3000),
                command: Nanos(100),
                transfer: Nanos(10_000),
                suspend: Nanos(5000),
                resume: Nanos(5000),
            },
            multi_plane: MultiPlane::Off,
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
        user_bytes: 1024,
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
            policy: "none".to_string(),
            bytes: 4096,
            latency: Nanos::ZERO,
            destage: DestageConfig::ON_DEMAND,
            own: Settings::default().with("block_pages", 64_u32),
        },
        ftl: FtlConfig {
            design: names("ftl.design")[0].to_string(),
            mapping_unit: 1024,
            allocation: Allocation::Dynamic,
            separate_gc_frontier: false,
            streams: 1,
            owners: Owners::Oob,
            superblock: Superblock::None,
            parity: Parity::None,
            own: Settings::default(),
        },
        placement: PlacementConfig::default(),
        gc: GcConfig {
            victim: "greedy".to_string(),
            own: Settings::default().with("choices", 2_u32),
            free_blocks: 2,
            background_free_blocks: 0,
            pacing: Pacing::Off,
            idle_after: Nanos::ZERO,
            copyback: false,
            dynamic_wear_levelling: false,
            static_wear_threshold: 0,
        },
        timed: true,
        below_layers: false,
    }
}
