//! A victim policy of one's own beside greedy, in the table of `ssdlab run`: the fewest valid units among the oldest blocks.

use std::sync::atomic::AtomicBool;

use ssdlab_base::Rng;
use ssdlab_device::{Description, Entry, PoolView, VictimPolicy, register_victim};
use ssdlab_lab::{Control, DeviceUnderTest, Experiment, NoProgress, Preconditioning, ReplayOptions, TextSource, table};

struct AmongTheOldest(usize);

impl VictimPolicy for AmongTheOldest {
    fn name(&self) -> &'static str {
        "among-the-oldest"
    }

    fn choose(&mut self, pool: &PoolView<'_>, _: &mut Rng) -> Option<u32> {
        let mut closed: Vec<u32> = (0..pool.blocks()).filter(|block| pool.is_closed(*block)).collect();
        closed.sort_unstable_by_key(|block| std::cmp::Reverse(pool.age(*block)));
        closed.into_iter().take(self.0).min_by_key(|block| pool.valid(*block))
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (name, summary) = ("among-the-oldest", "the fewest valid units among the 16 oldest blocks");
    register_victim(Entry { name, summary, keys: &[], make: |_| Box::new(AmongTheOldest(16)) })?;
    let drive = |victim: &str| -> Result<DeviceUnderTest, Box<dyn std::error::Error>> {
        let mut description = Description::load("devices/demo-slc.toml".as_ref())?;
        for set in ["flash.blocks_per_plane=144", "capacity.user=1g", &format!("gc.victim={victim}")] {
            description.set(set)?;
        }
        Ok(DeviceUnderTest { label: victim.to_string(), config: description.resolve()? })
    };
    let drives = [drive("greedy")?, drive(name)?];
    let workload = TextSource::open("rw=randwrite,bs=4k,iodepth=32,number_ios=50000", ReplayOptions::default(), 1)?;
    let experiment = Experiment { preconditioning: Preconditioning::Steady, ..Experiment::new(&drives, &workload) };
    let stop = AtomicBool::new(false);
    println!("{}", table::render(&ssdlab_lab::run(&experiment, None, &Control::new(&stop, &NoProgress))?));
    Ok(())
}
