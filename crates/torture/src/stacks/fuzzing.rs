//! Damaged metadata of FlashCache: a cache starts above it, or says what is wrong.

use std::sync::LazyLock;

use ssdlab_base::{Nanos, Op, Request, SECTOR_BYTES};
use ssdlab_device::{Data, Description, DriveConfig, Options, Status};
use ssdlab_flash::Contents;
use ssdlab_host::{BlockDevice, Device, Host, Member};

/// Sectors of the cache in front of its data: a superblock of 8, and metadata of 64 slots.
const METADATA: u64 = 8 + 64 * 16 / SECTOR_BYTES;

/// Bytes of an edit: what is done, where, and with what.
const EDIT: usize = 4;

const HOST: &str = "[[layer]]\nkind = \"flashcache\"\nset = 16\nsize = \"256k\"\nmetadata_block = 512\nfast_remove = true\n\
                    skip_sequential = 0\n[[layer.below]]\n[[layer.below]]\n";

static DRIVE: LazyLock<DriveConfig> = LazyLock::new(|| {
    let text = "name = \"small\"\n[flash]\nchannels = 1\nchips_per_channel = 1\ndies_per_chip = 1\nplanes_per_die = 1\n\
                blocks_per_plane = 16\npages_per_block = 16\npage_size = \"4k\"\ncell = \"slc\"\n[capacity]\nuser = \"640k\"\n\
                [buffer]\npolicy = \"none\"\n";
    Description::parse(text, "small.toml").and_then(|description| description.resolve()).expect("a drive")
});

fn host() -> Host {
    Host::parse(HOST, "host.toml").expect("a host")
}

/// Sends a request to a device and waits; what a read brought, if it ended well.
fn one(device: &mut dyn BlockDevice, request: Request, bytes: &[u8]) -> Option<Vec<u8>> {
    let data = if bytes.is_empty() { Data::Nothing } else { Data::Bytes(bytes) };
    device.submit(&Request { at: device.now(), tag: 1, ..request }, data);
    while device.completions().is_empty() {
        assert!(device.run_to_completion(Nanos::MAX), "{request:?} never completes");
    }
    let status = device.completions().drain(..).next().map(|completion| completion.status);
    let read = device.read_data().drain(..).next().map(|(_, bytes)| bytes);
    (status == Some(Status::Success)).then(|| read.unwrap_or_default())
}

/// A cache with clean and dirty blocks that a host has left, in good order or not.
fn sample(closes: bool) -> Vec<Member> {
    let options = Options { seed: 1, contents: Contents::Bytes };
    let members = ["cache", "disk"].map(|name| Member::new(name, &DRIVE, options).expect("a drive"));
    let mut device = host().build(members.into()).expect("a stack");
    for block in [3, 4, 20, 70, 75, 150] {
        one(&mut *device_of(&mut device), Request::new(Op::Write, block * 8, 8), &[block as u8; 4096]);
    }
    one(&mut *device_of(&mut device), Request::new(Op::Read, 400, 64), &[]);
    one(&mut *device_of(&mut device), Request::new(Op::Flush, 0, 0), &[]);
    if closes {
        device.close();
    }
    let mut members = device.into_members();
    for member in &mut members {
        member.cycle(&mut |_| None);
        member.completions().clear();
    }
    members
}

fn device_of(device: &mut Box<dyn Device>) -> &mut dyn BlockDevice {
    device.as_block_device()
}

/// Edits the bytes of the metadata: single ones, entries that move, whole sectors.
fn edit(bytes: &mut [u8], edit: &[u8]) {
    let sector = SECTOR_BYTES as usize;
    let at = (usize::from(edit[1]) << 8 | usize::from(edit[2])) % bytes.len();
    let entries = (bytes.len() - 8 * sector) / 16;
    let entry = |number: usize| 8 * sector + number % entries * 16;
    match edit[0] % 8 {
        0 | 1 => bytes[at] = edit[3],
        2 => bytes[at] ^= 1 << (edit[3] % 8),
        // A slot says what another does, with a check that fits.
        3..=5 => bytes.copy_within(entry(edit[1].into())..entry(edit[1].into()) + 16, entry(edit[3].into())),
        6 => bytes[entry(edit[1].into())..][..16].fill(0),
        _ => bytes[at / sector * sector..][..sector].fill(edit[3]),
    }
}

/// What came of damaged metadata: whether a cache started above it.
///
/// # Panics
/// Something panics that should end with an error.
pub fn damaged_cache(bytes: &[u8]) -> bool {
    let Some((first, edits)) = bytes.split_first() else { return true };
    let mut members = sample(first & 1 == 0);
    let mut metadata = one(&mut members[0], Request::new(Op::Read, 0, METADATA), &[]).expect("metadata is read");
    for one in edits.chunks_exact(EDIT).take(32) {
        edit(&mut metadata, one);
    }
    one(&mut members[0], Request::new(Op::Write, 0, METADATA), &metadata);
    if first & 6 == 6 {
        // The label of the disk, behind its last whole block.
        let label = (members[1].sectors() / 8 - 1) * 8;
        one(&mut members[1], Request::new(Op::Write, label, 1), &[*first; SECTOR_BYTES as usize]);
    }
    let Ok(mut device) = host().build(members) else { return false };
    let sectors = device.sectors();
    for round in 0..2 {
        for sector in (0..sectors).step_by(64) {
            let count = 64.min(sectors - sector);
            let read = one(device_of(&mut device), Request::new(Op::Read, sector, count), &[]);
            assert!(read.is_some_and(|read| read.len() as u64 == count * SECTOR_BYTES), "a read of sector {sector}");
            if round == 0 {
                one(device_of(&mut device), Request::new(Op::Write, sector + 4, 12), &[7; 12 * SECTOR_BYTES as usize]);
            }
        }
    }
    one(device_of(&mut device), Request::new(Op::Flush, 0, 0), &[]).expect("a flush of sound drives");
    device.close();
    host().build(device.into_members()).expect("what it wrote is sound");
    true
}

#[cfg(test)]
mod tests {
    use rand::RngExt;
    use ssdlab_base::rng;

    use super::*;

    #[test]
    fn damage_is_refused_or_harmless() {
        let mut rng = rng(38, "damaged caches");
        let (mut started, mut refused) = (0, 0);
        for _ in 0..200 {
            let length = [0, 1, 5, 9, 41][rng.random_range(0..5)];
            let bytes: Vec<u8> = (0..length).map(|_| rng.random()).collect();
            if damaged_cache(&bytes) { started += 1 } else { refused += 1 }
        }
        assert!(started > 40 && refused > 40, "{started} started, {refused} refused");
    }
}
