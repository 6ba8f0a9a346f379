//! The sentences that a run ends with, against runs whose answer is known.

use ssdlab_base::Nanos;
use ssdlab_device::{Allocation, DriveConfig, Pacing, Settings, Superblock};
use ssdlab_flash::{Latency, SchedulerKind};
use ssdlab_host::Host;
use ssdlab_lab::conclusions::conclusions;
use ssdlab_lab::result::MapCache;
use ssdlab_lab::{Breakdown, Experiment, Preconditioning, RunResult};

use crate::common::{Random, drive, duts, experiment, run};

fn with_breakdown(drives: &[DriveConfig], workload: Random, preconditioning: Preconditioning<'_>) -> RunResult {
    let breakdown = Some(Breakdown { slowest: 0 });
    run(&Experiment { breakdown, ..experiment(&duts(drives), &workload, preconditioning) })
}

fn only<'a>(said: &'a [String], words: &str) -> &'a str {
    let mut found = said.iter().filter(|sentence| sentence.contains(words));
    let sentence = found.next().unwrap_or_else(|| panic!("'{words}' is not in {said:#?}"));
    assert!(found.next().is_none(), "'{words}' is twice in {said:#?}");
    sentence
}

#[test]
fn the_slowest_drive_is_named_with_what_makes_it_slow() {
    // Nothing is read or collected: a write of the slow drive is its program, four times as long.
    let quick = drive("quick");
    let mut slow = drive("slow");
    slow.flash.timing.program = vec![Latency { min: Nanos::from_ms(2), max: Nanos::from_ms(2) }];
    let workload = Random { depth: 1, ..Random::writes(2_000) };
    let result = with_breakdown(&[quick.clone(), slow.clone()], workload, Preconditioning::None);
    let mean = |index: usize| result.devices[index].latency_ns.all.expect("requests").mean;
    let ratio = format!("{:.2} times as long as on quick", mean(1) / mean(0));
    let said = conclusions(&result);
    let sentence = &said[0];
    assert!(sentence.starts_with("slow is the slowest") && sentence.contains(&ratio), "{sentence}");
    assert!(sentence.contains(" % array program"), "{sentence}");
    // Without a breakdown what is counted in any case says it.
    let result = run(&experiment(&duts(&[quick.clone(), slow]), &workload, Preconditioning::None));
    let busy = result.devices[1].utilization.dies.iter().sum::<f64>() / 4.0 * 100.0;
    let sentence = &conclusions(&result)[0];
    assert!(sentence.contains(&format!("dies are busy for {busy:.1} % of the run")), "{sentence}");
    // Equal drives are not told apart.
    let twin = DriveConfig { name: "twin".to_string(), ..quick.clone() };
    let sentence = conclusions(&run(&experiment(&duts(&[quick, twin]), &workload, Preconditioning::None))).remove(0);
    assert!(sentence.contains("on all 2 drives within 5 %"), "{sentence}");
}

/// Reads that gain what writes lose leave the mean over both as it was.
#[test]
fn a_kind_of_request_that_is_slow_on_another_drive_is_named() {
    let alike = ["one", "two"].map(drive);
    let mut result = run(&experiment(&duts(&alike), &Random::mixed(20_000), Preconditioning::Fill));
    assert!(conclusions(&result).iter().all(|sentence| !sentence.starts_with("But ")));
    let [one, two] = &mut result.devices[..] else { panic!("two drives") };
    one.latency_ns.all.as_mut().expect("requests").mean *= 1.01;
    let write = two.latency_ns.write.as_mut().expect("writes");
    write.mean = 1000.0 * one.latency_ns.write.expect("writes").mean;
    write.p999 = 1000 * one.latency_ns.write.expect("writes").p999.max(1) + 1000 * write.p50;
    let said = conclusions(&result);
    let sentence = only(&said, "But writes take");
    assert!(sentence.ends_with(" on two, 1,000 times as long as on one."), "{sentence}");
    // The tail is that of the drive where it is longest.
    only(&said, "of the writes of two take");
}

