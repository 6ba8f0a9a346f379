//! A file system on small drives of the design `aftl`: against a model, full, through crashes, and on other drives.

mod drive;
mod full;
mod model;
mod random;
