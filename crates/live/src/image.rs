//! An image directory: the drive's description, its chips, and nothing else.

use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};

use ssdlab_device::description::to_toml;
use ssdlab_device::{Description, Drive, DriveConfig, OnImageError, Options, Recovery};
use ssdlab_disk::{Disk, DiskConfig, SECTORS};
use ssdlab_flash::{Contents, Folder, Image, ImageError};
use ssdlab_host::{Device, Host, Member, MemberConfig, StackError, seed_of};

/// The file that holds the description an image was made from.
pub const DESCRIPTION: &str = "description.toml";

/// Why an image cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The chips' files.
    #[error(transparent)]
    Image(#[from] ImageError),
    /// The description, or what was found on the chips.
    #[error(transparent)]
    Drive(#[from] OnImageError),
    /// The image was made from another description.
    #[error("{path}: the image was made from another description: {difference}")]
    Description {
        /// The description in the image.
        path: PathBuf,
        /// The first line that differs, and how.
        difference: String,
    },
    /// The image was made under other layers, which keep data elsewhere.
    #[error("{path}: the image was made {}, and is to be served {}", under(found), under(expected))]
    Layers {
        /// The description in the image.
        path: PathBuf,
        /// The layers that it was made under.
        found: String,
        /// The layers that are asked for.
        expected: String,
    },
    /// The folder holds images of several drives, or of one.
    #[error("{path}: found {found}, expected {expected}")]
    Folder {
        /// The folder.
        path: PathBuf,
        /// What is there.
        found: String,
        /// What is asked for.
        expected: String,
    },
    /// Images of other drives of the stack are there.
    #[error("{path}: there is no image here, but there are images of the stack's other drives")]
    Missing {
        /// Where it should be.
        path: PathBuf,
    },
    /// A layer cannot stand on the drives.
    #[error(transparent)]
    Stack(StackError),
    /// The host's file system said no.
    #[error("{path}: {error}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What it said.
        error: std::io::Error,
    },
}

/// What precedes, in an image's description, the layers that the image is under.
const LAYERS: &str = "# layers: ";

/// Layers in a sentence.
fn under(layers: &str) -> String {
    if layers.is_empty() { "without layers".to_string() } else { format!("under layers: {layers}") }
}

/// A drive over the image in a directory.
pub struct Opened {
    /// The drive.
    pub drive: Drive,
    /// What its recovery cost; nothing for a new image.
    pub recovery: Recovery,
    /// Whether the image was made just now.
    pub fresh: bool,
    options: Options,
}

impl Opened {
    /// The drive as a stack of one.
    pub fn into_device(self) -> Box<dyn Device> {
        Member::alone(self.drive, self.options)
    }
}

/// A stack over the images in a directory.
pub struct OpenedStack {
    /// Its topmost layer.
    pub device: Box<dyn Device>,
    /// What the recovery of its drives cost: pages of all, and the time of the slowest, for they recover side by side.
    pub recovery: Recovery,
    /// Whether the images were made just now.
    pub fresh: bool,
}

/// Whether an image of a host's drives and disks is in `dir`, which opening it would recover.
pub fn is_there(dir: &Path, host: &Host, config: &DriveConfig) -> bool {
    let members = host.members(config);
    let several = members.len() > 1;
    members.iter().any(|(name, _)| if several { dir.join(name) } else { dir.to_path_buf() }.join(DESCRIPTION).is_file())
}

