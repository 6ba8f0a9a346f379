//! A channel carries one transfer at a time, dies work in parallel, and an observer changes nothing.

use proptest::prelude::*;
use ssdlab_base::Nanos;
use ssdlab_flash::{Cause, Class, DieId, FlashConfig, Latency, MultiPlane, OpKind, Ppn, Resource, SchedulerKind, Span};

use crate::support::*;

#[test]
fn dies_work_in_parallel_and_share_the_channel() {
    let mut bench = Bench::new(&chips(1, 3, 1));
    let recorder = Recorder::watch(&mut bench.flash);
    let programs: Vec<u32> = (0..3).map(|die| bench.program(die * 4, 0)).collect();
    for (index, program) in programs.into_iter().enumerate() {
        bench.assert_ends_at(program, (index as u64 + 1) * DATA_IN + PROGRAM);
    }
    let seen = recorder.seen();
    seen.check(&bench.flash);
    let transfers: Vec<_> = seen.spans.iter().filter(|span| span.resource == Resource::Channel(0)).collect();
    assert_eq!(transfers.len(), 3);
    for (index, span) in transfers.iter().enumerate() {
        assert_eq!((span.start.0, span.end.0), (index as u64 * DATA_IN, (index as u64 + 1) * DATA_IN));
        assert_eq!((span.kind, span.cause, span.planes), (OpKind::Program, Cause::Host, 1));
        assert_eq!(span.ppn, Ppn(index as u32 * 4 * 16));
    }
}

#[test]
fn commands_go_before_data_on_the_channel() {
    // Die 0 programs; meanwhile die 1 wants to send data in and die 2 a read's command: the command is sent first.
    let mut bench = Bench::new(&chips(1, 3, 1));
    bench.fill(8, 1);
    bench.program(0, 0);
    let program = bench.program(4, 0);
    let read = bench.read(8, 0);
    bench.run_until(DATA_IN + COMMAND + DATA_IN);
    assert_eq!(bench.flash.busy_at(Nanos(bench.now)).0, [Nanos(bench.now)]);
    bench.assert_ends_at(read, DATA_IN + COMMAND + READ + TRANSFER);
    bench.assert_ends_at(program, DATA_IN + COMMAND + DATA_IN + PROGRAM);
}

#[test]
fn the_ready_busy_line_is_low_for_the_array_and_not_for_the_channel() {
    let mut bench = Bench::new(&chips(1, 1, 2));
    let recorder = Recorder::watch(&mut bench.flash);
    bench.fill(0, 1);
    bench.fill(4, 1);
    bench.read(0, 0);
    bench.read(4, 0);
    let end = bench.run();
    bench.erase(1);
    bench.run();
    let edges: Vec<_> = recorder.seen().edges.iter().map(|(die, at, busy)| (die.0, at.0, *busy)).collect();
    let read = 2 * COMMAND;
    let erase = end + COMMAND;
    assert_eq!(edges, [(0, read, true), (0, read + READ, false), (0, erase, true), (0, erase + ERASE, false)]);
    let arrays: Vec<u32> = recorder
        .seen()
        .spans
        .iter()
        .filter(|span| span.resource == Resource::Die(DieId(0)))
        .map(|span| span.planes)
        .collect();
    assert_eq!(arrays, [2, 1]);
}

#[test]
fn busy_time_at_a_moment_counts_what_runs_up_to_then() {
    let mut bench = Bench::new(&chips(1, 1, 1));
    bench.program(0, 0);
    for now in [0, 1, DATA_IN - 1, DATA_IN, DATA_IN + 1, PROGRAM_PAGE - 1, PROGRAM_PAGE, PROGRAM_PAGE + 100] {
        bench.run_until(now);
        let (channels, dies) = bench.flash.busy_at(Nanos(now));
        assert_eq!(channels, [Nanos(now.min(DATA_IN))]);
        assert_eq!(dies, [Nanos(now.saturating_sub(DATA_IN).min(PROGRAM))]);
    }
}

/// One thing asked of the chips, in the rules' own terms: `pick` chooses among what is allowed.
#[derive(Clone, Debug)]
struct Ask {
    pick: u8,
    plane: u8,
    page: u8,
    wait: u32,
}

fn asks() -> impl Strategy<Value = Vec<Ask>> {
    let ask = (any::<u8>(), any::<u8>(), any::<u8>(), 0u32..60_000).prop_map(|(pick, plane, page, wait)| Ask {
        pick,
        plane,
        page,
        wait,
    });
    prop::collection::vec(ask, 1..250)
}

fn configs() -> impl Strategy<Value = FlashConfig> {
    let scheduler = prop_oneof![
        Just(SchedulerKind::Fifo),
        Just(SchedulerKind::ReadsFirst),
        Just(SchedulerKind::SingleFifo),
        Just(SchedulerKind::InOrder),
        (0u64..2_000_000).prop_map(|starvation| SchedulerKind::HostFirst { starvation: Nanos(starvation) }),
    ];
    let multi_plane = prop_oneof![Just(MultiPlane::Off), Just(MultiPlane::SameOffset), Just(MultiPlane::Relaxed)];
    (1u32..4, 1u32..4, 1u32..4, scheduler, multi_plane, any::<[bool; 4]>(), 0u64..3).prop_map(
        |(channels, ways, planes, scheduler, multi_plane, [cache, program, erase, range], zero)| {
            let mut config = chips(channels, ways, planes);
            config.scheduler = scheduler;
            config.multi_plane = multi_plane;
            config.cache_program = cache;
            config.checks_copyback = program != erase;
            config.program_suspend = program;
            config.erase_suspend = erase;
            if range {
                config.timing.read = vec![Latency { min: Nanos(1), max: Nanos(2 * READ) }, fixed(READ)];
                config.timing.program = vec![fixed(PROGRAM), Latency { min: Nanos(PROGRAM), max: Nanos(PROGRAM + 9) }];
            }
            match zero {
                1 => (config.timing.command, config.timing.transfer) = (Nanos::ZERO, Nanos::ZERO),
                2 => (config.timing.suspend, config.timing.resume) = (Nanos::ZERO, Nanos::ZERO),
                _ => {}
            }
            config
        },
    )
}

