//! The structures that the programs and the daemon share, as in `bpf/maps.h`.
//!
//! Keys and values cross the system call as byte arrays ([`Bytes`]), so that nothing here is unsafe. A test
//! compares the sizes with those in the compiled object.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// The version of this layout. A change of any structure or map is another version.
pub const LAYOUT: u32 = 2;
/// Entries of `counters`: ports and bonds together.
pub const SLOTS: u32 = 2048;
/// Members of a bond.
pub const MEMBERS: usize = 8;
/// Entries of `near_ports`: larger ifindexes are in `far_ports`.
pub const NEAR_PORTS: u32 = 65_536;
/// Entries of `gaps`.
pub const GAPS: u32 = 16384;
/// Drop reasons that have room in `Counters`.
pub const REASONS: usize = 32;
/// Policers of a port: received, sent, flooded.
pub const POLICERS: u32 = 3;
/// A window of drop events in nanoseconds.
pub const DROP_WINDOW: u64 = 1 << 27;
/// Bytes of a frame in an event.
pub const HEADER: usize = 128;

/// Conversion between a structure and the bytes of a map entry.
pub trait Bytes<const N: usize>: Sized {
    /// The bytes of the entry.
    fn to_bytes(&self) -> [u8; N];
    /// The structure of an entry.
    fn of_bytes(bytes: &[u8; N]) -> Self;
}

