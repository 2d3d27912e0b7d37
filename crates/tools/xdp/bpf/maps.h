// The maps and their entries: the interface to the daemon. `src/abi.rs` has the same structures; a
// test compares sizes. All multi-byte fields are in host order unless a comment says otherwise.
// All maps are pinned, so that programs can be replaced and the daemon restarted with state kept.
#pragma once
#include "kernel.h"

enum { SLOTS = 2048, MEMBERS = 8, GAPS = 16384, REASONS = 32, NEAR_PORTS = 65536 };

// Why a packet was dropped. `src/reason.rs` has the names; numbers are never reused.
enum reason {
	NONE,
	SHORT_FRAME,
	SOURCE_MAC_INVALID,
	TAGGED_FRAME,
	VLAN_NOT_ALLOWED,
	CONTROL_FRAME,
	SPOOFED_MAC,
	SPOOFED_IP,
	DHCP_SERVER,
	ROUTER_ADVERTISEMENT,
	MALFORMED,
	ACL_IN,
	POLICED_IN,
	STATIC_MAC_MOVED,
	HAIRPIN,
	ISOLATED,
	UNKNOWN_UNICAST,
	STORM,
	NO_FLOOD_PORT,
	PORT_DOWN,
	MTU,
	ACL_OUT,
	POLICED_OUT,
	NO_ROUTE,
	REDIRECT_ERROR,
	TRANSMIT_FULL,
	PORT_REMOVED,
	INTERNAL,
	NOT_A_MEMBER,
};

enum port_flags {
	ACCESS = 1 << 0,          // untagged frames of one VLAN; otherwise a trunk
	TUNNEL = 1 << 1,          // access port whose tagged frames are carried inside the VLAN (QinQ)
	LEARN = 1 << 2,
	GUARD_MAC = 1 << 3,
	GUARD_IP = 1 << 4,
	GUARD_SERVER = 1 << 5,    // no DHCP server, no router advertisements
	FLOOD_UNKNOWN = 1 << 6,
	KERNEL_UNKNOWN = 1 << 7,
	KERNEL_OTHER = 1 << 8,    // frames of VLANs that are not configured go to the kernel
	PRIORITY_TAGS = 1 << 9,   // access port that keeps PCP and DEI in a tag of VLAN 0
	POLICE_IN = 1 << 10,
	POLICE_OUT = 1 << 11,
	POLICE_STORM = 1 << 12,
	SAMPLE = 1 << 13,
	IN_FLOOD = 1 << 14,       // is an entry of `flood`
	ROUTED = 1 << 15,         // L3 mode
	CONTROL_TO_KERNEL = 1 << 16,
	ANSWER = 1 << 17,         // ARP and ND are answered from `neighbors`
	ISOLATE = 1 << 18,
};

// A port has two entries of `ports`. A change is written to the one that is not in use, and the number of the entry in
// `near_ports` or `far_ports` is what a packet reads, so that no packet sees half of a change.
struct port {
	u32 slot;       // index of counters, policers and guards
	u32 ifindex;
	u32 logical;    // index in `logicals`: the port itself, or the bond it is a member of
	u32 flags;
	u16 vlan;       // VLAN of untagged frames; 0 on a trunk without one
	u16 tpid;       // 0x8100 or 0x88a8: of tags that carry the VLAN
	u32 acl_in;     // index in `acls`; 0 = none
	u32 acl_out;
	u32 mtu;
	u16 priority;   // PCP of tags that are pushed for untagged frames
	u8 guest_mac[6]; // one address of the guest, which is compared before `guard_mac` is searched
	u32 guest_ip4;  // the same of `guard_ip`; 0 = none
	u32 guest_ip6[4];
	u32 pad;
	u64 vlans[64];  // VLANs of a trunk
	u8 name[16];    // for the daemon only
	u64 bond;       // for the daemon only: hash of the bond's name
};

struct logical {
	u32 members;                // members whose link is up
	u32 flags;                  // ISOLATE
	u32 ifindex[MEMBERS];
};

