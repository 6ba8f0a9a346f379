//! Policies of one's own: which block to collect, what the write buffer evicts, which stream takes a write.
//!
//! A program registers a policy by name before it reads a description. From then on the policy is one like any other:
//! `gc.victim`, `buffer.policy` or `placement.policy` names it, results and reports show it, and it is made again after
//! a power cut. The controller checks each answer: a wrong one ends the run with the name of the policy and what it
//! returned.
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
//! register_victim(Entry {
//!     name: "among-the-oldest",
//!     summary: "the fewest valid units among the 16 oldest blocks",
//!     keys: &[],
//!     make: |_| Box::new(AmongTheOldest(16)),
//! })?;
//!
//! let drive = Device::named("demo-slc")?;
//! let workload = "rw=randwrite,bs=4k,iodepth=32,io_size=100%,norandommap";
//! let result = Run::new(drive.clone().label("greedy"), workload)
//!     .device(drive.set("gc.victim=among-the-oldest")?.label("among-the-oldest"))
//!     .set("flash.blocks_per_plane=64") // on both: a small drive is soon in its steady state
//!     .set("capacity.over_provisioning=14%")
//!     .precondition("steady")
//!     .run()?;
//! println!("{result}");
//! assert_eq!(result.devices[1].name, "among-the-oldest");
//! assert!(result.checks_held());
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
//! register_placement(Entry {
//!     name: "journal",
//!     summary: "the first eighth apart",
//!     keys: &[],
//!     make: |config| Box::new(Journal(config.user_units() / 8)),
//! })?;
//!
//! // Nine of ten writes go to the first eighth.
//! let skewed = "rw=randwrite,bs=4k,iodepth=32,io_size=100%,norandommap,\
//!               random_distribution=zoned:90/12.5:10/87.5";
//! let drive = Device::named("demo-slc")?.set("ftl.streams=2")?;
//! let result = Run::new(drive.clone().label("stream-hint"), skewed)
//!     .device(drive.set("placement.policy=journal")?.label("journal"))
//!     .set("ftl.separate_gc_frontier=false")
//!     .set("gc.victim=cost-benefit")
//!     .set("flash.blocks_per_plane=64")
//!     .set("capacity.over_provisioning=14%")
//!     .precondition("steady")
//!     .run()?;
//! println!("{result}");
//! let amplification = |drive: usize| Some(result.devices[drive].write_amplification.as_ref()?.total);
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
