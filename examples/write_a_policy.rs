//! A victim policy of one's own beside greedy: the fewest valid units among the oldest blocks.

use rand::RngExt;
use ssdlab_base::{Op, Request, Rng, rng};
use ssdlab_device::{Description, Drive, Options, PoolView, VictimPolicy};
use ssdlab_flash::{Contents, OpKind};

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
    let mut description = Description::load("devices/demo-slc.toml".as_ref())?;
    description.set("flash.timing=none")?;
    let config = description.resolve()?;
    let options = Options { seed: 1, contents: Contents::Nothing };
    let drives = [Drive::new(&config, options)?, Drive::with_victim(&config, options, Box::new(AmongTheOldest(16)))?];
    for (name, mut drive) in ["greedy", "among-the-oldest"].into_iter().zip(drives) {
        let (pages, mut random) = (drive.user_sectors() / 8, rng(1, "example"));
        for _ in 0..3 * pages {
            drive.submit(&Request::new(Op::Write, random.random_range(0..pages) * 8, 8));
            drive.completions().clear();
        }
        let programs = drive.counters().flash.total(OpKind::Program);
        println!("{name}: {:.3} pages programmed for each page written", programs as f64 / (3 * pages) as f64);
    }
    Ok(())
}
