//! The command as a person meets it: started as a process, judged by its status, what it prints and what it leaves.

mod bad_input;
mod catalogue;
mod files;
mod jobs;
mod limits;
mod memory;
mod messages;
mod names;
mod outputs;
mod recordings;
mod reproduce;
mod run;
mod support;
mod torture;
mod variants;
mod wa;
mod warnings;
