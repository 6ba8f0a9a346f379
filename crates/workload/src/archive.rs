//! Archives and compressed files, told by their first bytes: what a reader of single files says of one.

/// How a file is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// gzip.
    Gzip,
    /// zstd.
    Zstd,
    /// xz.
    Xz,
    /// bzip2.
    Bzip2,
}

impl Compression {
    /// The compression of a file that begins with these bytes, if it is one of these.
    pub fn of(head: &[u8]) -> Option<Compression> {
        Some(match head {
            [0x1f, 0x8b, ..] => Compression::Gzip,
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Compression::Zstd,
            [0xfd, b'7', b'z', b'X', b'Z', 0x00, ..] => Compression::Xz,
            [b'B', b'Z', b'h', b'1'..=b'9', ..] => Compression::Bzip2,
            _ => return None,
        })
    }

    /// Its name, which is also that of the program that unpacks it.
    pub const fn name(self) -> &'static str {
        match self {
            Compression::Gzip => "gzip",
            Compression::Zstd => "zstd",
            Compression::Xz => "xz",
            Compression::Bzip2 => "bzip2",
        }
    }

    /// The command that unpacks the file `path` to its standard output.
    pub fn unpack(self, path: &str) -> String {
        format!("{} -dc {}", self.name(), quoted(path))
    }
}

/// An archive of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Archive {
    /// tar, of any age.
    Tar,
    /// zip.
    Zip,
    /// 7z.
    SevenZip,
    /// rar, version 4 or 5.
    Rar,
}

impl Archive {
    /// So many bytes tell every kind.
    pub const HEAD_BYTES: usize = 512;

    /// The archive that begins with these bytes, if it is one.
    ///
    /// ```
    /// use ssdlab_workload::Archive;
    /// assert_eq!(Archive::of(b"PK\x03\x04..."), Some(Archive::Zip));
    /// assert_eq!(Archive::of(b"0.5,W,4096,8192\n"), None);
    /// ```
    pub fn of(head: &[u8]) -> Option<Archive> {
        match head {
            [b'P', b'K', 3, 4, ..] | [b'P', b'K', 5, 6, ..] | [b'P', b'K', 7, 8, ..] => Some(Archive::Zip),
            [b'7', b'z', 0xbc, 0xaf, 0x27, 0x1c, ..] => Some(Archive::SevenZip),
            [b'R', b'a', b'r', b'!', 0x1a, 0x07, ..] => Some(Archive::Rar),
            _ => is_tar(head).then_some(Archive::Tar),
        }
    }

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Archive::Tar => "tar",
            Archive::Zip => "zip",
            Archive::SevenZip => "7z",
            Archive::Rar => "rar",
        }
    }

    /// The command that writes what is in it to its standard output: of the file `path`, or of its standard input where
    /// there is none. `packed` is the compression around it.
    pub fn unpack(self, packed: Option<Compression>, path: Option<&str>) -> String {
        if self == Archive::Tar {
            let flags = match packed {
                None => "xO",
                Some(Compression::Gzip) => "xzO",
                Some(Compression::Zstd) => "--zstd -xO",
                Some(Compression::Xz) => "xJO",
                Some(Compression::Bzip2) => "xjO",
            };
            return path.map_or(format!("tar {flags}"), |path| format!("tar {flags}f {}", quoted(path)));
        }
        // The programs of the others need a file: the list of members may be at its end.
        let path = path.unwrap_or("FILE");
        let (file, before) = match packed {
            None => (quoted(path), String::new()),
            Some(packed) => {
                let file = format!("unpacked.{}", self.name());
                let before = format!("{} > {file}; ", packed.unpack(path));
                (file, before)
            }
        };
        let program = match self {
            Archive::SevenZip => "7z e -so",
            Archive::Rar => "unrar p -inul",
            Archive::Tar | Archive::Zip => "unzip -p",
        };
        format!("{before}{program} {file}")
    }
}

