//! Files that a command writes: none of them is one that it reads.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// Refuses `output`, which an option names, where it is one of the files that the command reads, under whatever name.
pub(crate) fn is_not_read<'a>(
    option: &str,
    output: &Path,
    inputs: impl IntoIterator<Item = &'a Path>,
) -> Result<(), Failure> {
    let file = |path: &Path| fs::metadata(path).ok().map(|there| (there.dev(), there.ino()));
    let Some(output_file) = file(output) else { return Ok(()) };
    match inputs.into_iter().find(|input| file(input) == Some(output_file)) {
        Some(input) => {
            let (output, input) = (output.display(), input.display());
            Err(Failure::input(format!("{option}{output}: it would be written over '{input}', which is read"))
                .hint("name another file to write"))
        }
        None => Ok(()),
    }
}

/// Refuses `output`, which an option names, in the folder of an image: it could be one of the image's files, now or later.
pub(crate) fn is_not_in_image(option: &str, output: &Path, image: &Path) -> Result<(), Failure> {
    let folder = |path: &Path| -> Option<PathBuf> {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        fs::canonicalize(path).or_else(|_| std::path::absolute(path)).ok()
    };
    match (output.parent().and_then(folder), folder(image)) {
        (Some(parent), Some(image)) if parent.starts_with(&image) => {
            let (output, image) = (output.display(), image.display());
            Err(Failure::input(format!("{option}{output}: it is in the image, {image}"))
                .hint("name a file outside of the image's folder"))
        }
        _ => Ok(()),
    }
}
