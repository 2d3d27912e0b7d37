//! Access lists: which rule of a list is the first that a packet matches.
//!
//! A list is built once, off the packet path, into a value that never changes ([`Acl`]) and is
//! published whole, for example in an `Arc`. Workers ask it with keys ([`Key4`], [`Key6`]) in batches, as a
//! rule through a cache of their own ([`Cache4`], [`Cache6`]). Counting per rule is the caller's.
//!
//! Two layers, since no one structure is both:
//!
//! * **Trees** of bit windows that end in groups of eight rules, compared side by side by vector
//!   instructions. The cost grows with the number of trees and their depth, about with the logarithm
//!   of the list. Tuple space search was not taken because lists as networks have them need 50 and more
//!   tuples, one hash probe each; bit vectors not, because their words grow with the list; one
//!   decision tree alone not, because it copies every rule that leaves a field open. Up to four trees, each
//!   for the rules that its windows tell apart, keep copies few.
//! * **The cache**: one line per flow, or one for four plain ones ([`Known4`]), whole keys compared. Ordinary traffic meets little else. A flood of
//!   keys never seen falls through to the trees, which are bounded.
//!
//! Clocks a key with `examples/classify.rs` (Zen 4 at 2.6 GHz, 4096 flows): 100 rules 15 to 20, 1000 rules
//! 17 to 20, 10,000 rules 23 to 24 with the cache (25, 28, 38 with 65,536 flows, where the cache itself no
//! longer fits the core's own); without it 30 to 40, 46 to 78, 121 to 148; the naive scan 390 to 66,000.
//!
//! What a list means for fragments, and for packets that end too early, is described at [`Upper`]. The last
//! word on what a rule matches are [`Rule::matches4`] and [`Rule::matches6`].

#![forbid(unsafe_code)]

mod acl;
mod cache;
mod family;
mod grow;
mod key;
mod known;
mod packet;
mod rule;
pub mod synthetic;
mod table;

pub use acl::{Acl, Answer, BuildError, Facts, MAX_RULES, NO_RULE, RuleIndex};
pub use cache::{Asked6, Asker6, Cache4, Cache6};
pub use key::{Key4, Key6, Upper, Wire4};
pub use known::{Asked4, Asker4, Known4};
pub use rule::{Action, Addresses, Payload, Rule};
