//! A file system on small drives of the design `aftl`: against a model, full, through crashes, and on other drives.

mod counts;
mod crash;
mod damaged;
mod drive;
mod full;
mod model;
mod payloads;
mod random;
#[cfg(feature = "seeded-bugs")]
mod seeded;