#[test]
fn waits_of_a_paced_drive_are_not_called_waits_for_a_free_block() {
    let mut paced = drive("paced");
    paced.gc.pacing = Pacing::Proportional;
    let drives = duts(&[paced]);
    let workload = Random::writes(60_000);
    for breakdown in [None, Some(Breakdown { slowest: 0 })] {
        let said =
            conclusions(&run(&Experiment { breakdown, ..experiment(&drives, &workload, Preconditioning::Fill) }));
        assert!(said[0].contains("for garbage collection to keep pace"), "{said:#?}");
        assert!(!said[0].contains("for a free block"), "{said:#?}");
    }
}

#[test]
fn what_a_written_byte_costs_is_said_by_cause_and_beside_theory() {
    let mut greedy = drive("greedy");
    greedy.ftl.superblock = Superblock::None;
    let result = run(&experiment(&duts(&[greedy]), &Random::writes(60_000), Preconditioning::Fill));
    let device = &result.devices[0];
    let amplification = device.write_amplification.as_ref().expect("writes");
    let gc = amplification.by_cause.get("gc").copied().expect("it collects");
    let said = conclusions(&result);
    let sentence = only(&said, "Write amplification");
    let expected =
        format!("Write amplification is {:.3}: {gc:.3} by garbage collection, 1.000 for the host", amplification.total);
    assert!(sentence.starts_with(&expected), "{sentence}");
    // Of a workload without writes nothing is said.
    let reads = Random { read_percent: 100, ..Random::writes(2_000) };
    let said = conclusions(&run(&experiment(&duts(&[drive("read")]), &reads, Preconditioning::Fill)));
    assert!(said.iter().all(|sentence| !sentence.contains("amplification")), "{said:#?}");
}

/// Why one policy costs more than another was in result.json alone.
#[test]
fn drives_that_differ_by_their_victim_policy_are_told_how_valid_their_victims_were() {
    let of_policy = |victim: &str| {
        let mut config = drive(victim);
        config.gc.victim = victim.to_string();
        config
    };
    let drives = ["greedy", "fifo"].map(of_policy);
    let result = run(&experiment(&duts(&drives), &Random::writes(60_000), Preconditioning::Fill));
    let [greedy, fifo] = [0, 1].map(|index| {
        let share = result.devices[index].victim_valid_share().expect("it collects");
        assert_eq!(Some(&share), result.devices[index].design.get("victim_valid_share"));
        share
    });
    assert!(fifo > greedy, "{fifo} and {greedy}");
    let expected = format!(
        "The drives differ only in gc.victim: a victim of fifo is {:.1} % valid when it is chosen, one of greedy {:.1} %; \
         what is valid has to be moved.",
        fifo * 100.0,
        greedy * 100.0
    );
    assert_eq!(only(&conclusions(&result), "a victim of"), expected);
    // It is not the reason alone where something else differs, and none where nothing was collected.
    let mut larger = drives.clone();
    larger[1].user_bytes /= 2;
    let others = [
        run(&experiment(&duts(&larger), &Random::writes(60_000), Preconditioning::Fill)),
        run(&experiment(&duts(&drives), &Random::writes(500), Preconditioning::None)),
    ];
    for said in others.iter().map(conclusions) {
        assert!(!said.iter().any(|sentence| sentence.contains("a victim of")), "{said:#?}");
    }
}

