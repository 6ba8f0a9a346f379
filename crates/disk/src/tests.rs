//! What tests share.

use crate::DiskConfig;

/// A disk with these keys of `[disk]` and of `[disk.seek]`.
pub(crate) fn config(disk: &str, seek: &str) -> DiskConfig {
    let text = format!(
        "[disk]\n{disk}\n[disk.seek]\nsettle = \"1ms\"\nknee = \"5ms\"\nfull_stroke = \"11ms\"\n{seek}\n[disk.interface]\nbandwidth = 0\n"
    );
    DiskConfig::parse(&text, "test.toml", &[]).unwrap_or_else(|error| panic!("{error}"))
}
