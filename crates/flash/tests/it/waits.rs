//! What an operation's time was spent on, to the nanosecond: behind an erase with and without suspension, behind a read
//! that its program takes data from, and in the order in which one end led to the next.

use ssdlab_base::Nanos;
use ssdlab_flash::{BlockId, Cause, Class, Done, Flash, FlashConfig, NONE, OpId, OpKind, Ppn, RecordId, Stay, Submit};

use crate::support::*;

/// Chips that record, and the records of what ended.
struct Recording {
    flash: Flash,
    ended: Vec<(Done, RecordId, u64)>,
}

impl Recording {
    fn new(config: &FlashConfig) -> Recording {
        let mut bench = Bench::new(config);
        bench.fill(1, 1);
        let mut flash = bench.flash;
        flash.record_waits(true);
        Recording { flash, ended: Vec::new() }
    }

    fn submit(&mut self, now: u64, kind: OpKind, class: Class, place: (u32, u32), waits_for: u16) -> OpId {
        let cause = if matches!(class, Class::HostRead | Class::HostWrite) { Cause::Host } else { Cause::Gc };
        let bytes = if kind == OpKind::Erase { 0 } else { PAGE };
        let (block, page) = place;
        let (source, token, pin) = (Ppn::NONE, 0, NONE);
        self.flash.submit(
            Nanos(now),
            Submit {
                kind,
                cause,
                class,
                block: BlockId(block),
                page,
                source,
                bytes,
                token,
                pin: BlockId(pin),
                waits_for,
            },
        )
    }

    fn run_until(&mut self, until: u64) {
        while let Some(at) = self.flash.next_event()
            && at.0 <= until
        {
            let mut done = Vec::new();
            self.flash.step(&mut done);
            for done in done {
                let record = self.flash.record_of(done.op).expect("it is recorded");
                self.ended.push((done, record, at.0));
            }
        }
    }

    /// The time of the operation of a kind from `from` to its end, in order.
    #[track_caller]
    fn assert_was(&self, kind: OpKind, from: u64, parts: &[(Stay, u64)]) {
        let (_, record, end) = self.ended.iter().find(|(done, ..)| done.kind == kind).expect("it has ended");
        let mut stretches = Vec::new();
        assert_eq!(self.flash.explain(*record, Nanos(from), Nanos(*end), &mut stretches), Nanos(from));
        stretches.reverse();
        assert!(stretches.windows(2).all(|pair| pair[0].to == pair[1].from));
        let found: Vec<_> = stretches.iter().map(|stretch| (stretch.stay, stretch.to.0 - stretch.from.0)).collect();
        assert_eq!(found, parts);
    }
}

const LATE: u64 = 400_001;

#[test]
fn a_read_behind_an_erase_waits_for_what_is_left_of_it() {
    let mut chips = Recording::new(&chips(1, 1, 1));
    chips.submit(0, OpKind::Erase, Class::Erase, (0, 0), 0);
    chips.run_until(LATE);
    chips.submit(LATE, OpKind::Read, Class::HostRead, (1, 0), 0);
    chips.run_until(u64::MAX);
    let left = COMMAND + ERASE - LATE;
    let service = [(Stay::Transfer, COMMAND), (Stay::Array(OpKind::Read), READ), (Stay::Transfer, TRANSFER)];
    let all: Vec<_> = [(Stay::Die(OpKind::Erase, Cause::Gc), left)].into_iter().chain(service).collect();
    chips.assert_was(OpKind::Read, LATE, &all);
    // Asked from later on: only what was then.
    chips.assert_was(OpKind::Read, LATE + left + 100, &[(Stay::Transfer, COMMAND - 100), service[1], service[2]]);
}

#[test]
fn a_read_that_suspends_an_erase_waits_for_the_suspension_and_the_erase_for_the_read() {
    let mut config = chips(1, 1, 1);
    config.erase_suspend = true;
    let mut chips = Recording::new(&config);
    chips.submit(0, OpKind::Erase, Class::Erase, (0, 0), 0);
    chips.run_until(COMMAND + LATE);
    chips.submit(COMMAND + LATE, OpKind::Read, Class::HostRead, (1, 0), 0);
    chips.run_until(u64::MAX);
    let service = [(Stay::Transfer, COMMAND), (Stay::Array(OpKind::Read), READ), (Stay::Transfer, TRANSFER)];
    let all: Vec<_> = [(Stay::Suspend, SUSPEND)].into_iter().chain(service).collect();
    chips.assert_was(OpKind::Read, COMMAND + LATE, &all);
    let erase = [
        (Stay::Transfer, COMMAND),
        (Stay::Array(OpKind::Erase), LATE),
        (Stay::Suspend, SUSPEND),
        (Stay::Die(OpKind::Read, Cause::Host), READ_PAGE),
        (Stay::Suspend, RESUME),
        (Stay::Array(OpKind::Erase), ERASE - LATE),
    ];
    chips.assert_was(OpKind::Erase, 0, &erase);
}

#[test]
fn what_a_program_waits_for_before_it_is_ready_is_the_time_of_what_it_takes_data_from() {
    // The read is on one die, the program on the other, which has nothing else to do.
    let mut chips = Recording::new(&chips(2, 1, 1));
    let read = chips.submit(0, OpKind::Read, Class::GcRead, (1, 0), 0);
    let program = chips.submit(0, OpKind::Program, Class::GcWrite, (4, 0), 1);
    chips.flash.link(read, program);
    // One behind the program on its plane: pages go in order.
    chips.submit(0, OpKind::Erase, Class::GcWrite, (5, 0), 0);
    chips.run_until(u64::MAX);
    let program = [
        (Stay::Transfer, COMMAND),
        (Stay::Array(OpKind::Read), READ),
        (Stay::Transfer, TRANSFER + DATA_IN),
        (Stay::Array(OpKind::Program), PROGRAM),
    ];
    chips.assert_was(OpKind::Program, 0, &program);
    let behind = [
        (Stay::Order, READ_PAGE),
        (Stay::Die(OpKind::Program, Cause::Gc), PROGRAM_PAGE),
        (Stay::Transfer, COMMAND),
        (Stay::Array(OpKind::Erase), ERASE),
    ];
    chips.assert_was(OpKind::Erase, 0, &behind);
}

#[test]
fn before_an_operation_was_submitted_it_was_what_led_to_it() {
    let mut chips = Recording::new(&chips(2, 1, 1));
    chips.submit(0, OpKind::Read, Class::GcRead, (1, 0), 0);
    chips.run_until(READ_PAGE);
    let led = chips.ended[0].1;
    chips.flash.leads_on(Some(led));
    chips.submit(READ_PAGE, OpKind::Erase, Class::Erase, (4, 0), 0);
    chips.flash.leads_on(None);
    chips.run_until(u64::MAX);
    let erase = [
        (Stay::Array(OpKind::Read), READ - 3),
        (Stay::Transfer, TRANSFER + COMMAND),
        (Stay::Array(OpKind::Erase), ERASE),
    ];
    chips.assert_was(OpKind::Erase, COMMAND + 3, &erase);
    // What no caller can ask for any more is let go, and nothing else.
    chips.flash.forget_waits(Nanos(READ_PAGE));
    chips.assert_was(OpKind::Erase, READ_PAGE, &[(Stay::Transfer, COMMAND), erase[2]]);
}