/// What layers add is told apart from what the workload wrote, and copies from records and parts of units.
#[test]
fn what_layers_add_is_said_layer_by_layer() {
    let host = |text: &str| Host::parse(text, "host.toml").expect("a host");
    let mut mirrored = drive("mirrored");
    mirrored.flash.geometry.blocks_per_plane = 32;
    mirrored.user_bytes = 8 * 4 * 64 * mirrored.flash.geometry.page_bytes as u64;
    let mut appended = mirrored.clone();
    (appended.ftl.design, appended.ftl.allocation) = ("aftl".to_string(), Allocation::Dynamic);
    appended.user_bytes *= 3;
    let stacks = [
        (mirrored, host("[[layer]]\nkind = \"mirror\"\nregion = \"64k\"\n")),
        (appended, host("[[layer]]\nkind = \"append\"\n")),
    ];
    let [mut mirror, append] = stacks.map(|(config, host)| {
        let (drives, writes) = (duts(&[config]), Random::writes(30_000));
        run(&Experiment { host: Some(&host), ..experiment(&drives, &writes, Preconditioning::Fill) })
    });
    for result in [&mirror, &append] {
        let device = &result.devices[0];
        let said = conclusions(result);
        let sentence = only(&said, "Write amplification");
        // The parts add up: nothing is counted twice.
        let numbers: Vec<f64> = sentence.split([' ', ':']).filter_map(|word| word.parse().ok()).collect();
        let parts: f64 = numbers[1..].iter().sum();
        let total = device.write_amplification.as_ref().expect("it wrote").total;
        assert!((parts - total).abs() < 0.005, "{parts} of {total}: {sentence}");
        assert!(sentence.contains("1.000 for the workload"), "{sentence}");
    }
    // Buffers that took part of what the layers sent leave nothing to tell apart.
    let mut absorbed = mirror.clone();
    let amplification = absorbed.devices[0].write_amplification.as_mut().expect("it wrote");
    *amplification.by_cause.get_mut("host").expect("the host's") = 0.4;
    let sentence = only(&conclusions(&absorbed), "Write amplification").to_string();
    assert!(sentence.contains("0.400 for the host") && !sentence.contains("by the layer"), "{sentence}");
    // Each side has its own entry, and together they are the stack's; a drive alone is the stack.
    let sides = &mirror.devices[0].drives;
    assert_eq!(sides.iter().map(|side| side.name.as_str()).collect::<Vec<_>>(), ["mirrored.0", "mirrored.1"]);
    let (all, own) = (&mirror.devices[0].flash.programs, |side: usize| &sides[side].flash.programs);
    assert_eq!((own(0).total + own(1).total, own(0).total > 0), (all.total, true));
    for (cause, count) in &all.by_cause {
        assert_eq!(own(0).by_cause[cause] + own(1).by_cause[cause], *count, "{cause}");
    }
    assert!(append.devices[0].drives.is_empty());
    // Its drives wait side by side, each for its own commands, longer than the requests take together.
    mirror.devices[0].gc.stall_ns = u64::MAX / 2;
    mirror.devices[0].map_cache = Some(MapCache { wait_ns: u64::MAX / 2, ..MapCache::default() });
    let said = conclusions(&mirror);
    assert!(!said.iter().any(|sentence| sentence.contains("of which it waits")), "{said:#?}");
    assert!(only(&said, "Write amplification").contains("1.000 by the layer mirror"), "{said:#?}");
    let device = &append.devices[0];
    let unit = f64::from(drive("appended").ftl.mapping_unit);
    let copied = device.host_layers[0].figures["copied_units"] * unit / device.bytes.write as f64;
    assert!(copied > 0.1, "{copied}");
    let said = conclusions(&append);
    let expected = format!("{copied:.3} for copies by the layer append");
    assert!(only(&said, "Write amplification").contains(&expected), "{expected}: {said:#?}");
}

