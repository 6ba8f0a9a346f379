//! Captures, classifiers and logs.

mod captures;
mod classifiers;
mod drive_logs;
