//! The configuration store: what was applied, kept so that any crash leaves the old or the new.
//!
//! A *revision* is a text (the YAML of a configuration; the store never looks into it) with time,
//! author, comment and the number of plan steps. Each lies in a file of its own, `000042.yaml`, which
//! is the text below a few comment lines with checksums. One *state*, a page or a few long, says which
//! revision runs, which one waits to be confirmed, and what became of the others. It is kept in two
//! files of fixed size that are overwritten in turn; the newer one that is whole counts. So the one
//! moment at which a change takes effect is an overwrite in place, which needs no space on the disk:
//!
//! 1. [`Store::prepare`] writes and syncs the revision. A full or read-only disk shows here, before
//!    the router has changed anything.
//! 2. The router carries out its plan.
//! 3. [`Store::commit`] makes it count; [`Store::abandon`] forgets it.
//!
//! A revision committed with a deadline is *pending* until [`Store::confirm`]. When the router dies
//! before that, [`Store::open`] takes the revision before it and says so. The store has no clock and
//! no timer: its caller gives times and calls [`Store::roll_back_pending`] at the deadline.
//!
//! Everything goes through [`Files`]: [`DiskFiles`] is a folder with a lock; [`Remembered`] keeps what a
//! disk is bound to keep over a power cut and nothing else, and can give every picture that a cut may leave.

#![forbid(unsafe_code)]

mod disk;
mod error;
mod files;
mod remembered;
mod revision;
mod state;
mod store;

pub use disk::DiskFiles;
pub use error::StoreError;
pub use files::{Files, OpenFile};
pub use remembered::{Fault, Picture, Remembered};
pub use revision::{MOST_AUTHOR, MOST_COMMENT, MOST_TEXT, Meta, Revision};
pub use state::{Pending, RevisionState, Why};
pub use store::{Confirm, Entry, MOST_KEPT, Prepared, Recovered, Store};