/// A user of a stack sees one capacity: shares of it, and of what the drives took, are never more than a whole.
#[test]
fn figures_of_a_stack_are_of_its_own_capacity_and_commands() {
    let mut config = drive("below");
    config.flash.geometry.blocks_per_plane = 64;
    config.user_bytes = 36 * 4 * 64 * u64::from(config.flash.geometry.page_bytes);
    config.ftl.design = "dftl".to_string();
    config.ftl.own = Settings::default().with("map_page", 512_u32).with("map_cache", 8 * 512_u64);
    let mirror = "kind = \"mirror\"\nregion = \"64k\"\n";
    for (text, drives, below) in [
        (format!("[[layer]]\n{mirror}"), 2, false),
        ("[[layer]]\nkind = \"stripe\"\ndrives = 2\n".to_string(), 2, true),
        (format!("[[layer]]\nkind = \"stripe\"\n[[layer.below]]\n{mirror}[[layer.below]]\n{mirror}"), 4, false),
    ] {
        let host = Host::parse(&text, "host.toml").expect("a host");
        let (duts, writes) = (duts(&[config.clone()]), Random::writes(4_000));
        let experiment = experiment(&duts, &writes, Preconditioning::Fill);
        let result = run(&Experiment { host: Some(&host), precondition_below: below, ..experiment });
        let device = &result.devices[0];
        assert_eq!(device.precondition.drive_writes(), Some(1.0), "{text}: {:?}", device.precondition);
        let table = ssdlab_lab::table::render(&result);
        let row = |label: &str| {
            let line = table.lines().find(|line| line.trim_start().starts_with(label));
            line.and_then(|line| line.rsplit("  ").next()).unwrap_or_else(|| panic!("{label}: {table}")).trim()
        };
        assert_eq!(row("drive writes"), "1.00", "{text}");
        let waited = device.map_cache.as_ref().expect("a cached map").waited_commands as f64;
        // The layers right above the drives have none below them.
        let last = &device.host_layers[if drives == 4 { 1 } else { 0 }..];
        let taken: u64 = last.iter().flat_map(|layer| layer.below.requests).sum();
        assert!(taken >= drives / 2 * 2_000 && waited > 0.0, "{taken} commands, {waited} waited");
        let shown: f64 = row("of all commands").trim_end_matches(" %").parse().expect("a share");
        assert!((shown - waited / taken as f64 * 100.0).abs() < 1.0, "{text}: {shown} % of {waited} / {taken}");
        assert_eq!(row("sent by the layers").replace(',', ""), taken.to_string(), "{text}");
    }
}

/// What is proposed changes the tail for the better.
#[test]
fn the_key_that_is_named_makes_the_tail_shorter() {
    let mixed = Random { read_percent: 50, depth: 8, ..Random::writes(60_000) };
    let p999 = |result: &RunResult| result.devices[0].latency_ns.read.expect("reads").p999;
    let plain = with_breakdown(&[drive("plain")], mixed, Preconditioning::Fill);
    let said = conclusions(&plain);
    let sentence = only(&said, "of the reads");
    assert!(sentence.contains("behind "), "{sentence}");
    let mut better = drive("better");
    let key = sentence.split("; ").last().expect("a remedy");
    match key {
        _ if key.starts_with("flash.scheduler = \"reads-first\"") => better.flash.scheduler = SchedulerKind::ReadsFirst,
        _ if key.starts_with("flash.erase_suspend") => better.flash.erase_suspend = true,
        _ => panic!("another key: {sentence}"),
    }
    let changed = with_breakdown(&[better.clone()], mixed, Preconditioning::Fill);
    assert!(p999(&changed) < p999(&plain), "{} and {}", p999(&changed), p999(&plain));
    // A drive that has every key that helps is told of none.
    better.flash.scheduler = SchedulerKind::ReadsFirst;
    (better.flash.erase_suspend, better.flash.program_suspend) = (true, true);
    let said = conclusions(&with_breakdown(&[better], mixed, Preconditioning::Fill));
    assert!(
        said.iter().filter(|sentence| sentence.contains("of the reads")).all(|s| !s.contains("flash.")),
        "{said:#?}"
    );
}

