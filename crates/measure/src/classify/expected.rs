//! What a description says of durations: how long operations last, and the window that tells a program by.
//!
//! ```text
//!   one time, 200 us:  read |............^............|program|...................^...................| erase
//!                     20 us           110 us        200 us                   850 us               1.5 ms
//!   a range:           read |.......................[ 200 us .. programs .. 500 us ]..................| erase
//! ```
//!
//! Both are of the description alone: nothing that a run did goes into them.

use ssdlab_base::Nanos;
use ssdlab_flash::{FlashConfig, Latency, Timing};

use crate::Window;

/// How long operations are expected to last, from a datasheet or a guess; what is not known is left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Expected {
    /// Page read.
    pub read: Option<Window>,
    /// Page program.
    pub program: Option<Window>,
    /// Block erase.
    pub erase: Option<Window>,
}

impl Expected {
    /// The durations that a description gives, the shortest and the longest inside.
    pub fn of(flash: &FlashConfig) -> Expected {
        let window = |latencies: &[Latency]| {
            let shortest = latencies.iter().map(|latency| latency.min).min()?;
            let longest = latencies.iter().map(|latency| latency.max).max()?;
            Some(Window::from_to(shortest, longest))
        };
        let timing = &flash.timing;
        Expected { read: window(&timing.read), program: window(&timing.program), erase: window(&[timing.erase]) }
    }
}

/// The window (a, b) of a recorder for a described drive.
///
/// An end that belongs to a range of times is where the description has it, as in the paper (Table I, "tested"). A
/// program that always takes the same time would leave no room: a recorder that samples measures it a sample too short
/// or too long. Such an end goes half way to the nearest time of another operation. Half way as a difference, not as a
/// ratio: what sampling does to a duration is added to it, less than an interval in either direction however long it
/// is, so in the middle the slowest loop that can tell the two at all still does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramWindow {
    /// The window.
    pub window: Window,
    /// From a program's time to the nearer of the ends that were moved, if one was: who samples less often goes wrong.
    pub room: Option<Nanos>,
    /// Why an end could not be moved.
    pub notes: Vec<String>,
}

impl ProgramWindow {
    /// That of a description; nothing if it gives programs no time.
    pub fn of(timing: &Timing) -> Option<ProgramWindow> {
        let shortest = timing.program.iter().map(|latency| latency.min).min()?;
        let longest = timing.program.iter().map(|latency| latency.max).max()?;
        let fixed = |time: Nanos| timing.program.iter().any(|latency| latency.min == time && latency.max == time);
        let others: Vec<Latency> = timing.read.iter().copied().chain([timing.erase]).collect();
        let touched = |time: Nanos| others.iter().any(|other| other.min <= time && time <= other.max);
        let mut decided = ProgramWindow { window: Window::from_to(shortest, longest), room: None, notes: Vec::new() };
        let mut room = |room: Nanos| decided.room = Some(decided.room.map_or(room, |other| Nanos(other.0.min(room.0))));
        if fixed(shortest) {
            let below = others.iter().map(|other| other.max).filter(|&time| time < shortest).max();
            match below.map(|time| Nanos(shortest.0.midpoint(time.0))).filter(|_| !touched(shortest)) {
                Some(middle) => {
                    decided.window.above = middle;
                    room(shortest.since(middle));
                }
                None => decided.notes.push(no_room("begins", "shortest", shortest, "below")),
            }
        }
        if fixed(longest) {
            let above = others.iter().map(|other| other.min).filter(|&time| time > longest).min();
            match above.map(|time| Nanos(longest.0.midpoint(time.0))).filter(|_| !touched(longest)) {
                Some(middle) => {
                    decided.window.below = middle;
                    room(middle.since(longest));
                }
                None => decided.notes.push(no_room("ends", "longest", longest, "above")),
            }
        }
        Some(decided)
    }

    /// Whether a recorder that samples each `interval` is too slow for it.
    pub fn is_narrow_for(&self, interval: Nanos) -> bool {
        self.room.is_some_and(|room| interval > room) || self.window.is_narrow_for(interval)
    }
}

fn no_room(ends: &str, which: &str, time: Nanos, side: &str) -> String {
    format!(
        "the window {ends} with the {which} program ({time}), which is one time: no other operation's time lies {side} it \
         and apart, so there is no room for what sampling adds to a duration or takes off it, and such programs may be lost"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of times in microseconds.
    fn window(read: &[(u64, u64)], program: &[(u64, u64)], erase: (u64, u64)) -> ProgramWindow {
        let latency = |&(min, max): &(u64, u64)| Latency { min: Nanos::from_us(min), max: Nanos::from_us(max) };
        let timing = Timing {
            read: read.iter().map(latency).collect(),
            program: program.iter().map(latency).collect(),
            erase: latency(&erase),
            command: Nanos::ZERO,
            transfer: Nanos::ZERO,
            suspend: Nanos::ZERO,
            resume: Nanos::ZERO,
        };
        ProgramWindow::of(&timing).expect("programs take time")
    }

    #[test]
    fn a_fixed_time_gets_room_on_both_sides() {
        let slc = window(&[(20, 20)], &[(200, 200)], (1500, 1500));
        assert_eq!(slc.window.to_string(), "110 us < T < 850 us");
        assert_eq!((slc.room, slc.notes.len()), (Some(Nanos::from_us(90)), 0));
        assert!(!slc.is_narrow_for(Nanos::from_us(50)));
        assert!(slc.is_narrow_for(Nanos::from_us(100)));
        // Several fixed times: the outer ones are the ends; the longest read is the nearest.
        let mlc = window(&[(48, 48), (64, 64)], &[(850, 850), (2300, 2300)], (3000, 3000));
        assert_eq!(mlc.window.to_string(), "457 us < T < 2.65 ms");
        assert_eq!(mlc.room, Some(Nanos::from_us(350)));
        // Wide, and yet its program is close to its end.
        let close = window(&[(250, 250)], &[(1300, 1300)], (1310, 1310));
        assert!(close.is_narrow_for(Nanos::from_us(10)) && !close.window.is_narrow_for(Nanos::from_us(10)));
    }

    #[test]
    fn a_range_stays_as_the_paper_has_it() {
        let ssd_v = window(&[(50, 50)], &[(200, 2200)], (2000, 2000));
        assert_eq!(ssd_v.window, Window::from_to(Nanos::from_us(200), Nanos::from_us(2200)));
        assert_eq!((ssd_v.room, ssd_v.notes.len()), (None, 0));
        // One end of each kind.
        let mixed = window(&[(50, 50)], &[(200, 200), (600, 900)], (2000, 2000));
        assert_eq!(mixed.window.to_string(), "125 us < T <= 900 us");
    }

    #[test]
    fn without_room_an_end_stays_and_a_note_says_why() {
        // The erase is as long as the program; reads reach up to it: neither end has room.
        for (read, erase) in [((20, 20), (200, 200)), ((20, 300), (1500, 1500))] {
            let decided = window(&[read], &[(200, 200)], erase);
            assert_eq!(decided.window.to_string(), "200 us <= T <= 200 us");
            assert_eq!((decided.room, decided.notes.len()), (None, 2));
            assert!(decided.is_narrow_for(Nanos(1)));
        }
        // The erase is shorter than the program: nothing is above it.
        let upside_down = window(&[(20, 20)], &[(200, 200)], (100, 150));
        assert_eq!(upside_down.window.to_string(), "175 us < T <= 200 us");
        assert!(upside_down.notes[0].contains("no other operation's time lies above"), "{:?}", upside_down.notes);
    }
}
