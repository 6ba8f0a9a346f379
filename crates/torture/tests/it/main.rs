//! Campaigns: what they survive, and which bugs they find.

mod cache;
mod cached_map;
mod campaign;
mod command_sets;
mod failing;
mod files;
mod map_cuts;
mod map_faults;
mod one_design;
#[cfg(feature = "seeded-bugs")]
mod page;
#[cfg(feature = "seeded-bugs")]
mod seeded;
#[cfg(feature = "seeded-bugs")]
mod seeded_files;
#[cfg(feature = "seeded-bugs")]
mod seeded_hunt;
#[cfg(feature = "seeded-bugs")]
mod seeded_layers;
mod segments;
mod shrd;
mod stacks;
mod summaries;
