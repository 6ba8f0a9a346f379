//! Memory of a page cache, counted: a program of its own, since every allocation of the process counts.
#![allow(unsafe_code, reason = "an allocator that counts can only be written so")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use ssdlab_base::{Op, Request};
use ssdlab_device::{Data, Description, Options};
use ssdlab_flash::Contents;
use ssdlab_host::{Device, Host, Member};

struct Counting;

static BYTES: AtomicUsize = AtomicUsize::new(0);

// SAFETY: everything is passed on to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        BYTES.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        BYTES.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Every block is cached and dirty, in the order of addresses, where sets of dirty blocks are as wide as they get; and again with
/// blocks that came and went.
#[test]
fn a_cached_block_takes_at_most_64_bytes_beside_its_contents() {
    let text = "name = \"small\"\n[flash]\nchannels = 4\nchips_per_channel = 1\ndies_per_chip = 1\nplanes_per_die = 1\n\
                blocks_per_plane = 256\npages_per_block = 128\npage_size = \"4k\"\ncell = \"slc\"\ntiming = \"none\"\n\
                [capacity]\nuser = \"400m\"\n";
    let drive = Description::parse(text, "small.toml").and_then(|description| description.resolve()).expect("a drive");
    for blocks in [10_000_u64, 15_000, 30_000, 60_000] {
        let options = Options { seed: 1, contents: Contents::Nothing };
        let member = Member::new("small", &drive, options).expect("a drive");
        let text = format!(
            "[[layer]]\nkind = \"page-cache\"\nram = {}\ndirty = \"100%\"\nbackground = \"100%\"\n",
            blocks * 4096
        );
        let host = Host::parse(&text, "host.toml").expect("a host");
        let before = BYTES.load(Ordering::Relaxed);
        let mut device = host.build(vec![member]).expect("a stack");
        let step = |device: &mut Box<dyn Device>, block: u64| {
            device.submit(&Request::new(Op::Write, block * 8, 8), Data::Nothing);
            device.completions().clear();
        };
        (0..blocks - 1).for_each(|block| step(&mut device, block));
        let bytes = (BYTES.load(Ordering::Relaxed) - before) as u64;
        let each = bytes as f64 / blocks as f64;
        println!("{blocks} blocks: {each:.1} bytes each");
        assert!(each <= 64.0, "{blocks} blocks: {each:.1} bytes each");
        assert!(each > 28.0, "{blocks} blocks: {each:.1} bytes each: not all was counted");
    }
}