/// Opens the images of a host's drives and disks, or makes new ones: of one in `dir`, of several each in a folder of its name
/// there. Layers find what they keep on them.
///
/// # Errors
/// An image is refused by [`open`], some images are there and others are not, or a layer cannot stand on the drives.
pub fn open_stack(dir: &Path, host: &Host, config: &DriveConfig, seed: u64) -> Result<OpenedStack, OpenError> {
    let all = host.members(config);
    let several = all.len() > 1;
    if several {
        // The drives' folders are in it: another user must not put others in their place.
        Folder::open(dir)?;
    }
    let names: Vec<&str> = all.iter().map(|(name, _)| name.as_str()).collect();
    is_of_as_many(dir, &names)?;
    let layers = host.places();
    let (mut members, mut recovery, mut ages) = (Vec::new(), Recovery::default(), Vec::new());
    for (index, (name, config)) in all.into_iter().enumerate() {
        let dir = if several { dir.join(&name) } else { dir.to_path_buf() };
        // Folders of drives that changed places are refused, too.
        let layers = if several { format!("{layers}; this is drive {index}") } else { layers.clone() };
        match config {
            MemberConfig::Drive(config) => {
                let opened = open_under(&dir, &config, seed_of(seed, index), &layers)?;
                recovery.pages_read += opened.recovery.pages_read;
                recovery.blocks_erased += opened.recovery.blocks_erased;
                recovery.time = recovery.time.max(opened.recovery.time);
                ages.push((opened.fresh, dir));
                members.push(Member::of(&name, opened.drive, opened.options));
            }
            MemberConfig::Disk(config) => {
                let (disk, fresh) = open_disk(&dir, &config, &layers)?;
                ages.push((fresh, dir));
                members.push(Member::of_disk(&name, disk));
            }
        }
    }
    let fresh = ages.iter().all(|(fresh, _)| *fresh);
    if let Some((_, missing)) = ages.iter().find(|(new, _)| *new && !fresh) {
        // What was made just now must not be taken for an image the next time.
        let _ = std::fs::remove_dir_all(missing);
        return Err(OpenError::Missing { path: missing.clone() });
    }
    let device = host.build(members).map_err(OpenError::Stack)?;
    Ok(OpenedStack { device, recovery, fresh })
}

/// Opens the image of a disk, or makes a new one; the second is whether it is new.
fn open_disk(dir: &Path, config: &DiskConfig, layers: &str) -> Result<(Disk, bool), OpenError> {
    let folder = Folder::open(dir)?;
    let expected = config.to_toml();
    if folder.has(SECTORS) {
        same_description(&folder, layers, &expected, &|found| {
            DiskConfig::parse(found, DESCRIPTION, &[]).map_or_else(|_| found.to_string(), |config| config.to_toml())
        })?;
    } else {
        write_description(&folder, layers, &expected)?;
    }
    Ok(Disk::on_image(config, folder)?)
}

/// Writes the description of what an image is of, before the image counts as whole: so no whole image is without it.
fn write_description(folder: &Folder, layers: &str, description: &str) -> Result<(), OpenError> {
    let io = |error| OpenError::Io { path: folder.path().join(DESCRIPTION), error };
    let above = if layers.is_empty() { String::new() } else { format!("{LAYERS}{layers}\n") };
    folder.empty_file(DESCRIPTION)?.write_all((above + description).as_bytes()).map_err(io)
}

/// Refuses an image that was made under other layers, or from another description than `expected`. `in_full` gives a description of
/// an earlier version the keys that it lacks.
fn same_description(
    folder: &Folder,
    layers: &str,
    expected: &str,
    in_full: &dyn Fn(&str) -> String,
) -> Result<(), OpenError> {
    let path = folder.path().join(DESCRIPTION);
    let io = |error| OpenError::Io { path: path.clone(), error };
    let mut found = String::new();
    folder.file(DESCRIPTION, false)?.read_to_string(&mut found).map_err(io)?;
    let above = found.lines().next().and_then(|line| line.strip_prefix(LAYERS)).unwrap_or_default();
    if above != layers {
        return Err(OpenError::Layers { path, found: above.to_string(), expected: layers.to_string() });
    }
    match difference(&in_full(&found), &in_full(expected)) {
        Some(difference) => Err(OpenError::Description { path, difference }),
        None => Ok(()),
    }
}

/// Refuses a folder with the image of one drive where a stack has several, and the other way round.
fn is_of_as_many(dir: &Path, names: &[&str]) -> Result<(), OpenError> {
    let refuse = |found: String, expected: String| Err(OpenError::Folder { path: dir.to_path_buf(), found, expected });
    let is_of_one = dir.join(DESCRIPTION).is_file();
    if names.len() > 1 {
        let expected = || format!("a folder for each of {}", names.join(", "));
        return if is_of_one { refuse("the image of one drive".to_string(), expected()) } else { Ok(()) };
    }
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let images = entries.filter(|entry| entry.path().join(DESCRIPTION).is_file());
    let mut found: Vec<String> = images.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    if is_of_one || found.is_empty() {
        return Ok(());
    }
    found.sort_unstable();
    let expected = "the image of one drive, or a host with layers above so many";
    refuse(format!("images of several drives ({})", found.join(", ")), expected.to_string())
}