/// Whether a block of 512 bytes is the head of a tar's member: its checksum is right, or it has the magic of POSIX's. In every format
/// of tar the last byte is zero, which no text has: digits of a trace may stand where the checksum does, and be right.
fn is_tar(head: &[u8]) -> bool {
    const CHECKSUM: std::ops::Range<usize> = 148..156;
    let Some(head) = head.get(..Archive::HEAD_BYTES) else { return false };
    if head[0] == 0 || head[Archive::HEAD_BYTES - 1] != 0 {
        return false;
    }
    let stored = head[CHECKSUM].iter().skip_while(|&&byte| byte == b' ').take_while(|byte| byte.is_ascii_digit());
    let stored = stored.fold(0_u32, |value, &digit| value.wrapping_mul(8).wrapping_add(u32::from(digit - b'0')));
    let byte = |(at, &byte): (usize, &u8)| if CHECKSUM.contains(&at) { u32::from(b' ') } else { u32::from(byte) };
    stored == head.iter().enumerate().map(byte).sum::<u32>() || head[257..].starts_with(b"ustar")
}

/// A path as a shell takes it.
fn quoted(path: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+,:@%=".contains(c);
    if !path.is_empty() && !path.starts_with('-') && path.chars().all(plain) {
        return path.to_string();
    }
    let path = if path.starts_with('-') { format!("./{path}") } else { path.to_string() };
    format!("'{}'", path.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tar_is_told_with_and_without_its_magic() {
        let mut head = vec![0; 512];
        head[..8].copy_from_slice(b"day1.csv");
        head[100..107].copy_from_slice(b"0000644");
        let sum: u32 = head.iter().map(|&byte: &u8| u32::from(byte)).sum::<u32>() + 8 * 32;
        head[148..154].copy_from_slice(format!("{sum:06o}").as_bytes());
        assert_eq!(Archive::of(&head), Some(Archive::Tar), "as old tars wrote it");
        head[0] = b'e';
        assert_eq!(Archive::of(&head), None);
        head[257..262].copy_from_slice(b"ustar");
        assert_eq!(Archive::of(&head), Some(Archive::Tar));
        assert_eq!(Archive::of(&head[..511]), None);
        assert_eq!(Archive::of(&[0; 512]), None, "zeroes are no member");
        assert_eq!(Archive::of(&[b'1'; 512]), None);
    }

    /// Found in a drawn trace: its digits were the checksum by chance.
    #[test]
    fn a_text_whose_digits_are_the_checksum_of_a_tar_is_a_text() {
        for filler in b'1'..=b'9' {
            let mut head = vec![filler; 512];
            head[156] = b',';
            head[148..156].copy_from_slice(b"        ");
            let sum: u32 = head.iter().map(|&byte: &u8| u32::from(byte)).sum();
            head[148..156].copy_from_slice(format!("{sum:08o}").as_bytes());
            assert_eq!(Archive::of(&head), None, "{}", String::from_utf8_lossy(&head));
        }
    }

    #[test]
    fn the_command_fits_the_archive_its_compression_and_its_name() {
        use Compression::{Gzip, Xz, Zstd};
        let of_file = |archive: Archive, packed| archive.unpack(packed, Some("day1"));
        assert_eq!(of_file(Archive::Tar, None), "tar xOf day1");
        assert_eq!(of_file(Archive::Tar, Some(Gzip)), "tar xzOf day1");
        assert_eq!(of_file(Archive::Tar, Some(Zstd)), "tar --zstd -xOf day1");
        assert_eq!(of_file(Archive::Zip, None), "unzip -p day1");
        assert_eq!(of_file(Archive::Zip, Some(Gzip)), "gzip -dc day1 > unpacked.zip; unzip -p unpacked.zip");
        assert_eq!(of_file(Archive::SevenZip, None), "7z e -so day1");
        assert_eq!(of_file(Archive::Rar, None), "unrar p -inul day1");
        assert_eq!(Archive::Tar.unpack(Some(Xz), None), "tar xJO");
        assert_eq!(Archive::Tar.unpack(None, Some("my day's.tar")), r"tar xOf 'my day'\''s.tar'");
        assert_eq!(Archive::Tar.unpack(None, Some("-x.tar")), "tar xOf './-x.tar'");
        assert_eq!(Compression::of(b"BZh9").map(|packed| packed.unpack("a.bz2")), Some("bzip2 -dc a.bz2".to_string()));
        assert_eq!(Compression::of(b"plain"), None);
    }
}