struct fdb_key { u8 mac[6]; u16 vlan; };
enum { STATIC = 1, TO_KERNEL = 2 };
struct fdb_entry {
	u32 logical;
	u32 flags;
	u64 seen;    // ktime_get_coarse_ns, at most a second old
	u32 moves;
	u32 pad;
};

struct counters {
	u64 in_packets;
	u64 in_bytes;
	u64 out_packets;
	u64 out_bytes;
	u64 in_multicast;
	u64 in_broadcast;
	u64 out_multicast;
	u64 out_broadcast;
	u64 kernel;        // passed to the kernel
	u64 flooded;       // packets that were flooded
	u64 replicated;    // copies made beyond the first
	u64 filtered;      // copies that this port is not a member for
	u64 answered;      // ARP and ND answered; the answer is also in out_packets
	u64 learned;
	u64 moved;
	u64 learn_full;
	u64 drops_unreported; // drops that no event was made of, because of the limit or the full ring
	u64 drop_window;      // in units of DROP_WINDOW
	u64 drop_events;      // made in this window
	u64 sample_pool;
	u64 sampled;
	u64 events_lost;
	u64 transmit_lost; // as the kernel reports it: drops of the egress program included
	u64 redirect_lost;
	u64 egress_drops;  // drops and filtered copies of the egress program
	u64 source_key;    // the source address that was learned last on this CPU, as of `source_epoch`
	u64 source_epoch;
	u64 target_key;    // the destination that was found last on this CPU, as of `target_epoch`
	u64 target_epoch;
	u32 target_logical;
	u32 target_flags;
	u32 sample_skip;
	u32 pad;
	u64 drops[REASONS];
};

struct control {
	u32 netns;         // inode number of the network namespace
	u32 flood_ports;   // entries of `flood`
	u32 flood_bytes;   // longest frame that all flood ports take
	u32 fdb_limit;
	s64 trace;         // events still to be recorded
	u32 trace_slot;    // of the port; ~0 = any
	u32 conn_tcp;      // idle seconds
	u32 conn_other;
	u32 drop_events;   // events that are made of a port's drops, by CPU and DROP_WINDOW
};
// Nanoseconds, as a power of two: about a tenth of a second.
enum { DROP_WINDOW = 27 };

// Generic cell rate algorithm: `tat` is the theoretical arrival time. Times are nanoseconds << 8.
struct policer {
	u64 packet_cost;   // 0 = packets are not limited
	u64 packet_burst;
	u64 byte_cost;
	u64 byte_burst;
	u64 packet_tat;
	u64 byte_tat;
	u64 conformed;
	u64 exceeded;
};
enum { POLICER_IN, POLICER_OUT, POLICER_STORM, POLICERS };

struct mac_key { u8 mac[6]; u16 slot; };
struct address_key { u32 prefix_length; u16 slot; u16 family; u8 address[16]; };
struct neighbor_key { u32 vlan; u8 address[16]; };
struct neighbor { u8 mac[6]; u16 pad; u32 logical; };

// One family's part of an ACL: indices of words in `acl_words`.
struct acl_side {
	u32 source, sources;
	u32 destination, destinations;
	u32 source_port, source_ports;
	u32 destination_port, destination_ports;
	u32 protocol;     // 256 row indices
	u32 words;        // of a row's bit vector
	u32 summaries;    // words of a row's summary, which precede the bit vector
	u32 rules;        // one word a rule
};
struct acl {
	struct acl_side side[2];
	u32 counters;  // first entry of `acl_hits`
	u32 stateful;
	u32 base, length, rules, pad; // for the daemon only
	u64 digest;                   // for the daemon only
};
enum { RULE_PERMIT = 1, RULE_STATEFUL = 2 };
struct rule_hits { u64 packets; u64 bytes; };

struct connection_key { u32 one[4]; u32 other[4]; u16 one_port; u16 other_port; u8 protocol; u8 family; u16 vlan; };
struct connection { u64 seen; };

