use ssdlab_device::Description;

use super::{Host, Names};
use crate::UnknownDrive;

/// Knows a drive and a disk.
struct Shipped;

impl Names for Shipped {
    fn drive(&self, name: &str) -> Result<Description, UnknownDrive> {
        let text = "name = \"small\"\n[flash]\nchannels = 1\nchips_per_channel = 1\ndies_per_chip = 1\nplanes_per_die = 1\n\
                    blocks_per_plane = 24\npages_per_block = 16\npage_size = \"8k\"\ncell = \"slc\"\n[capacity]\nuser = \"2m\"\n";
        match name {
            "small" => Description::parse(text, "small.toml").map_err(|why| UnknownDrive(why.to_string())),
            other => Err(UnknownDrive(format!("'{other}' is no drive that is known here"))),
        }
    }

    fn disk(&self, name: &str) -> Result<(String, String), UnknownDrive> {
        match name {
            "spindle" => Ok((DISK.to_string(), "spindle.toml".to_string())),
            other => Err(UnknownDrive(format!("'{other}' is no disk that is known here"))),
        }
    }
}

const DISK: &str = include_str!("../../../../devices/wd1502faex.toml");

#[test]
fn a_description_is_read_or_refused_with_its_line() {
    assert!(Host::parse("[[layer]]\nkind = \"scheduler\"\ndepth = 4\n", "h.toml").is_ok());
    let tree = "[[layer]]\nkind = \"scheduler\"\n[[layer]]\nkind = \"stripe\"\nchunk = \"4k\"\n[[layer.below]]\n\
                [[layer.below]]\nkind = \"stripe\"\ndrives = 3\n";
    let host = Host::parse(tree, "h.toml").expect("a tree");
    assert_eq!(host.root.count(), 4);
    assert!(!host.is_transparent());
    let refused = |text: &str| Host::parse_with(text, "h.toml", &Shipped).expect_err("it is wrong").to_string();
    for (text, expected) in [
        ("", "h.toml: layer: missing, expected a [[layer]] for each layer"),
        (
            "[[room]]\nkind = \"scheduler\"\n",
            "h.toml:1:3: room: found an unknown key, expected layer; did you mean 'layer'?",
        ),
        ("layer = []\n", "h.toml:1:9: layer: found a list of 0, expected a [[layer]]"),
        ("[layer]\nkind = \"scheduler\"\n", "h.toml:1:1: layer: found a table, expected a [[layer]]"),
        ("[[layer]]\nkind = \"schedular\"\n", "h.toml:2:8: layer[0].kind: found \"schedular\", expected scheduler"),
        ("[[layer]]\nkind = 3\n", "h.toml:2:8: layer[0].kind: found 3, expected scheduler"),
        (
            "[[layer]]\ndepth = 3\n",
            "layer[0].kind: missing, expected scheduler, page-cache, ata, stripe, mirror, shrd, restoring, append, cache or flashcache",
        ),
        ("[[layer]]\ndepths = 3\n", "h.toml:2:1: layer[0].depths: found an unknown key, expected one of kind"),
        (
            "[[layer]]\nkind = \"scheduler\"\n[[layer]]\nkind = \"scheduler\"\ndepht = 4\n",
            "h.toml:5:1: layer[1].depht: found an unknown key, expected one of kind, below, drives, depth, \
             merge_size, policy, segments, requests, unplug_requests, unplug_time, read_expire, write_expire, \
             fifo_batch or writes_starved; did you mean 'depth'?",
        ),
        (
            "[[layer]]\nkind = \"scheduler\"\ndepth = -1\n",
            "h.toml:3:9: layer[0].depth: found -1, expected a whole number",
        ),
        ("[[layer]]\nkind = \"scheduler\"\nmerge_size = \"100\"\n", "h.toml:3:14: layer[0].merge_size: found \"100\""),
        (
            "[[layer]]\nkind = \"scheduler\"\npolicy = \"cfq\"\n",
            "h.toml:3:10: layer[0].policy: found \"cfq\", expected fifo, noop or deadline",
        ),
        (
            "[[layer]]\nkind = \"scheduler\"\nrequests = 4\n",
            "h.toml:3:12: layer[0].requests: found 4, expected nothing: the policy fifo does not read it",
        ),
        (
            "[[layer]]\nkind = \"scheduler\"\npolicy = \"noop\"\nfifo_batch = 4\n",
            "h.toml:4:14: layer[0].fifo_batch: found 4, expected nothing: only the policy deadline reads it",
        ),
        (
            "[[layer]]\nkind = \"scheduler\"\npolicy = \"deadline\"\nfifo_batch = 0\n",
            "h.toml:4:14: layer[0].fifo_batch: found 0, expected",
        ),
        (
            "[[layer]]\nkind = \"stripe\"\nchunk = \"100\"\n",
            "h.toml:3:9: layer[0].chunk: found \"100\", expected whole sectors of 512 bytes",
        ),
        (
            "[[layer]]\nkind = \"stripe\"\ndrives = 3\n[[layer]]\nkind = \"scheduler\"\n",
            "h.toml:3:10: layer[0].drives: found 3, expected nothing: this layer stands on the next",
        ),
        (
            "[[layer]]\nkind = \"scheduler\"\ndrives = 2\n",
            "h.toml:3:10: layer[0].drives: found 2, expected 1 device below a scheduler",
        ),
        (
            "[[layer]]\nkind = \"stripe\"\nbelow = [{ drive = \"nowhere\" }]\n",
            "layer[0].below[0].drive: found \"nowhere\", expected the name of a drive that ships",
        ),
        (
            "[[layer]]\nkind = \"stripe\"\nbelow = [{ set = [] }]\n",
            "layer[0].below[0].set: found a list of 0, expected set beside drive",
        ),
        ("[[layer]]\nkind = \"shrd\"\nthreshold = \"1m\"\n", "h.toml:3:13: layer[0].threshold: found \"1m\""),
        ("[[layer]]\nkind = \"shrd\"\nremap_entries = 512\n", "h.toml:3:17: layer[0].remap_entries: found 512"),
        (
            "[[layer]]\nkind = \"shrd\"\nwhen_full = \"drop\"\n",
            "h.toml:3:13: layer[0].when_full: found \"drop\", expected wait or direct",
        ),
        (
            "[[layer]]\nkind = \"stripe\"\nbelow = [{ drive = \"small\", set = [\"name=a\", \"gc.free_blocks=no\"] }]\n",
            "h.toml:3:46: layer[0].below[0].set[1]: found \"gc.free_blocks=no\", expected a valid drive (gc.free_blocks: ",
        ),
        (
            "[[layer]]\nkind = \"stripe\"\nbelow = [{ disk = \"spindle\", set = [\"name=a\", \"disk.rpm=no\"] }]\n",
            "h.toml:3:47: layer[0].below[0].set[1]: found \"disk.rpm=no\", expected a valid disk (disk.rpm: ",
        ),
        (
            "[[layer]]\nkind = \"flashcache\"\nbelow = [{ disk = \"spindle\" }, {}]\n",
            "h.toml:3:19: layer[0].below[0].disk: found \"spindle\", expected a drive: below[0] of the layer flashcache is its cache",
        ),
        (
            "[[layer]]\nkind = \"cache\"\nbelow = [{ kind = \"ata\", below = [{ disk = \"spindle\" }] }, {}]\n",
            "h.toml:3:10: layer[0].below[0]: found a table, expected a drive: below[0] of the layer cache is its cache",
        ),
        ("nonsense\n", "h.toml:1:"),
    ] {
        let found = refused(text);
        assert!(found.contains(expected), "{text:?}: {found}");
    }
}

#[test]
fn all_errors_of_all_layers_are_told_at_once() {
    let text = "[[layer]]\nkind = \"schedular\"\n[[layer]]\nkind = \"scheduler\"\ndepth = -1\nmerge_sise = 7\n\
                [[layer]]\nkind = \"stripe\"\nchunk = \"100\"\nbelow = [{ drive = \"nowhere\" }, { kind = \"append\", \
                copies = 0 }, { drives = 2 }]\n";
    let message = Host::parse(text, "h.toml").expect_err("all of it is wrong").to_string();
    let told: Vec<&str> = message.lines().filter_map(|line| line.split(": ").nth(1)).collect();
    let expected = [
        "layer[0].kind",
        "layer[1].depth",
        "layer[1].merge_sise",
        "layer[2].chunk",
        "layer[2].below[0].drive",
        "layer[2].below[1].copies",
        "layer[2].below[2].drives",
    ];
    assert_eq!(told, expected, "{message}");
    assert!(message.ends_with("\n7 errors"), "{message}");
}
