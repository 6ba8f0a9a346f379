//! A drive of the design `tagged` answers every command of its set, and sends every event, as a model of the set says.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| ssdlab_torture::tags::command_set(bytes));
