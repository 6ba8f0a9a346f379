//! When requests are sent: depth, rates, pauses, flushes, phases, run times.

use ssdlab_base::{Nanos, Op, Request};

use crate::fio_support::{count, jobs, run, spec};

const MIB: u64 = 1 << 20;
const CAPACITY: u64 = 64 * MIB;

fn times(requests: &[Request]) -> Vec<u64> {
    requests.iter().map(|request| request.at.0).collect()
}

#[test]
fn a_closed_loop_keeps_exactly_its_depth_in_flight() {
    let sent =
        run(&mut spec("rw=randread,bs=4k,iodepth=8,number_ios=80", CAPACITY, 1), CAPACITY, Nanos(1000), usize::MAX);
    let expected: Vec<u64> = (0..80).map(|index| index / 8 * 1000).collect();
    assert_eq!(times(&sent), expected);
}

#[test]
fn a_synchronous_engine_has_depth_one() {
    let mut workload = spec("rw=randread,bs=4k,iodepth=8,ioengine=psync,number_ios=10", CAPACITY, 1);
    assert!(workload.notes()[0].contains("psync"), "{:?}", workload.notes());
    let sent = run(&mut workload, CAPACITY, Nanos(1000), usize::MAX);
    assert_eq!(times(&sent), (0..10).map(|index| index * 1000).collect::<Vec<u64>>());
}

#[test]
fn a_rate_is_exact_in_virtual_time() {
    for (text, gap) in [
        ("rate_iops=10000", 100_000),
        ("rate=40960000", 100_000),
        ("rate_iops=10000,io_submit_mode=offload", 100_000),
        ("rate=4k", 1_000_000_000),
    ] {
        let text = format!("rw=randwrite,bs=4k,iodepth=4,number_ios=500,{text}");
        let sent = run(&mut spec(&text, CAPACITY, 1), CAPACITY, Nanos(20_000), usize::MAX);
        let expected: Vec<u64> = (0..500).map(|index| index * gap).collect();
        assert_eq!(times(&sent), expected, "{text}");
    }
}

#[test]
fn a_rate_that_does_not_divide_a_second_does_not_drift() {
    let text = "rw=randwrite,bs=4k,iodepth=4,number_ios=30001,io_size=1g,rate_iops=3000";
    let sent = run(&mut spec(text, CAPACITY, 1), CAPACITY, Nanos(20_000), usize::MAX);
    assert_eq!(sent[30_000].at, Nanos(10_000_000_000));
    assert_eq!(sent[1].at, Nanos(333_333));
}

#[test]
fn inline_submission_drains_before_it_sleeps_and_offload_does_not() {
    // A drive slower than the gap: offload keeps the rate to the nanosecond, inline catches up in bursts.
    let text = "rw=randwrite,bs=4k,iodepth=16,number_ios=100,rate_iops=10000";
    let offload =
        run(&mut spec(&format!("{text},io_submit_mode=offload"), CAPACITY, 1), CAPACITY, Nanos(450_000), usize::MAX);
    assert_eq!(times(&offload), (0..100).map(|index| index * 100_000).collect::<Vec<u64>>());
    let inline = run(&mut spec(text, CAPACITY, 1), CAPACITY, Nanos(450_000), usize::MAX);
    assert_eq!(times(&inline)[..7], [0, 450_000, 450_000, 450_000, 450_000, 900_000, 900_000]);
}

#[test]
fn directions_of_a_mix_keep_their_own_rates() {
    let text = "rw=randrw,bs=4k,iodepth=4,rate_iops=1000,500,runtime=2s,time_based";
    let sent = run(&mut spec(text, CAPACITY, 1), CAPACITY, Nanos(20_000), usize::MAX);
    assert!(count(&sent, Op::Read).abs_diff(2000) <= 2, "{}", count(&sent, Op::Read));
    assert!(count(&sent, Op::Write).abs_diff(1000) <= 2, "{}", count(&sent, Op::Write));
}

#[test]
fn poisson_arrivals_have_the_rate_and_exponential_gaps() {
    let text = "rw=randread,bs=4k,iodepth=64,number_ios=40001,norandommap,rate_iops=10000,rate_process=poisson,io_submit_mode=offload,io_size=1g";
    let sent = run(&mut spec(text, CAPACITY, 1), CAPACITY, Nanos(1000), usize::MAX);
    let mean = sent[40_000].at.0 as f64 / 40_000.0;
    assert!((mean / 100_000.0 - 1.0).abs() < 0.02, "mean gap {mean}");
    let long = sent.windows(2).filter(|pair| pair[1].at.0 - pair[0].at.0 > 100_000).count() as f64 / 40_000.0;
    assert!((long - (-1.0_f64).exp()).abs() < 0.01, "share of gaps above the mean: {long}");
}

