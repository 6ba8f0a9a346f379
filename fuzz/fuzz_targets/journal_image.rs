//! Damaged images of a journaling file system are checked, mounted, walked and changed: what is wrong ends with an error.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    ssdlab_torture::files::fuzzing::damaged_image_with_journal(bytes);
});
