//! The controller's processor and its DRAM: what firmware works on takes its turn, and what it copies passes DRAM.
//!
//! One processor serves everything in the order in which it is asked: commands that arrive, map entries, flash operations, and ends of
//! commands. Each piece of work costs a number of cycles (`[controller]`). Decisions are made when a command is dispatched; the
//! operations that follow from them are issued when the processor has come to them
//! ([`Flash::submit_issued_at`](ssdlab_flash::Flash::submit_issued_at)).
//!
//! A drive without `[controller]` has none of this.

use ssdlab_base::Nanos;

use crate::{ControllerConfig, ControllerCounters};

/// The processor and the DRAM of a drive whose firmware takes time.
#[derive(Clone, Debug)]
pub(crate) struct Processor {
    config: ControllerConfig,
    command: Nanos,
    operation: Nanos,
    completion: Nanos,
    /// When the processor has done what it was asked for so far.
    free: Nanos,
    /// When what was to be copied so far is copied.
    copied: Nanos,
    pub(crate) counters: ControllerCounters,
}

impl Processor {
    /// The processor of a drive; `None` where neither work nor copies take time.
    pub(crate) fn new(config: &ControllerConfig) -> Option<Box<Processor>> {
        let cycles =
            [config.command_cycles, config.map_entry_cycles, config.operation_cycles, config.completion_cycles];
        assert!(config.clock > 0 || cycles == [0; 4], "{cycles:?} cycles of a processor without a clock");
        let takes_time = config.clock > 0 || config.copy_bandwidth > 0;
        takes_time.then(|| {
            Box::new(Processor {
                command: config.time_of(config.command_cycles, 1),
                operation: config.time_of(config.operation_cycles, 1),
                completion: config.time_of(config.completion_cycles, 1),
                config: config.clone(),
                free: Nanos::ZERO,
                copied: Nanos::ZERO,
                counters: ControllerCounters::default(),
            })
        })
    }

    /// Virtual time starts again at zero, and counting.
    pub(crate) fn restart(&mut self) {
        (self.free, self.copied) = (Nanos::ZERO, Nanos::ZERO);
        self.counters = ControllerCounters::default();
    }

    fn serve(&mut self, from: Nanos, work: Nanos) -> Nanos {
        let before = self.free;
        self.free = before.max(from) + work;
        self.counters.work += work;
        debug_assert!(self.free >= from + work, "work of {work} from {from} on is done at {}", self.free);
        debug_assert!(self.free >= before, "the processor was to be free at {before}, and now at {}", self.free);
        self.free
    }

    /// A command is there from `from` on: when the processor has taken it, and for how long it works on it.
    pub(crate) fn take_command(&mut self, from: Nanos) -> (Nanos, Nanos) {
        (self.serve(from, self.command), self.command)
    }

    /// All that a command waited for has ended: when the processor has ended the command, and how long it works on that.
    pub(crate) fn complete(&mut self, now: Nanos) -> (Nanos, Nanos) {
        (self.serve(now, self.completion), self.completion)
    }

    /// Looks at map entries.
    pub(crate) fn look_up(&mut self, now: Nanos, entries: u32) {
        debug_assert!(entries > 0, "the processor looks at no map entry at {now}");
        self.serve(now, self.config.time_of(self.config.map_entry_cycles, entries));
    }

    /// When it has issued the flash operation that is decided on now.
    pub(crate) fn issue(&mut self, now: Nanos) -> Nanos {
        self.serve(now, self.operation)
    }

    /// When `bytes` bytes that are in DRAM from `from` on are copied.
    pub(crate) fn copy(&mut self, from: Nanos, bytes: u64) -> Nanos {
        let time = self.config.copy_time(bytes);
        if time == Nanos::ZERO {
            return from;
        }
        self.copied = self.copied.max(from) + time;
        self.counters.copying += time;
        debug_assert!(self.copied > from, "{bytes} bytes are copied in no time at {from}");
        self.copied
    }
}

impl ControllerConfig {
    /// How long the processor works on `count` pieces of `cycles` cycles, rounded up to the nanosecond.
    pub fn time_of(&self, cycles: u32, count: u32) -> Nanos {
        if self.clock == 0 {
            return Nanos::ZERO;
        }
        let cycles = u128::from(cycles) * u128::from(count);
        Nanos((cycles * 1_000_000_000).div_ceil(u128::from(self.clock)) as u64)
    }

    /// How long a copy of `bytes` bytes in DRAM takes, rounded up to the nanosecond.
    pub fn copy_time(&self, bytes: u64) -> Nanos {
        match self.copy_bandwidth {
            0 => Nanos::ZERO,
            bandwidth => Nanos((u128::from(bytes) * 1_000_000_000).div_ceil(u128::from(bandwidth)) as u64),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> ControllerConfig {
        ControllerConfig {
            clock: 87_500_000,
            command_cycles: 700,
            map_entry_cycles: 100,
            operation_cycles: 350,
            completion_cycles: 175,
            copy_bandwidth: 100_000_000,
            ..ControllerConfig::default()
        }
    }

    #[test]
    fn cycles_are_rounded_up_to_the_nanosecond_as_a_whole() {
        // 100 cycles at 87.5 MHz are 1142.857 ns.
        assert_eq!(config().time_of(100, 1), Nanos(1143));
        assert_eq!(config().time_of(100, 7), Nanos(8000));
        assert_eq!(ControllerConfig::default().time_of(100, 1), Nanos::ZERO);
    }

    #[test]
    fn one_processor_serves_in_order_and_copies_go_one_at_a_time() {
        let mut processor = Processor::new(&config()).expect("it takes time");
        assert_eq!(processor.take_command(Nanos(10)), (Nanos(8010), Nanos(8000)));
        assert_eq!(processor.issue(Nanos(10)), Nanos(12_010));
        processor.look_up(Nanos(20_000), 7);
        assert_eq!(processor.complete(Nanos(20_000)), (Nanos(30_000), Nanos(2000)));
        assert_eq!(processor.copy(Nanos(5), 4096), Nanos(40_965));
        assert_eq!(processor.copy(Nanos(5), 4096), Nanos(81_925));
        assert_eq!(processor.copy(Nanos(5), 0), Nanos(5));
        let ControllerCounters { work, copying, .. } = processor.counters;
        assert_eq!((work, copying), (Nanos(8000 + 4000 + 8000 + 2000), Nanos(2 * 40_960)));
        processor.restart();
        assert_eq!(processor.counters, ControllerCounters::default());
        assert!(Processor::new(&ControllerConfig::default()).is_none());
    }
}