#[test]
fn thinktime_pauses_after_the_queue_has_drained() {
    let text = "rw=write,bs=4k,iodepth=1,number_ios=6,thinktime=100,thinktime_blocks=2";
    let sent = run(&mut spec(text, CAPACITY, 1), CAPACITY, Nanos(1000), usize::MAX);
    assert_eq!(times(&sent), [0, 1000, 102_000, 103_000, 204_000, 205_000]);
    let text = "rw=write,bs=4k,iodepth=4,number_ios=8,thinktime=100us,thinktime_blocks=4,thinktime_blocks_type=issue";
    let sent = run(&mut spec(text, CAPACITY, 1), CAPACITY, Nanos(1000), usize::MAX);
    assert_eq!(times(&sent), [0, 0, 0, 0, 101_000, 101_000, 101_000, 101_000]);
}

#[test]
fn thinktime_by_time_alternates_work_and_pauses() {
    let text = "rw=write,bs=4k,thinktime=1ms,thinktime_iotime=1ms,runtime=10ms,time_based";
    let sent = run(&mut spec(text, CAPACITY, 1), CAPACITY, Nanos(100_000), usize::MAX);
    let pauses: Vec<u64> = times(&sent).windows(2).map(|pair| pair[1] - pair[0]).filter(|gap| *gap > 100_000).collect();
    assert!((4..=5).contains(&pauses.len()), "{pauses:?}");
    assert!(pauses.iter().all(|gap| *gap == 1_100_000 || *gap == 1_000_000), "{pauses:?}");
}

#[test]
fn a_flush_follows_every_n_writes_and_nothing_passes_it() {
    let text = "rw=randwrite,bs=4k,iodepth=8,fsync=3,number_ios=12";
    let sent = run(&mut spec(text, CAPACITY, 1), CAPACITY, Nanos(1000), usize::MAX);
    let ops: Vec<Op> = sent.iter().map(|r| r.op).collect();
    for (index, op) in ops.iter().enumerate() {
        assert_eq!(*op == Op::Flush, index % 4 == 3, "{ops:?}");
    }
    // As with fio, the last writes are not flushed unless end_fsync asks for it.
    assert_eq!(ops.len(), 15);
    // Writes are sent up to the flush; what follows it waits until it is done.
    assert_eq!(times(&sent)[..8], [0, 0, 0, 0, 1000, 1000, 1000, 1000]);
}

#[test]
fn a_mix_flushes_once_for_every_n_writes() {
    for mode in ["randrw", "randtrimwrite"] {
        let text = format!("rw={mode},bs=4k,iodepth=4,fsync=5,io_size=8m");
        let sent = run(&mut spec(&text, CAPACITY, 1), CAPACITY, Nanos(1000), usize::MAX);
        let mut writes = 0;
        for request in &sent {
            match request.op {
                Op::Write => writes += 1,
                Op::Flush => assert_eq!(writes % 5, 0),
                _ => {}
            }
        }
        assert_eq!(count(&sent, Op::Flush), (writes - 1) / 5, "{mode}");
    }
}

#[test]
fn with_io_uring_a_flush_is_one_more_request_in_the_queue() {
    let text = "rw=randwrite,bs=4k,iodepth=8,fsync=3,number_ios=12,ioengine=io_uring";
    let sent = run(&mut spec(text, CAPACITY, 1), CAPACITY, Nanos(1000), usize::MAX);
    assert_eq!(times(&sent)[..9], [0, 0, 0, 0, 0, 0, 0, 0, 1000]);
}

#[test]
fn a_flush_at_the_end_comes_when_everything_else_is_done() {
    for key in ["end_fsync=1", "fsync_on_close=1"] {
        let text = format!("rw=write,bs=4k,iodepth=4,number_ios=4,{key}");
        let sent = run(&mut spec(&text, CAPACITY, 1), CAPACITY, Nanos(1000), usize::MAX);
        assert_eq!(sent.len(), 5);
        assert_eq!((sent[4].op, sent[4].at), (Op::Flush, Nanos(1000)));
    }
    let sent = run(&mut spec("rw=read,bs=4k,number_ios=4,end_fsync=1", CAPACITY, 1), CAPACITY, Nanos(1000), usize::MAX);
    assert_eq!(count(&sent, Op::Flush), 0, "a job that only reads has nothing to flush");
}