/// The advice said what reads gain, and nothing of what writes pay.
#[test]
fn reads_first_is_proposed_with_what_it_costs() {
    let mixed = Random { read_percent: 50, depth: 8, ..Random::writes(60_000) };
    // Reads wait behind programs, not behind erases.
    let mut drive = drive("plain");
    drive.flash.timing.erase = Latency { min: Nanos::from_us(50), max: Nanos::from_us(50) };
    let plain = with_breakdown(&[drive.clone()], mixed, Preconditioning::Fill);
    let said = conclusions(&plain);
    let sentence = only(&said, "of the reads");
    assert!(
        sentence.contains("; flash.scheduler = \"reads-first\" lets reads go before programs and erases"),
        "{sentence}"
    );
    assert!(sentence.ends_with(": writes take longer, and blocks are freed later."), "{sentence}");
    drive.flash.scheduler = SchedulerKind::ReadsFirst;
    let changed = with_breakdown(&[drive], mixed, Preconditioning::Fill);
    let mean = |result: &RunResult| {
        let latencies = &result.devices[0].latency_ns;
        [latencies.read, latencies.write].map(|of| of.expect("requests").mean)
    };
    let ([read, write], [read_before, write_before]) = (mean(&changed), mean(&plain));
    assert!(read < read_before && write > write_before, "{read} {write}, before {read_before} {write_before}");
}

/// What a drive that never suspends does not state has to be named too: without it the proposed description is refused.
#[test]
fn a_suspension_is_proposed_with_the_times_that_it_needs() {
    let mixed = Random { read_percent: 50, depth: 8, ..Random::writes(60_000) };
    let mut drive = drive("plain");
    drive.flash.scheduler = SchedulerKind::ReadsFirst;
    let stated = conclusions(&with_breakdown(&[drive.clone()], mixed, Preconditioning::Fill));
    (drive.flash.timing.suspend, drive.flash.timing.resume) = (Nanos::ZERO, Nanos::ZERO);
    let without = conclusions(&with_breakdown(&[drive], mixed, Preconditioning::Fill));
    let (stated, without) = (only(&stated, "of the reads"), only(&without, "of the reads"));
    assert!(stated.contains("_suspend = true lets reads interrupt "), "{stated}");
    assert!(
        without.contains("_suspend = true, with flash.timing.suspend and flash.timing.resume, lets reads interrupt "),
        "{without}"
    );
}

/// A flush writes out all of a full buffer, a write waits for a page of it, and a read for a page of flash.
#[test]
fn flushes_that_are_slowest_are_named_first() {
    let mut buffered = drive("buffered");
    (buffered.buffer.policy, buffered.buffer.bytes) = ("lru".to_string(), 1 << 20);
    buffered.buffer.destage.when = ssdlab_device::Destage::OnDemand;
    let drives = [buffered];
    let workload = Random { depth: 1, flush_every: 4_000, trim_every: 90, ..Random::writes(20_000) };
    let result = with_breakdown(&drives, workload, Preconditioning::None);
    let flush = result.devices[0].latency_ns.flush.expect("flushes");
    let said = conclusions(&result);
    let at = |words: &str| said.iter().position(|sentence| sentence.contains(words));
    let takes = Nanos(flush.mean.round() as u64);
    let first = at(&format!("The 5 flushes take {takes} on average: ")).unwrap_or_else(|| panic!("{said:#?}"));
    assert!(at("of the writes take ").is_some_and(|writes| writes > first), "{said:#?}");
    // A trim takes no more than the command.
    assert_eq!(at(" trims "), None, "{said:#?}");
    // Without a breakdown they are named beside the writes.
    let said = conclusions(&run(&experiment(&duts(&drives), &workload, Preconditioning::None)));
    let sentence = only(&said, "The flushes take ");
    assert!(sentence.contains(&takes.to_string()) && sentence.contains(" times as long as the writes"), "{sentence}");
    // Where a flush finds nothing to write, it is not worth a sentence.
    let said = conclusions(&with_breakdown(&[drive("plain")], workload, Preconditioning::None));
    assert!(said.iter().all(|sentence| !sentence.contains("flush")), "{said:#?}");
}

