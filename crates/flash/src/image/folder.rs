//! A folder that is its owner's alone, and the files in it.
//!
//! The folder may stand in a place where other users write. So it is opened without following a link, everything in it is
//! reached through it and not by path, and a file is taken only if it is a plain file that this user owns, that no other user
//! may open, and that has no other name. What another user prepared is refused before a byte of it is read or changed.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, fchmod, fstat, openat, renameat, statat, unlinkat};
use rustix::io::Errno;

use super::ImageError;
use super::files::{NEW_RECORDS, UNFINISHED, WHOLE, missing};

/// Who serves a drive, and no other user, reads what is on it.
const DIR_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;
const OTHERS_WRITE: u32 = 0o022;

/// The socket that a server has beside its drives.
const CONTROL: &str = "control.sock";

/// The file with the sectors of a hard disk, which an image may be of as well.
const SECTORS: &str = "sectors";

/// A folder of the user who runs this.
pub struct Folder {
    path: PathBuf,
    descriptor: OwnedFd,
}

impl Folder {
    /// Opens a folder, or makes it, with the folders above it. Others lose the right to look into one that is this user's
    /// and empty, or holds an image: no other folder's rights are changed.
    ///
    /// # Errors
    /// It is a link, or another user's, or cannot be made or opened; or others may write into it, and it holds no image.
    pub fn open(path: &Path) -> Result<Folder, ImageError> {
        // Without a slash at its end, which would follow a link.
        let path: PathBuf = path.components().collect();
        let io = |error: io::Error| ImageError::Io { path: path.clone(), error };
        let is_link = || {
            statat(CWD, &path, AtFlags::SYMLINK_NOFOLLOW)
                .is_ok_and(|found| FileType::from_raw_mode(found.st_mode) == FileType::Symlink)
        };
        if is_link() {
            return Err(ImageError::Link { path });
        }
        std::fs::DirBuilder::new().recursive(true).mode(DIR_MODE).create(&path).map_err(io)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let descriptor = openat(CWD, &path, flags, Mode::empty()).map_err(|error| match is_link() {
            true => ImageError::Link { path: path.clone() },
            false => io(error.into()),
        })?;
        let found = fstat(&descriptor).map_err(|error| io(error.into()))?;
        is_ours(&path, found.st_uid)?;
        let mode = found.st_mode & 0o777;
        let folder = Folder { path, descriptor };
        let path = folder.path.clone();
        let is_an_image =
            folder.is_empty_or_an_image().map_err(|error| ImageError::Io { path: path.clone(), error })?;
        if !is_an_image && mode & OTHERS_WRITE != 0 {
            return Err(ImageError::NotAnImage { path });
        }
        // Rights that the owner took from himself stay away.
        if is_an_image && mode & !DIR_MODE != 0 {
            let wanted = mode & DIR_MODE;
            fchmod(&folder.descriptor, Mode::from_raw_mode(wanted)).map_err(|error| ImageError::NotPrivate {
                path: path.clone(),
                found: mode,
                wanted,
                error: error.into(),
            })?;
        }
        Ok(folder)
    }

    /// Whether it holds a whole image, or nothing but parts of one, or of images of several drives. Folders of other programs
    /// have files of the same names.
    fn is_empty_or_an_image(&self) -> io::Result<bool> {
        let is_part = |name: &str| {
            WHOLE.contains(&name)
                || [UNFINISHED, NEW_RECORDS, CONTROL, SECTORS].contains(&name)
                || self.has(&format!("{name}/description.toml"))
        };
        let is_known = |name: &OsString| name.to_str().is_some_and(is_part);
        Ok(WHOLE.iter().all(|name| self.has(name)) || self.names()?.iter().all(is_known))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether something of this name is in it.
    pub fn has(&self, name: &str) -> bool {
        statat(&self.descriptor, name, AtFlags::SYMLINK_NOFOLLOW).is_ok()
    }

    /// The names of all that is in it.
    pub(super) fn names(&self) -> io::Result<Vec<OsString>> {
        let mut names = Vec::new();
        for entry in Dir::read_from(&self.descriptor)? {
            let name = entry?.file_name().to_bytes().to_vec();
            if name != b"." && name != b".." {
                names.push(OsString::from_vec(name));
            }
        }
        Ok(names)
    }

    /// Opens a file to read and write it; one that is not there is made if `make`.
    ///
    /// # Errors
    /// It is not a plain file with this one name that this user alone may open; or it is not there.
    pub fn file(&self, name: &str, make: bool) -> Result<File, ImageError> {
        let path = self.path.join(name);
        // A pipe that another user left would make an opening wait.
        let mut flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        flags.set(OFlags::CREATE, make);
        let opened = openat(&self.descriptor, name, flags, Mode::from_raw_mode(FILE_MODE));
        let file = File::from(opened.map_err(|error| match error {
            Errno::LOOP => ImageError::Link { path: path.clone() },
            Errno::NOENT if !make => missing(path.clone(), name),
            error => ImageError::Io { path: path.clone(), error: error.into() },
        })?);
        let found = fstat(&file).map_err(|error| ImageError::Io { path: path.clone(), error: error.into() })?;
        if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile {
            return Err(ImageError::NoFile { path });
        }
        is_ours(&path, found.st_uid)?;
        let (mode, links) = (found.st_mode & 0o777, found.st_nlink);
        if mode & !FILE_MODE != 0 {
            return Err(ImageError::Open { path, mode });
        }
        if links > 1 {
            #[allow(clippy::unnecessary_cast, reason = "the type has 32 bits on some systems")]
            return Err(ImageError::Names { path, links: links as u64 });
        }
        Ok(file)
    }

    /// Opens a file as [`Folder::file`] does, and empties it.
    ///
    /// # Errors
    /// Those of [`Folder::file`]; or it cannot be emptied.
    pub fn empty_file(&self, name: &str) -> Result<File, ImageError> {
        let file = self.file(name, true)?;
        file.set_len(0).map_err(|error| ImageError::Io { path: self.path.join(name), error })?;
        Ok(file)
    }

    /// Gives a file in it another name there, in the place of one that has it.
    pub(super) fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        Ok(renameat(&self.descriptor, from, &self.descriptor, to)?)
    }