#[test]
fn passes_begin_and_end_with_the_flushes_of_fio() {
    let ops = |text: &str| -> String {
        let letter = |request: &Request| if request.op == Op::Flush { 'F' } else { 'w' };
        run(&mut spec(text, CAPACITY, 1), CAPACITY, Nanos(1000), usize::MAX).iter().map(letter).collect()
    };
    // Each of these was compared with the log that fio 3.33 writes.
    let job = "rw=write,bs=4k,size=16k,ioengine";
    assert_eq!(ops(&format!("{job}=psync,loops=2,fsync=4")), "wwwwFFwwww", "two at the start of a pass");
    assert_eq!(ops(&format!("{job}=libaio,loops=2,fsync=4")), "wwwwFwwww", "one: the pass ends with its bytes");
    assert_eq!(ops(&format!("{job}=libaio,loops=2,fsync=4,end_fsync=1")), "wwwwFFwwwwF");
    assert_eq!(ops(&format!("{job}=psync,loops=2,fsync=4,end_fsync=1")), "wwwwFFwwwwF");
    assert_eq!(ops(&format!("{job}=psync,loops=2,fsync=3")), "wwwFwwwFww");
    assert_eq!(ops(&format!("{job}=psync,loops=2,number_ios=2,end_fsync=1")), "wwwwFF", "an empty pass");
    assert_eq!(
        ops("rw=write:-4k,bsrange=48k-64k,size=96k,offset=1m,end_fsync=1"),
        "F",
        "no block fits a step before the end"
    );
    assert_eq!(ops(&format!("{job}=psync,loops=3,io_size=4k,end_fsync=1")), "wwwFF", "one, whatever loops asks for");
}

#[test]
fn stonewalls_separate_phases_and_clones_stay_together() {
    let text = "[global]\nbs=4k\nsize=1m\n[fill]\nrw=write\niodepth=4\n\
                [a]\nstonewall\nrw=randread\nnumber_ios=50\nnumjobs=3\n[b]\nrw=randwrite\nnumber_ios=20\n\
                [last]\nwait_for_previous\nrw=trim\n";
    let sent = run(&mut jobs(text, CAPACITY, 1), CAPACITY, Nanos(1000), usize::MAX);
    let span = |queues: std::ops::RangeInclusive<u16>| {
        let of: Vec<u64> = sent.iter().filter(|r| queues.contains(&r.queue)).map(|r| r.at.0).collect();
        (*of.first().expect("jobs send"), *of.last().expect("jobs send"))
    };
    let (fill, middle, last) = (span(0..=0), span(1..=4), span(5..=5));
    assert_eq!(fill, (0, 63_000));
    // A phase begins when the last request of the one before has completed, all its jobs at once.
    assert_eq!(middle, (64_000, 64_000 + 49_000));
    assert_eq!(span(4..=4).0, 64_000);
    assert_eq!(last.0, 64_000 + 50_000);
}

#[test]
fn jobs_take_turns() {
    let text = "[a]\nrw=read\nsize=1m\niodepth=2\n[b]\nrw=write\nsize=1m\niodepth=2\n";
    let sent = run(&mut jobs(text, CAPACITY, 1), CAPACITY, Nanos(1000), usize::MAX);
    let first: Vec<u16> = sent.iter().take(4).map(|r| r.queue).collect();
    assert_eq!(first, [0, 1, 0, 1]);
    assert_eq!(count(&sent, Op::Read), count(&sent, Op::Write));
}

#[test]
fn runtime_is_a_cap_and_time_based_also_a_floor() {
    let text = "rw=write,bs=4k,size=64k,runtime=50us";
    let sent = run(&mut spec(text, CAPACITY, 1), CAPACITY, Nanos(1000), usize::MAX);
    assert_eq!(sent.len(), 16, "without time_based the size ends the job");
    let sent = run(&mut spec(&format!("{text},time_based"), CAPACITY, 1), CAPACITY, Nanos(1000), usize::MAX);
    assert_eq!(sent.len(), 50, "with time_based it starts over until the time is up");
    let sent = run(&mut spec("rw=write,bs=4k,runtime=10us", CAPACITY, 1), CAPACITY, Nanos(1000), usize::MAX);
    assert_eq!(sent.len(), 10);
}

#[test]
fn a_start_delay_counts_from_the_start_of_the_run() {
    let text =
        "[a]\nrw=read\nsize=64k\n[b]\nrw=write\nsize=64k\nstartdelay=5\n[c]\nrw=write\nsize=64k\nstartdelay=1s-3s\n";
    let sent = run(&mut jobs(text, CAPACITY, 1), CAPACITY, Nanos(1000), usize::MAX);
    let first = |queue| sent.iter().find(|r| r.queue == queue).expect("each job sends").at;
    assert_eq!(first(0), Nanos::ZERO);
    assert_eq!(first(1), Nanos(5_000_000_000));
    assert!((1_000_000_000..=3_000_000_000).contains(&first(2).0));
}