/// What goes to the chips crosses the channels one behind the other. Reads are left out, and copybacks where their pages go to the ECC:
/// data comes back the same way.
fn assert_one_is_sent_at_a_time(config: &FlashConfig, seen: &Seen) {
    let comes_back = |kind| kind == OpKind::Read || kind == OpKind::Copyback && config.checks_copyback;
    let is_sent = |span: &&Span| matches!(span.resource, Resource::Channel(_)) && !comes_back(span.kind);
    let mut sent: Vec<&Span> = seen.spans.iter().filter(is_sent).collect();
    sent.sort_by_key(|span| (span.start, span.end));
    for pair in sent.windows(2) {
        assert!(pair[0].end <= pair[1].start, "two are sent at a time: {pair:?}");
    }
}

/// Asks for whatever `asks` says, as far as a controller may; returns what ended when, and what was seen.
fn play(config: &FlashConfig, asks: &[Ask], watch: bool) -> (Vec<(u32, u64)>, Vec<Vec<Nanos>>, Seen) {
    let mut bench = Bench::new(config);
    let recorder = watch.then(|| Recorder::watch(&mut bench.flash));
    let planes = config.geometry.planes();
    // Each plane: block 0 is written by the host, block 1 by relocation, block 2 is read only, block 3 is erased.
    let mut next = vec![[0_u32; 2]; planes as usize];
    for plane in 0..planes {
        bench.fill(plane * 4 + 2, 16);
    }
    let mut tokens = Vec::new();
    for ask in asks {
        let plane = u32::from(ask.plane) % planes;
        let base = plane * 4;
        let page = u32::from(ask.page) % 16;
        let written = &mut next[plane as usize];
        let token = match ask.pick % 8 {
            0 | 1 => Some(bench.read(base + 2, page)),
            2 => Some(bench.submit(OpKind::Read, Class::GcRead, base + 2, page, PAGE / 2)),
            3 if written[0] < 16 => {
                written[0] += 1;
                Some(bench.program(base, written[0] - 1))
            }
            4 if written[1] < 16 => {
                written[1] += 1;
                Some(bench.submit(OpKind::Program, Class::GcWrite, base + 1, written[1] - 1, PAGE))
            }
            5 if written[1] < 16 => {
                written[1] += 1;
                let source = (base + 2) * 16 + page;
                Some(bench.submit_full(OpKind::Copyback, Class::GcWrite, base + 1, written[1] - 1, 0, Ppn(source), 0).0)
            }
            6 => Some(bench.erase(base + 3)),
            7 if written[0] < 16 => {
                written[0] += 1;
                let (_, read) = bench.submit_full(
                    OpKind::Read,
                    Class::HostRead,
                    (plane + 1) % planes * 4 + 2,
                    page,
                    512,
                    Ppn(0),
                    0,
                );
                let (token, op) =
                    bench.submit_full(OpKind::Program, Class::HostWrite, base, written[0] - 1, PAGE, Ppn::NONE, 1);
                bench.flash.link(read, op);
                Some(token)
            }
            _ => None,
        };
        tokens.extend(token);
        let now = bench.now + u64::from(ask.wait) * u64::from(ask.pick % 3);
        bench.run_until(now);
        let (channels, dies) = bench.flash.busy_at(Nanos(now));
        assert!(channels.iter().chain(&dies).all(|busy| busy.0 <= now), "nothing is busy for longer than there was");
    }
    bench.run();
    let ended = tokens.iter().map(|token| (*token, bench.end(*token).expect("all ended"))).collect();
    let (channels, dies) = bench.flash.busy();
    let seen = recorder.map(|recorder| recorder.seen()).unwrap_or_default();
    if watch {
        seen.check(&bench.flash);
        if config.scheduler == SchedulerKind::SingleFifo {
            assert_one_is_sent_at_a_time(config, &seen);
        }
    }
    (ended, vec![channels, dies], seen)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Whatever is asked, on whatever chips: everything ends, and resources are used by one at a time.
    #[test]
    fn every_recording_keeps_the_laws_and_watching_changes_nothing(config in configs(), asks in asks()) {
        let (ended, busy, _) = play(&config, &asks, true);
        let (unwatched, unwatched_busy, _) = play(&config, &asks, false);
        prop_assert_eq!(ended, unwatched);
        prop_assert_eq!(busy, unwatched_busy);
    }

    /// Two runs with one seed give one recording.
    #[test]
    fn the_same_run_twice_is_the_same_recording(config in configs(), asks in asks()) {
        prop_assert_eq!(play(&config, &asks, true), play(&config, &asks, true));
    }
}
