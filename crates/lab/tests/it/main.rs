//! Experiments: runs, results and files, and drives against models of their own.

mod added_policies;
mod append;
mod breakdown;
mod cached_map;
mod command_sets;
mod common;
mod conclusions;
mod counting_model;
mod file_cleaning;
mod file_runs;
mod files;
mod jobs;
mod log_blocks;
mod pacing;
mod preconditioning;
mod runs;
mod victims;
mod watching;
mod zones;
