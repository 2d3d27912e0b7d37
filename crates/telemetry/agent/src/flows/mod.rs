//! The flow meter's memory: which flows are under way, and what is known of each.
//!
//! A [`Table`] belongs to one worker; nobody else touches it. It is handed readings (a key and a few numbers a
//! packet, in one cache line) by the vector, and writes the records of flows that ended into a ring, from where the cold side
//! takes them. Plain packets of IPv4 come as slips, half a line each. Nothing here reads a clock, allocates after the start, or waits.
//!
//! * [`key`]: what tells one flow from another, and the keyed hash over it.
//! * [`observe`]: from a frame to the input of the table; [`selection`]: as a record set wants it, and fast for plain frames.
//! * [`record`]: what is known of a flow.
//! * `index`: from a hash to the place where the flow's record is, and when it has to be looked at.
//! * `store`: the records by place, and what lies beside them.
//! * `table`: looking up and counting, staged over the vector so that its waits for memory overlap.
//! * `expiry`: flows that are over leave, within a budget a turn; and those that must make room.
//!
//! **Exact**: what was metered is what was exported, what was lost because the ring was full, and what is still
//! resident, in packets and in octets ([`Counts`]). No flow is lost to a collision: a full bucket goes on in another one.
//! The hash is keyed, so that nobody can choose flows that collide.

mod expiry;
mod index;
pub mod key;
pub mod observe;
pub mod record;
pub mod selection;
mod store;
mod table;

pub(crate) use key::ForwardingOutcome;
pub use key::{Addresses, Key};
pub use record::{AsNumbers, EndReason, Facts, FlowRecord, Observation, Opening, Reading};
pub(crate) use record::{Share, Slip};
pub use selection::{Beside, Selection};
pub(crate) use selection::{Glass6, Read, Sight, Told};
pub(crate) use table::Plain;
pub use table::{Counts, Records, Settings, Table, VECTOR};
