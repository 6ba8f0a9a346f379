//! Files that a command writes: none of them is one that it reads.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

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