    /// Removes a file in it.
    pub(super) fn remove(&self, name: &str) -> io::Result<()> {
        Ok(unlinkat(&self.descriptor, name, AtFlags::empty())?)
    }
}

fn is_ours(path: &Path, owner: u32) -> Result<(), ImageError> {
    let user = rustix::process::geteuid().as_raw();
    if owner == user { Ok(()) } else { Err(ImageError::Foreign { path: path.to_path_buf(), owner, user }) }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    #[test]
    fn what_another_user_could_have_prepared_is_refused_and_left_as_it_is() {
        let place = tempfile::tempdir().expect("a directory");
        let precious = place.path().join("precious");
        std::fs::write(&precious, "very precious").expect("written");
        std::fs::set_permissions(&precious, std::fs::Permissions::from_mode(0o600)).expect("the owner may");
        let dir = place.path().join("image");
        let folder = Folder::open(&dir).expect("a new folder");
        symlink(&precious, dir.join("link")).expect("a link");
        std::fs::hard_link(&precious, dir.join("second")).expect("a second name");
        std::fs::write(dir.join("wide"), "x").expect("written");
        std::fs::set_permissions(dir.join("wide"), std::fs::Permissions::from_mode(0o620)).expect("the owner may");
        rustix::fs::mkfifoat(CWD, dir.join("pipe"), Mode::from_raw_mode(0o600)).expect("a pipe");
        std::fs::create_dir(dir.join("folder")).expect("a folder");
        let said = |name: &str| folder.empty_file(name).expect_err(name).to_string();
        assert!(said("link").contains("symbolic link"), "{}", said("link"));
        assert!(said("second").contains("2 names"), "{}", said("second"));
        assert!(said("wide").contains("mode is 620"), "{}", said("wide"));
        assert!(said("pipe").contains("not a plain file"), "{}", said("pipe"));
        assert!(folder.empty_file("folder").is_err());
        assert_eq!(std::fs::read(&precious).expect("it is there"), b"very precious");
        assert_eq!(std::fs::read(dir.join("wide")).expect("it is there"), b"x");

        symlink(&dir, place.path().join("way")).expect("a link");
        for way in ["way", "way/", "way/."] {
            let said = Folder::open(&place.path().join(way)).err().expect(way).to_string();
            assert!(said.contains("symbolic link"), "{way}: {said}");
        }
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(&dir, Some(65534), None).expect("root may");
            let said = Folder::open(&dir).err().expect("another user's").to_string();
            assert!(said.contains("belongs to user 65534"), "{said}");
        }
    }

    #[test]
    fn a_new_folder_and_its_files_are_private_and_an_open_folder_is_closed() {
        let place = tempfile::tempdir().expect("a directory");
        let dir = place.path().join("a/b");
        let mode = |path: &Path| std::fs::metadata(path).expect("it is there").permissions().mode() & 0o777;
        let folder = Folder::open(&dir).expect("a new folder");
        drop(folder.file("pages", true).expect("a new file"));
        assert!(folder.has("pages") && !folder.has("oob"));
        assert!(folder.file("oob", false).is_err());
        assert_eq!((mode(&dir), mode(&dir.join("pages"))), (0o700, 0o600));
        std::fs::set_permissions(&dir, std::fs::Permissions::from_mode(0o775)).expect("the owner may");
        assert_eq!(Folder::open(&dir).expect("it opens").names().expect("a list"), ["pages"]);
        assert_eq!(mode(&dir), 0o700);
    }

    /// A start with `--image /` once closed the root folder to all other users.
    #[test]
    fn rights_of_folders_that_hold_no_image_stay_as_they_are() {
        let place = tempfile::tempdir().expect("a directory");
        let set = |mode| std::fs::set_permissions(place.path(), std::fs::Permissions::from_mode(mode)).expect("ours");
        let mode = || std::fs::metadata(place.path()).expect("it is there").permissions().mode() & 0o7777;
        for name in ["letter.txt", "pages", "blocks"] {
            std::fs::write(place.path().join(name), "dear").expect("written");
            set(0o755);
            assert!(Folder::open(place.path()).is_ok());
            assert_eq!(mode(), 0o755, "{name}");
            set(0o1777);
            let said = Folder::open(place.path()).err().expect("others may write").to_string();
            assert!(said.contains("not an image"), "{said}");
            assert_eq!(mode(), 0o1777, "{name}");
        }
        // With all files of an image it is one.
        for name in ["description.toml", "oob", "records"] {
            std::fs::write(place.path().join(name), "").expect("written");
        }
        assert!(Folder::open(place.path()).is_ok());
        assert_eq!(mode() & 0o777, 0o700);
    }
}
