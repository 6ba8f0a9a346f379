//! Policies of one's own: which block to collect, what the write buffer evicts, which stream takes a write.
//!
//! A program registers a policy by name before it reads a description. From then on the policy is one like any other: `gc.victim`,
//! `buffer.policy` or `placement.policy` names it, results and reports show it, and it is made again after a power cut.
//! The controller checks each answer: a wrong one ends the run with the name of the policy and what it returned, and corrupts nothing.
//!
//! # A victim policy
//!
//! The fewest valid units among the 16 oldest blocks, beside greedy:
//!
//! ```
//! use ssdlab::policy::{Entry, PoolView, Rng, VictimPolicy, register_victim};
//! use ssdlab::{Device, Run};
//!
//! struct AmongTheOldest(usize);
//!
//! impl VictimPolicy for AmongTheOldest {
//!     fn name(&self) -> &'static str {
//!         "among-the-oldest"
//!     }
//!
//!     fn choose(&mut self, pool: &PoolView<'_>, _: &mut Rng) -> Option<u32> {
//!         let mut closed: Vec<u32> = (0..pool.blocks()).filter(|block| pool.is_closed(*block)).collect();
//!         closed.sort_unstable_by_key(|block| std::cmp::Reverse(pool.age(*block)));
//!         closed.into_iter().take(self.0).min_by_key(|block| pool.valid(*block))
//!     }
//! }
//!
//! let (name, summary) = ("among-the-oldest", "the fewest valid units among the 16 oldest blocks");
//! register_victim(Entry { name, summary, keys: &[], make: |_| Box::new(AmongTheOldest(16)) })?;
//!
//! let small = Device::named("demo-slc")?.set("flash.blocks_per_plane=144")?.set("capacity.user=1g")?;
//! let result = Run::new(small.clone().label("greedy"), "rw=randwrite,bs=4k,iodepth=32,number_ios=50000")
//!     .device(small.set("gc.victim=among-the-oldest")?.label(name))
//!     .precondition("steady")
//!     .run()?;
//! println!("{result}");
//! let amplification = |drive: usize| result.devices[drive].write_amplification.as_ref().map_or(1.0, |all| all.total);
//! assert!(amplification(0) < amplification(1), "{result}");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # A placement policy
//!
//! The first eighth of the addresses, where a file system has its journal, in a stream apart:
//!
//! ```
//! use ssdlab::policy::{Entry, PlacementPolicy, WrittenUnit, register_placement};
//! use ssdlab::{Device, Run};
//!
//! struct Journal(u32);
//!
//! impl PlacementPolicy for Journal {
//!     fn name(&self) -> &'static str {
//!         "journal"
//!     }
//!
//!     fn stream(&self, unit: &WrittenUnit) -> u16 {
//!         u16::from(unit.lpn.0 < self.0)
//!     }
//! }
//!
//! let (name, summary) = ("journal", "the first eighth apart");
//! register_placement(Entry { name, summary, keys: &[], make: |config| Box::new(Journal(config.user_units() / 8)) })?;
//!
//! let mut small = Device::named("demo-slc")?;
//! for key in ["flash.blocks_per_plane=144", "capacity.user=1g", "ftl.streams=2", "ftl.separate_gc_frontier=false"] {
//!     small = small.set(key)?;
//! }
//! let skewed = "rw=randwrite,bs=4k,iodepth=32,number_ios=50000,random_distribution=zoned:90/12.5:10/87.5";
//! let result = Run::new(small.clone().label("stream-hint"), skewed)
//!     .device(small.set("placement.policy=journal")?.label(name))
//!     .set("gc.victim=cost-benefit")
//!     .precondition("steady")
//!     .run()?;
//! println!("{result}");
//! let amplification = |drive: usize| result.devices[drive].write_amplification.as_ref().map_or(1.0, |all| all.total);
//! assert!(amplification(1) < amplification(0), "{result}");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#[doc(inline)]
pub use ssdlab_base::Rng;
#[doc(inline)]
pub use ssdlab_device::description::{Key, Kind};
#[doc(inline)]
pub use ssdlab_device::{
    BufferPolicy, DriveConfig, Entry, MakePolicy, PlacementPolicy, PoolView, RegisterError, Registered, Setting, Slot,
    Unit, VictimPolicy, View, WrittenUnit, register_buffer, register_placement, register_victim, registered,
};
#[doc(inline)]
pub use ssdlab_flash::Lpn;