enum event_kind { EVENT_SAMPLE = 1, EVENT_DROP = 2, EVENT_TRACE = 3 };
enum { HEADER = 128 };
struct event {
	u64 time;
	u64 pool;
	u32 kind;
	u32 in;         // ifindex
	u32 out;        // ifindex; 0 = none, ~0 = flooded
	u32 length;     // of the frame
	u32 rule;       // rule of the ACL of arrival + 1; 0 = none
	u32 rule_out;   // the same of departure
	u32 pad;
	u16 vlan;
	u16 captured;
	u8 reason;
	u8 verdict;     // XDP action
	u8 stage;       // 0 = ingress, 1 = egress
	u8 found;       // enum found
	u32 cpu;
	u8 header[HEADER];
};
enum found { NOT_LOOKED_UP, FOUND, UNKNOWN, GROUP, ANSWERED, CONTROL, ROUTE };

MAP(ARRAY, ports, u32, struct port, SLOTS * 2);
MAP(ARRAY, near_ports, u32, u32, NEAR_PORTS); // entry of `ports` by ifindex; 0 = none
MAP(HASH, far_ports, u32, u32, 4096);         // the same for larger numbers
// Changes when addresses moved or were forgotten, and once a second: what a CPU remembers of `fdb` is void then.
MAP(ARRAY, epoch, u32, u64, 1);
MAP(ARRAY, logicals, u32, struct logical, SLOTS);
MAP(HASH, fdb, struct fdb_key, struct fdb_entry, 65536);
MAP(PERCPU_ARRAY, counters, u32, struct counters, SLOTS);
MAP(ARRAY, control, u32, struct control, 1);
MAP(ARRAY, policers, u32, struct policer, SLOTS * POLICERS);
MAP(HASH, guard_mac, struct mac_key, u32, 16384);
MAP_FLAGS(LPM_TRIE, guard_ip, struct address_key, u32, 65536, 1);
MAP(HASH, neighbors, struct neighbor_key, struct neighbor, 65536);
// VLAN devices of routed ports, both ways.
struct vlan_key { u32 ifindex; u16 vlan; u16 tpid; };
MAP(HASH, vlan_devices, struct vlan_key, u32, 4096);
MAP(HASH, vlan_parents, u32, struct vlan_key, 4096);
MAP(ARRAY, acls, u32, struct acl, 1024);
MAP(ARRAY, acl_words, u32, u64, 1048576);
MAP(PERCPU_ARRAY, acl_hits, u32, struct rule_hits, 65536);
MAP(LRU_HASH, connections, struct connection_key, struct connection, 131072);
MAP(ARRAY, gaps, u32, u32, GAPS);
struct devmap_value { u32 ifindex; int program; };
MAP(DEVMAP_HASH, transmit, u32, struct devmap_value, 4096);
MAP(DEVMAP_HASH, flood, u32, struct devmap_value, 4096);
struct {
	int (*type)[RINGBUF];
	int (*max_entries)[1 << 20];
	int (*pinning)[1];
} events SECTION(".maps"); // samples and drops, read by the daemon
struct {
	int (*type)[RINGBUF];
	int (*max_entries)[1 << 20];
	int (*pinning)[1];
} traces SECTION(".maps"); // read by `weir xdp trace`: a ring has one reader

INLINE struct port *port_of(u32 ifindex)
{
	u32 number = 0;
	if (LIKELY(ifindex < NEAR_PORTS)) {
		u32 *entry = map_lookup(&near_ports, &ifindex);
		if (entry)
			number = *entry;
		// Two calls, not one of two maps: the kernel replaces a lookup in an array by a few instructions.
		asm volatile("" : "+r"(number));
	} else {
		u32 *entry = map_lookup(&far_ports, &ifindex);
		if (entry)
			number = *entry;
	}
	return number ? map_lookup(&ports, &number) : 0;
}

INLINE u64 *epoch_of(void)
{
	u32 zero = 0;
	return map_lookup(&epoch, &zero);
}

INLINE struct counters *counters_of(u32 slot) { return map_lookup(&counters, &slot); }
INLINE struct control *control_of(void)
{
	u32 zero = 0;
	return map_lookup(&control, &zero);
}
