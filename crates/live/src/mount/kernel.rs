//! What the kernel says is mounted, and over what.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// A line of the table of mounts.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct MountLine {
    pub(super) mountpoint: PathBuf,
    pub(super) kind: Vec<u8>,
    pub(super) source: PathBuf,
}

/// Everything that is mounted, as this process sees it; what was mounted last comes last.
pub(super) fn mounts() -> io::Result<Vec<MountLine>> {
    Ok(fs::read("/proc/self/mountinfo")?.split(|byte| *byte == b'\n').filter_map(parse_line).collect())
}

/// See proc_pid_mountinfo(5): `36 35 98:0 /root /mountpoint options [tags...] - kind source options`.
fn parse_line(line: &[u8]) -> Option<MountLine> {
    let mut words = line.split(|byte| *byte == b' ');
    let mountpoint = unescape(words.nth(4)?);
    words.find(|word| *word == b"-")?;
    let kind = words.next()?.to_vec();
    let source = unescape(words.next()?);
    Some(MountLine { mountpoint, kind, source })
}

/// Blanks, tabs, line ends and backslashes are written as three octal digits.
fn unescape(word: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(word.len());
    let mut rest = word;
    while let Some((&first, tail)) = rest.split_first() {
        let octal = tail.get(..3).and_then(|digits| std::str::from_utf8(digits).ok());
        match octal.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) if first == b'\\' => {
                bytes.push(byte);
                rest = &tail[3..];
            }
            _ => {
                bytes.push(first);
                rest = tail;
            }
        }
    }
    PathBuf::from(OsString::from_vec(bytes))
}

/// The file that a loop device such as `/dev/loop3` stands on, if it stands on any.
pub(super) fn backing_file(device: &Path) -> Option<PathBuf> {
    let name = device.file_name()?;
    let mut bytes = fs::read(Path::new("/sys/block").join(name).join("loop/backing_file")).ok()?;
    while bytes.last() == Some(&b'\n') {
        bytes.pop();
    }
    Some(PathBuf::from(OsString::from_vec(bytes)))
}

/// Whether a loop device does direct I/O on its file.
pub(super) fn is_direct(device: &Path) -> bool {
    let name = device.file_name().unwrap_or_default();
    fs::read(Path::new("/sys/block").join(name).join("loop/dio")).is_ok_and(|text| text.starts_with(b"1"))
}

/// The loop devices that stand on a file. The name alone is compared: the file of a dead server cannot be looked at.
pub(super) fn loop_devices_over(file: &Path) -> io::Result<Vec<PathBuf>> {
    let mut devices = Vec::new();
    for entry in fs::read_dir("/sys/block")? {
        let name = entry?.file_name();
        let device = Path::new("/dev").join(&name);
        if name.as_bytes().starts_with(b"loop") && backing_file(&device).is_some_and(|backing| backing == file) {
            devices.push(device);
        }
    }
    Ok(devices)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_are_read_with_tags_and_escaped_names() {
        let line = b"98 28 0:44 / /mnt/a\\040b\\134c rw,nosuid shared:5 master:1 - fuse ssd\\011lab rw,user_id=0";
        let expected = MountLine {
            mountpoint: PathBuf::from("/mnt/a b\\c"),
            kind: b"fuse".to_vec(),
            source: PathBuf::from("ssd\tlab"),
        };
        assert_eq!(parse_line(line), Some(expected));
        assert_eq!(parse_line(b"98 28 0:44 / /mnt rw"), None);
        assert_eq!(unescape(b"\\04"), PathBuf::from("\\04"));
        assert!(mounts().expect("/proc").iter().any(|mount| mount.mountpoint == Path::new("/")));
    }
}