/// Opens the image in `dir` for a drive of `config` that no layer stands on, or makes a new one. There is no other saved
/// state than the chips: an old image goes through the drive's own recovery, as after a power cut. It is locked until the
/// drive is dropped.
///
/// # Errors
/// The image is in use, of another version or description, truncated or damaged; nothing is repaired silently.
pub fn open(dir: &Path, config: &DriveConfig, seed: u64) -> Result<Opened, OpenError> {
    open_under(dir, config, seed, "")
}

/// Opens an image as [`open`] does; `layers` is what decides where data is on the drive.
fn open_under(dir: &Path, config: &DriveConfig, seed: u64, layers: &str) -> Result<Opened, OpenError> {
    let expected = to_toml(config);
    let geometry = &config.flash.geometry;
    let image = Image::open(dir, geometry, geometry.page_bytes / config.ftl.mapping_unit, config.keeps_origins())?;
    let fresh = image.is_fresh();
    if fresh {
        write_description(image.folder(), layers, &expected)?;
    } else {
        same_description(image.folder(), layers, &expected, &in_full)?;
    }
    let options = Options { seed, contents: Contents::Bytes };
    let (drive, recovery) = Drive::on_image(config, options, image)?;
    Ok(Opened { drive, recovery, fresh, options })
}

/// A description as this version writes it: one of an earlier version lacks the keys that came later, and means their defaults.
fn in_full(found: &str) -> String {
    let config = Description::parse(found, DESCRIPTION).and_then(|description| description.resolve());
    config.map_or_else(|_| found.to_string(), |config| to_toml(&config))
}

