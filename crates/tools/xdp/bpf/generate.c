// The programs of `weir xdp demo`: a paced generator, a counting sink, and a VLAN pop for the Linux bridge. They are
// not part of the service.
//
// `weir_generate` runs by BPF_PROG_TEST_RUN with live frames on the far end of a veth pair. Frames arrive at the
// near end as they come from a driver, without socket buffers. The kernel gives a frame's memory back to the
// program as the receiver left it, so the program writes the whole header each time.
#include "kernel.h"

#define LOCAL_MAP(name, value_type) \
	struct { \
		int (*type)[ARRAY]; \
		u32 *key; \
		value_type *value; \
		int (*max_entries)[1]; \
	} name SECTION(".maps")

// A tagged frame: Ethernet 14, tag 4, IPv4 20 bytes, then UDP.
enum { LENGTH = 64, SOURCE_PORT = 38 };
struct traffic {
	u64 gap;      // nanoseconds between two bursts, at least 1
	u64 next;     // ktime_get_ns at which the next burst is due
	u64 sent;
	u64 limit;    // frames to send
	u32 flows;    // UDP source ports, which count up from 1024; 0 = that of the frame
	u32 burst;    // frames that are sent back to back; a power of 2
	u8 frame[LENGTH];
};
struct sink { u64 packets; };
LOCAL_MAP(traffic, struct traffic);
LOCAL_MAP(sink, struct sink);

SECTION("xdp") int weir_generate(struct xdp_md *ctx)
{
	u32 zero = 0;
	struct traffic *to = map_lookup(&traffic, &zero);
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	if (!to || data + LENGTH > end || to->sent >= to->limit)
		return XDP_DROP;
	u64 now = ktime_get_ns();
	if (!(to->sent & (to->burst - 1))) {
		if (now < to->next)
			return XDP_DROP;
		// A pause is not made up for: the receiver's queue would be full.
		to->next = (to->next + to->gap > now ? to->next : now) + to->gap;
	}
	__builtin_memcpy(data, to->frame, LENGTH);
	if (to->flows)
		*(u16 *)(data + SOURCE_PORT) = swap16(1024 + to->sent % to->flows);
	to->sent++;
	return XDP_TX;
}

// Frames of the measurement have a payload of 0x55; others (router solicitations) are not counted.
SECTION("xdp") int weir_sink(struct xdp_md *ctx)
{
	u32 zero = 0;
	struct sink *found = map_lookup(&sink, &zero);
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	if (!found || data + 60 > end)
		return XDP_DROP;
	if (*(u8 *)(data + 59) == 0x55)
		__sync_fetch_and_add(&found->packets, 1);
	return XDP_DROP;
}

struct __sk_buff {
	u32 length, packet_type, mark, queue_mapping, protocol, vlan_present, vlan_tci;
};
static long (*const skb_vlan_pop)(struct __sk_buff *skb) = (void *)19;

// For bridges of kernels without VLAN filtering: takes the tag of VLAN 100 off, and drops the rest.
SECTION("classifier") int weir_pop(struct __sk_buff *skb)
{
	if (!skb->vlan_present || (skb->vlan_tci & 0xfff) != 100)
		return 2; // TC_ACT_SHOT
	return skb_vlan_pop(skb) ? 2 : 0;
}

char terms[] SECTION("license") = "Dual MIT/GPL";
