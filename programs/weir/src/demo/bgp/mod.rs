//! The BGP demo: two routers, each with BIRD as its control plane, and a full table between them.
//!
//! ```text
//!           AS 65001              link 1             AS 65002
//! host-a ── west  ═══════════════════════════════════ east ── host-b
//!           BIRD  ═══════════════════════════════════ BIRD, which has the table
//!                                 link 2
//! ```
//!
//! East's BIRD announces synthetic prefixes with its loopback address as next hop, which west reaches over both links. West's
//! BIRD writes them into its kernel, where west's Weir reads them. Host-b answers for all addresses.
//!
//! Both Weirs are processes of their own, so that their CPU time and memory are the kernel's figures. All is in anonymous
//! network namespaces and ends with this process, however it ends; the files are in one folder, which goes with it.

pub(crate) mod compare;
pub(crate) mod probe;
pub(crate) mod process;
pub(crate) mod stage;
pub(crate) mod texts;