/// The first line that two descriptions do not share.
fn difference(found: &str, expected: &str) -> Option<String> {
    let mut expected = expected.lines();
    let mut section = String::new();
    for line in found.lines() {
        if line.starts_with('[') {
            section = format!("{line} ");
        }
        match expected.next() {
            Some(other) if other == line => {}
            Some(other) => return Some(format!("{section}`{line}` in the image, `{other}` asked for")),
            None => return Some(format!("{section}`{line}` in the image, nothing asked for")),
        }
    }
    expected.next().map(|line| format!("nothing in the image, `{line}` asked for"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A drive of superblocks with parity on pages that another layout would read otherwise: each other layout is refused by its
    /// key, and what is in the image stays. An image of a version that knew no parity is one without.
    #[test]
    fn an_image_of_other_superblocks_or_parity_is_refused() {
        let config = |superblock: &str, parity: &str| {
            let text = format!(
                "[flash]\nchannels = 2\nchips_per_channel = 1\ndies_per_chip = 1\nplanes_per_die = 2\ntiming = \"none\"\n\
                 blocks_per_plane = 20\npages_per_block = 4\npage_size = \"4k\"\n[capacity]\nuser = \"128k\"\n\
                 [ftl]\nsuperblock = \"{superblock}\"\nparity = \"{parity}\"\n"
            );
            Description::parse(&text, "drive.toml").and_then(|description| description.resolve()).expect("a drive")
        };
        let layouts = [("none", "none"), ("die", "none"), ("die", "page"), ("drive", "page"), ("drive", "die")];
        for made in layouts {
            let dir = tempfile::tempdir().expect("a directory");
            drop(open(dir.path(), &config(made.0, made.1), 1).expect("a new image"));
            for asked in layouts {
                match open(dir.path(), &config(asked.0, asked.1), 1) {
                    Ok(opened) => assert!(made == asked && !opened.fresh, "{asked:?} on an image of {made:?}"),
                    Err(error) => {
                        let said = error.to_string();
                        let key = if made.1 == asked.1 { "superblock" } else { "parity" };
                        let words = if made.1 == asked.1 { (made.0, asked.0) } else { (made.1, asked.1) };
                        let line = |word: &str| format!("`{key} = \"{word}\"`");
                        assert!(made != asked, "{made:?} is refused: {said}");
                        assert!(said.contains("[ftl]"), "{said}");
                        assert!(said.contains(&line(words.0)) && said.contains(&line(words.1)), "{said}");
                    }
                }
            }
        }
        let dir = tempfile::tempdir().expect("a directory");
        drop(open(dir.path(), &config("die", "none"), 1).expect("a new image"));
        let path = dir.path().join(DESCRIPTION);
        let text = std::fs::read_to_string(&path).expect("a description");
        std::fs::write(&path, text.replace("parity = \"none\"\n", "")).expect("written");
        assert!(open(dir.path(), &config("die", "none"), 1).is_ok(), "an image of a version without the key");
        assert!(open(dir.path(), &config("die", "page"), 1).is_err());
    }

    /// A disk's image keeps what was on the medium, and refuses a disk of another size, other layers and a file that is cut short.
    #[test]
    fn the_image_of_a_disk_keeps_its_sectors_and_refuses_another_disk() {
        use ssdlab_base::{Nanos, Op, Request};
        use ssdlab_device::Data;

        let config = |heads: u32| {
            let text = format!(
                "name = \"small\"\n[disk]\nheads = {heads}\nzones = [{{ cylinders = 4, sectors = 50 }}]\n[disk.seek]\n\
                 settle = \"1ms\"\nknee = \"2ms\"\nfull_stroke = \"3ms\"\n"
            );
            DiskConfig::parse(&text, "small.toml", &[]).unwrap_or_else(|error| panic!("{error}"))
        };
        let dir = tempfile::tempdir().expect("a directory");
        let (mut disk, fresh) = open_disk(dir.path(), &config(2), "").expect("a new image");
        assert!(
            fresh && matches!(open_disk(dir.path(), &config(2), ""), Err(OpenError::Image(ImageError::Locked { .. })))
        );
        let written = [7; 1024];
        disk.submit(&Request::new(Op::Write, 30, 2), Data::Bytes(&written));
        disk.submit(&Request::new(Op::Flush, 0, 0), Data::Nothing);
        disk.run_until(Nanos::from_ms(1000));
        let at = disk.now();
        disk.submit(&Request { at, ..Request::new(Op::Write, 300, 1) }, Data::Bytes(&[9; 512]));
        // It is in the cache alone.
        assert!(disk.persist());
        drop(disk);
        let (disk, fresh) = open_disk(dir.path(), &config(2), "").expect("the image");
        assert!(!fresh);
        assert_eq!(disk.on_medium(&(29..33)), [&[0; 512][..], &written, &[0; 512]].concat());
        assert_eq!(disk.on_medium(&(300..301)), [0; 512]);
        assert!(disk.mapped_run(30, 400).0 && disk.check().iter().all(|check| check.passed));
        drop(disk);
        let refused = |found: Result<(Disk, bool), OpenError>| match found {
            Ok(_) => panic!("it is accepted"),
            Err(error) => error.to_string(),
        };
        let smaller = refused(open_disk(dir.path(), &config(1), ""));
        assert!(smaller.contains("`capacity = 204800` in the image, `capacity = 102400` asked for"), "{smaller}");
        assert!(refused(open_disk(dir.path(), &config(2), "stripe")).contains("under layers: stripe"));
        let sectors = dir.path().join(SECTORS);
        std::fs::OpenOptions::new().write(true).open(&sectors).and_then(|file| file.set_len(1000)).expect("cut short");
        assert!(refused(open_disk(dir.path(), &config(2), "")).contains("1000 bytes long"));
    }

    #[test]
    fn the_first_difference_is_named_with_its_section() {
        assert_eq!(difference("a = 1\n[gc]\nb = 2\n", "a = 1\n[gc]\nb = 2\n"), None);
        let said = difference("a = 1\n[gc]\nb = 2\n", "a = 1\n[gc]\nb = 3\n");
        assert_eq!(said.as_deref(), Some("[gc] `b = 2` in the image, `b = 3` asked for"));
        assert!(difference("a = 1\n", "a = 1\nb = 2\n").is_some());
        assert!(difference("a = 1\nb = 2\n", "a = 1\n").is_some());
    }
}