macro_rules! entry {
    ($(#[$note:meta])* $name:ident, $size:literal { $($(#[$field_note:meta])* $field:ident: $type:ty,)* }) => {
        $(#[$note])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
        #[repr(C)]
        pub struct $name { $($(#[$field_note])* pub $field: $type,)* }
        const _: () = assert!(std::mem::size_of::<$name>() == $size);
        impl Default for $name {
            fn default() -> Self { zerocopy::FromZeros::new_zeroed() }
        }
        impl Bytes<$size> for $name {
            fn to_bytes(&self) -> [u8; $size] {
                let mut bytes = [0; $size];
                bytes.copy_from_slice(self.as_bytes());
                bytes
            }
            fn of_bytes(bytes: &[u8; $size]) -> Self {
                zerocopy::transmute!(*bytes)
            }
        }
    };
}

/// Bits of [`Port::flags`].
#[expect(missing_docs, reason = "explained in bpf/maps.h")]
pub mod flags {
    pub const ACCESS: u32 = 1 << 0;
    pub const TUNNEL: u32 = 1 << 1;
    pub const LEARN: u32 = 1 << 2;
    pub const GUARD_MAC: u32 = 1 << 3;
    pub const GUARD_IP: u32 = 1 << 4;
    pub const GUARD_SERVER: u32 = 1 << 5;
    pub const FLOOD_UNKNOWN: u32 = 1 << 6;
    pub const KERNEL_UNKNOWN: u32 = 1 << 7;
    pub const KERNEL_OTHER: u32 = 1 << 8;
    pub const PRIORITY_TAGS: u32 = 1 << 9;
    pub const POLICE_IN: u32 = 1 << 10;
    pub const POLICE_OUT: u32 = 1 << 11;
    pub const POLICE_STORM: u32 = 1 << 12;
    pub const SAMPLE: u32 = 1 << 13;
    pub const IN_FLOOD: u32 = 1 << 14;
    pub const ROUTED: u32 = 1 << 15;
    pub const CONTROL_TO_KERNEL: u32 = 1 << 16;
    pub const ANSWER: u32 = 1 << 17;
    pub const ISOLATE: u32 = 1 << 18;
}

/// Bits of [`FdbEntry::flags`].
#[expect(missing_docs, reason = "explained in bpf/maps.h")]
pub mod fdb_flags {
    pub const STATIC: u32 = 1;
    pub const TO_KERNEL: u32 = 2;
}

entry! {
    /// A port.
    Port, 600 {
        /// Index of counters, policers and guards.
        slot: u32,
        /// The interface; 0 = the entry is not in use.
        ifindex: u32,
        /// The port itself, or its bond.
        logical: u32,
        /// [`flags`].
        flags: u32,
        /// The VLAN of untagged frames; 0 = none.
        vlan: u16,
        /// Of tags that carry the VLAN.
        tpid: u16,
        /// Index of the ACL of received frames; 0 = none.
        acl_in: u32,
        /// Index of the ACL of sent frames; 0 = none.
        acl_out: u32,
        /// Bytes without Ethernet header.
        mtu: u32,
        /// PCP of pushed tags.
        priority: u16,
        /// An address of the guest, which is compared before `guard_mac` is searched.
        guest_mac: [u8; 6],
        /// The same of `guard_ip`, as on the wire; 0 = none.
        guest_ip4: [u8; 4],
        /// The same of IPv6.
        guest_ip6: [u8; 16],
        /// Unused.
        pad: u32,
        /// VLANs of a trunk, one bit each.
        vlans: [u64; 64],
        /// The interface's name, for a daemon that starts again.
        name: [u8; 16],
        /// A hash of its bond's name; 0 = none.
        bond: u64,
    }
}

entry! {
    /// Where frames for a port or bond go.
    Logical, 40 {
        /// Members whose link is up.
        members: u32,
        /// `ISOLATE`.
        flags: u32,
        /// The members.
        ifindex: [u32; MEMBERS],
    }
}

entry! {
    /// A MAC address in a VLAN.
    FdbKey, 8 {
        /// The address.
        mac: [u8; 6],
        /// The VLAN.
        vlan: u16,
    }
}

entry! {
    /// Where a MAC address is.
    FdbEntry, 24 {
        /// Port or bond.
        logical: u32,
        /// [`fdb_flags`].
        flags: u32,
        /// Nanoseconds since boot, at most a second old.
        seen: u64,
        /// Times that it was learned from another port.
        moves: u32,
        /// Unused.
        pad: u32,
    }
}

entry! {
    /// A port's counters on one CPU.
    Counters, 504 {
        /// Packets received.
        in_packets: u64,
        /// Bytes received.
        in_bytes: u64,
        /// Packets sent.
        out_packets: u64,
        /// Bytes sent.
        out_bytes: u64,
        /// Packets received that were multicast.
        in_multicast: u64,
        /// Packets received that were broadcast.
        in_broadcast: u64,
        /// Packets sent that were multicast.
        out_multicast: u64,
        /// Packets sent that were broadcast.
        out_broadcast: u64,
        /// Packets passed to the kernel.
        kernel: u64,
        /// Received packets that were flooded.
        flooded: u64,
        /// Copies beyond the first.
        replicated: u64,
        /// Copies that are not for this port.
        filtered: u64,
        /// ARP and ND that were answered.
        answered: u64,
        /// Addresses learned.
        learned: u64,
        /// Addresses that moved to this port.
        moved: u64,
        /// Addresses not learned because the table is full.
        learn_full: u64,
        /// Drops that no event was made of.
        drops_unreported: u64,
        /// The window of drop events.
        drop_window: u64,
        /// Drop events of that window.
        drop_events: u64,
        /// Packets that could have been sampled.
        sample_pool: u64,
        /// Packets that were sampled.
        sampled: u64,
        /// Events that found the ring full.
        events_lost: u64,
        /// Frames that the device did not take, and drops of the egress program.
        transmit_lost: u64,
        /// Frames that were never queued.
        redirect_lost: u64,
        /// Drops and filtered copies of the egress program.
        egress_drops: u64,
        /// The source address that was learned last, with its VLAN.
        source_key: u64,
        /// The epoch in which it was.
        source_epoch: u64,
        /// The destination address that was found last, with its VLAN.
        target_key: u64,
        /// The epoch in which it was.
        target_epoch: u64,
        /// Where it is.
        target_logical: u32,
        /// The flags of its entry.
        target_flags: u32,
        /// Packets until the next sample.
        sample_skip: u32,
        /// Unused.
        pad: u32,
        /// By reason.
        drops: [u64; REASONS],
    }
}

entry! {
    /// Settings for all ports.
    Control, 40 {
        /// Inode number of the network namespace.
        netns: u32,
        /// Entries of `flood`.
        flood_ports: u32,
        /// Longest frame that all flood ports take.
        flood_bytes: u32,
        /// Unused.
        fdb_limit: u32,
        /// Trace events still to be recorded.
        trace: i64,
        /// Slot of the traced port; `u32::MAX` = any.
        trace_slot: u32,
        /// Seconds that an idle TCP connection is kept.
        conn_tcp: u32,
        /// Seconds that another idle connection is kept.
        conn_other: u32,
        /// Events that are made of a port's drops, by CPU and [`DROP_WINDOW`].
        drop_events: u32,
    }
}

entry! {
    /// A policer; times are nanoseconds << 8.
    Policer, 64 {
        /// Of one packet; 0 = packets are not limited.
        packet_cost: u64,
        /// Time that packets may come early.
        packet_burst: u64,
        /// Of one byte; 0 = bytes are not limited.
        byte_cost: u64,
        /// Time that bytes may come early.
        byte_burst: u64,
        /// Theoretical arrival time of the next packet.
        packet_tat: u64,
        /// The same of bytes.
        byte_tat: u64,
        /// Packets within the limits.
        conformed: u64,
        /// Packets beyond them.
        exceeded: u64,
    }
}

entry! {
    /// A MAC address that a port may send from.
    MacKey, 8 {
        /// The address.
        mac: [u8; 6],
        /// The port.
        slot: u16,
    }
}

entry! {
    /// An address prefix that a port may send from, without its length.
    AddressKey, 20 {
        /// The port.
        slot: u16,
        /// 4 or 6.
        family: u16,
        /// The address; of IPv4 the rest is 0.
        address: [u8; 16],
    }
}

entry! {
    /// An address that is answered for.
    NeighborKey, 20 {
        /// The VLAN.
        vlan: u32,
        /// IPv6, or IPv4 mapped into it.
        address: [u8; 16],
    }
}

entry! {
    /// The answer.
    Neighbor, 12 {
        /// The MAC address.
        mac: [u8; 6],
        /// Unused.
        pad: u16,
        /// The owner's port.
        logical: u32,
    }
}

entry! {
    /// A VLAN of a routed port.
    VlanKey, 8 {
        /// The port.
        ifindex: u32,
        /// The VLAN.
        vlan: u16,
        /// The tag's EtherType.
        tpid: u16,
    }
}

entry! {
    /// One family's part of an ACL: indices in `acl_words`.
    AclSide, 48 {
        /// Intervals of the source address.
        source: u32,
        /// Their number.
        sources: u32,
        /// Intervals of the destination address.
        destination: u32,
        /// Their number.
        destinations: u32,
        /// Intervals of the source port.
        source_port: u32,
        /// Their number.
        source_ports: u32,
        /// Intervals of the destination port.
        destination_port: u32,
        /// Their number.
        destination_ports: u32,
        /// 256 rows by protocol.
        protocol: u32,
        /// Words of a bit vector.
        words: u32,
        /// Words of a summary.
        summaries: u32,
        /// One word a rule.
        rules: u32,
    }
}

entry! {
    /// An ACL.
    Acl, 128 {
        /// IPv4 and IPv6.
        side: [AclSide; 2],
        /// First entry of `acl_hits`.
        counters: u32,
        /// Whether connections are looked up first.
        stateful: u32,
        /// First word in `acl_words`.
        base: u32,
        /// Words in `acl_words`.
        length: u32,
        /// Entries of `acl_hits`.
        rules: u32,
        /// Unused.
        pad: u32,
        /// Hash of name and content.
        digest: u64,
    }
}

entry! {
    /// A rule's counters on one CPU.
    RuleHits, 16 {
        /// Packets that it decided.
        packets: u64,
        /// Their bytes.
        bytes: u64,
    }
}

entry! {
    /// What the programs report of a packet.
    Event, 184 {
        /// Nanoseconds since boot.
        time: u64,
        /// Packets that could have been sampled, on that CPU and port.
        pool: u64,
        /// 1 sample, 2 drop, 3 trace.
        kind: u32,
        /// The ifindex of arrival.
        in_port: u32,
        /// The ifindex of departure; 0 = none, `u32::MAX` = flooded.
        out_port: u32,
        /// Bytes of the frame.
        length: u32,
        /// The rule of the ACL of arrival that decided + 1.
        rule: u32,
        /// The same of departure.
        rule_out: u32,
        /// Unused.
        pad: u32,
        /// The VLAN.
        vlan: u16,
        /// Bytes of `header` that are the frame's.
        captured: u16,
        /// Why it was dropped; 0 = it was not.
        reason: u8,
        /// The XDP action.
        verdict: u8,
        /// 0 on arrival, 1 on departure.
        stage: u8,
        /// How its destination was found.
        found: u8,
        /// The CPU.
        cpu: u32,
        /// The frame's first bytes.
        header: [u8; HEADER],
    }
}
