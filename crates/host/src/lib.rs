//! What runs above drives, in the same virtual time: I/O schedulers, drivers, cache managers, arrays.
//!
//! A layer stands on one [`Device`] or several and is one itself, so layers make a tree, a *stack*, and code that runs,
//! serves or tortures a drive does the same with a stack. To add a layer is to add its file or folder and its line in
//! [`LAYERS`].

mod append;
mod ata;
mod cache;
mod caching;
mod description;
mod device;
mod disk;
mod error;
mod flashcache;
mod layer;
mod layers;
mod member;
mod mirror;
mod page_cache;
pub mod promise;
mod records;
mod restoring;
mod scheduler;
pub mod seeded;
mod sequentializing;
mod shrd;
mod stripe;
mod through;
mod write_intent;

pub use append::{Append, AppendConfig, Cleaning};
pub use ata::{Ata, AtaConfig};
pub use cache::{CacheConfig, CacheManager};
pub use description::{Host, KEYS, MemberConfig, Names};
pub use device::{
    Administration, Again, AnswersBelow, BlockDevice, COPIED_BYTES, CommandList, Device, Identity, LayerMetrics, Loss,
    Part, Power, Traffic, seed_of,
};
pub use error::{HostError, LayerError, StackError, UnknownDrive};
pub use flashcache::{FlashCache, FlashCacheConfig};
pub use layer::standing;
pub use layers::{Below, LAYERS, LayerConfig, LayerKind};
pub use member::Member;
pub use mirror::{Mirror, MirrorConfig};
pub use page_cache::{PageCache, PageCacheConfig};
pub use promise::Promise;
pub use restoring::{Restoring, RestoringConfig};
pub use scheduler::{Scheduler, SchedulerConfig};
pub use shrd::{Shrd, ShrdConfig};
pub use stripe::{Stripe, StripeConfig};
pub use through::{Between, Through};
