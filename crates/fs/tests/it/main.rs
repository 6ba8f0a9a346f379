//! A file system on small drives, of segments and of blocks: closed forms, fsyncs without a
//! check-point, full, corrupted, and on other drives. Calls against a model, crashes,
//! damaged images and seeded bugs are in the crate `torture`.

mod counts;
mod drive;
mod full;
mod in_place;
mod journaling;
mod lfs;
mod lost;
mod payloads;
mod planted;
mod planted_areas;
mod planted_journal;
mod records;
mod roll_forward;
mod timers;