#[test]
fn writes_that_wait_for_the_buffer_are_told_of_its_key() {
    let mut buffered = drive("buffered");
    (buffered.buffer.policy, buffered.buffer.bytes) = ("lru".to_string(), 1 << 20);
    buffered.buffer.destage.when = ssdlab_device::Destage::OnDemand;
    let said = conclusions(&with_breakdown(&[buffered], Random::writes(20_000), Preconditioning::None));
    let sentence = only(&said, "of the writes");
    assert!(
        sentence.contains(" for space in the write buffer") && sentence.contains("buffer.destage = \"watermark\""),
        "{sentence}"
    );
}

/// Behind a buffer that collection keeps full, a larger buffer does not help; keeping step does.
#[test]
fn writes_that_wait_for_collection_behind_the_buffer_are_told_of_pacing() {
    let mut buffered = drive("buffered");
    (buffered.buffer.policy, buffered.buffer.bytes) = ("lru".to_string(), 1 << 20);
    (buffered.buffer.destage.when, buffered.gc.pacing) = (ssdlab_device::Destage::Watermark, Pacing::Off);
    let workload = Random { depth: 16, ..Random::writes(60_000) };
    let off = with_breakdown(&[buffered.clone()], workload, Preconditioning::Fill);
    let said = conclusions(&off);
    let sentence = only(&said, "of the writes");
    assert!(sentence.contains("gc.pacing = \"proportional\""), "{sentence}");
    buffered.gc.pacing = Pacing::Proportional;
    let on = with_breakdown(&[buffered], workload, Preconditioning::Fill);
    let tail = |result: &RunResult| result.devices[0].latency_ns.write.expect("writes").p999;
    assert!(tail(&on) < tail(&off), "{} on, {} off", tail(&on), tail(&off));
    assert!(conclusions(&on).iter().all(|sentence| !sentence.contains("gc.pacing")), "{:#?}", conclusions(&on));
}

#[test]
fn a_lifetime_is_told_where_an_endurance_is_stated() {
    let workload = Random::writes(40_000);
    let mut rated = drive("rated");
    let said = conclusions(&run(&experiment(&duts(&[rated.clone()]), &workload, Preconditioning::Fill)));
    assert!(said.iter().all(|sentence| !sentence.contains("lasts")), "{said:#?}");
    rated.flash.faults.endurance = Some(3_000);
    let result = run(&experiment(&duts(&[rated]), &workload, Preconditioning::Fill));
    let device = &result.devices[0];
    let lasts = device.lifetime.expect("an endurance is stated");
    let amplification = device.write_amplification.as_ref().expect("writes").total;
    let expected = 3_000.0 * device.capacity.flash_bytes as f64 / amplification;
    assert!((lasts.written_bytes / expected - 1.0).abs() < 1e-9, "{lasts:?}");
    let years = lasts.written_bytes / device.throughput.write_bytes_per_s / 31_557_600.0;
    assert!((lasts.years.expect("it takes time") / years - 1.0).abs() < 1e-9, "{lasts:?}");
    only(&conclusions(&result), "The drive lasts");
    // What a written byte costs in the end is not known of a drive that collected nothing.
    let mut new = drive("new");
    new.flash.faults.endurance = Some(3_000);
    let said = conclusions(&run(&experiment(&duts(&[new]), &Random::writes(500), Preconditioning::None)));
    assert!(said.iter().all(|sentence| !sentence.contains("lasts")), "{said:#?}");
}

