//! Traces, fio jobs and file-level workloads.

mod files_mix;
mod files_run;
mod files_support;
mod fio_addresses;
mod fio_against_fio;
mod fio_job_files;
mod fio_open;
mod fio_pacing;
mod fio_support;
mod fio_zones;
mod model;
mod reorder;
mod shared;
mod trace_commands;
mod trace_convert;
mod trace_fuzz;
mod trace_input;
mod trace_replay;
mod trace_samples;
mod trace_tables;
mod trace_times;
