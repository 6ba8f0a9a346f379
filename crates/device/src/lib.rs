//! The controller: commands, write buffer, FTL designs, GC, wear levelling, recovery.
//!
//! A [`Drive`] takes [`ssdlab_base::Request`]s at points in virtual time and gives back [`Completion`]s. It decides
//! where data goes when a command is dispatched; the chips then take their time.

mod block_pool;
mod buffer;
mod capacity;
mod command_sets;
mod config;
pub mod critical_path;
pub mod description;
mod drive;
mod event_queue;
mod ftl;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod gc;
mod interface;
mod map_stats;
mod media;
pub mod pacing;
mod placement;
mod processor;
mod recovery_reads;
mod registry;
pub mod seeded;
mod slots;
mod stats;
mod superblocks;
#[cfg(test)]
mod templates;
mod waiter;
mod wakes;

pub use block_pool::PoolView;
pub use buffer::{BufferPolicy, Padding, Slot, Unit, View};
pub use config::{
    Allocation, Answers, BufferConfig, ControllerConfig, Destage, DestageConfig, DriveConfig, FtlConfig, GcConfig,
    InterfaceConfig, InterfaceKind, Level, Owners, Pacing, Parity, PlacementConfig, ReadUnwritten, Reads,
    SATA_QUEUE_DEPTH, Superblock,
};
pub use description::{Description, DescriptionError, Setting, Settings};
pub use drive::{
    CommandCount, Data, Drive, DriveError, Left, OnImageError, Options, Payload, Recovered, Recovery, sector_stamp,
};
pub use ftl::{
    design_commands, design_with, designs_with_lists, draw_design, draw_owners, draw_user_units, draw_zone_limits,
    drawn_designs, drops_clean, handful_for_design, has_own_campaign, overrides_for_addresses, partial_write_cost,
    set_addresses, set_owners,
};
pub use gc::victim::{BROKEN_CONTRACT, VictimPolicy};
pub use map_stats::{MapCacheStats, MapRequests, MapUser, MapWaits};
pub use placement::{PlacementPolicy, WrittenUnit};
pub use registry::{
    Entry, MakePolicy, RegisterError, Registered, register_buffer, register_placement, register_victim, registered,
};
pub use stats::{
    BufferCounters, Check, Completion, ControllerCounters, Counters, OverProvisioning, Status, Utilization, Wear,
};
