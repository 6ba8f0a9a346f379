//! The chips: times, order, rules.

mod latency;
mod resources;
mod rules;
mod scheduling;
mod support;
mod suspend;
mod throughput;
mod waits;