/// Days alone could not be found in the table, which has years.
#[test]
fn the_drives_that_last_longest_and_shortest_are_named() {
    let mut drives = ["one", "two", "three"].map(drive);
    for (drive, endurance) in drives.iter_mut().zip([3_000, 1_000, 2_000]) {
        drive.flash.faults.endurance = Some(endurance);
    }
    let result = run(&experiment(&duts(&drives), &Random::writes(40_000), Preconditioning::Fill));
    let said = conclusions(&result);
    let sentence = only(&said, "takes the most writes");
    let starts = "one takes the most writes until it is worn out, ";
    assert!(sentence.starts_with(starts) && sentence.contains("; two the fewest, "), "{sentence}");
    let table = ssdlab_lab::table::render(&result);
    let row = table.lines().find(|line| line.trim_start().starts_with("years at this rate")).expect(&table);
    for years in row.split_whitespace().skip(4).take(2) {
        assert!(sentence.contains(&format!("{years} years (")), "{sentence}\n{row}");
    }
    // Alike drives are not told apart.
    let said = conclusions(&run(&experiment(
        &duts(&drives.map(|drive| {
            let mut drive = drive;
            drive.flash.faults.endurance = Some(500);
            drive
        })),
        &Random::writes(40_000),
        Preconditioning::Fill,
    )));
    only(&said, "All 3 drives take as many writes within 5 %");
}

/// A repetition is not a drive: sentences have the mean over all and the name that they share.
#[test]
fn repetitions_are_one_drive() {
    let mut rated = drive("rated");
    rated.flash.faults.endurance = Some(3_000);
    let mut slow = DriveConfig { name: "slow".to_string(), ..rated.clone() };
    slow.flash.timing.program = vec![Latency { min: Nanos::from_ms(2), max: Nanos::from_ms(2) }];
    let drives = duts(&[rated, slow]);
    let once = |requests| run(&experiment(&drives, &Random::writes(requests), Preconditioning::Fill));
    let runs = [40_000, 50_000].map(once);
    let mean = |of: fn(&ssdlab_lab::DeviceResult) -> f64| {
        runs.iter().map(|run| of(&run.devices[1])).sum::<f64>() / runs.len() as f64
    };
    let latency = Nanos(mean(|slow| slow.latency_ns.all.expect("requests").mean).round() as u64);
    let amplification = mean(|slow| slow.write_amplification.as_ref().expect("writes").total);
    let said = conclusions(&ssdlab_lab::variants::merged(runs.to_vec()));
    assert_eq!(said[0], "What follows are means over 2 repetitions.");
    assert!(said.iter().all(|sentence| !sentence.contains('#')), "{said:#?}");
    let expected = format!("slow is the slowest: a request takes {latency} on average");
    assert!(said[1].starts_with(&expected), "{expected}: {said:#?}");
    only(&said, &format!("Write amplification is {amplification:.3} on all drives within 5 %"));
    // It is written more slowly, and lasts as long.
    only(&said, "All 2 drives take as many writes within 5 %");
}

/// Names come from outside: what a terminal would obey does not reach it, whichever sentence has the name.
#[test]
fn names_in_sentences_are_printable() {
    let drives = [drive("\x1b[31m one"), drive("\x1b[32m two")];
    let mut drives = duts(&drives);
    // The second overwrites more, collects, and so has another write amplification.
    drives[1].config.user_bytes = drives[1].config.user_bytes * 9 / 10 / 4096 * 4096;
    drives[0].config.flash.faults.endurance = Some(100);
    drives[1].config.flash.timing.program = vec![Latency { min: Nanos::from_ms(2), max: Nanos::from_ms(2) }];
    let said = conclusions(&run(&experiment(&drives, &Random::writes(60_000), Preconditioning::Fill))).join("\n");
    assert!(said.contains("is the slowest") && said.contains("is between") && said.contains("lasts"), "{said}");
    assert!(!said.contains('\x1b') && said.contains("\\u{1b}[31m one") && said.contains("\\u{1b}[32m two"), "{said}");
}

#[test]
fn a_run_without_requests_says_nothing() {
    let result = run(&experiment(&duts(&[drive("idle")]), &Random::writes(0), Preconditioning::None));
    assert_eq!(conclusions(&result), Vec::<String>::new());
}
