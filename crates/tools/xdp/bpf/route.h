// L3 mode: what the kernel's tables say. Exceptions (TTL, neighbours, fragments, own addresses) are the kernel's.
#pragma once
#include "report.h"

struct fib_params {
	u8 family, protocol;
	u16 source_port, destination_port, total_length;
	u32 ifindex;
	u32 tos;
	u32 source[4], destination[4];
	u16 vlan_protocol, vlan_tci;
	u8 source_mac[6], destination_mac[6];
};

// The addresses of a routed packet's next hop, and the VLAN device that it leaves by; 0 = none.
struct hop {
	u8 destination[6];
	u8 source[6];
	u16 vlan;
	u16 tpid;
};

// `by` is the device that the packet came in by: the port, or a VLAN device above it. Nothing is changed here.
FUNCTION int route(struct xdp_md *ctx, const struct packet *packet, u32 by, struct decision *decision, struct hop *hop)
{
	if (!packet || !decision || !hop)
		return XDP_PASS;
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct fib_params params = {};
	struct ethernet *eth = data;
	params.ifindex = by;
	u32 at = packet->l3 & 31;
	if ((void *)(eth + 1) > end)
		return XDP_PASS;
	if (packet->family == 4) {
		struct ip4 *ip = data + at;
		if ((void *)(ip + 1) > end || ip->ttl <= 1 || ip->version_length != 0x45)
			return XDP_PASS;
		params.family = 2;
		params.tos = ip->tos;
		params.protocol = ip->protocol;
		params.total_length = swap16(ip->total);
		params.source[0] = ip->source;
		params.destination[0] = ip->destination;
	} else if (packet->family == 6) {
		struct ip6 *ip = data + at;
		if ((void *)(ip + 1) > end || ip->hops <= 1)
			return XDP_PASS;
		params.family = 10;
		params.tos = ip->flow & swap32(0x0fffffff);
		params.protocol = ip->next;
		params.total_length = swap16(ip->length) + 40;
		__builtin_memcpy(params.source, ip->source, 16);
		__builtin_memcpy(params.destination, ip->destination, 16);
	} else
		return XDP_PASS;
	decision->found = ROUTE;
	long answer = fib_lookup(ctx, &params, sizeof(params), 0);
	if (answer == 1 || answer == 2 || answer == 3) { // blackhole, unreachable, prohibit
		decision->reason = NO_ROUTE;
		return XDP_DROP;
	}
	if (answer != 0)
		return XDP_PASS;
	struct vlan_key *parent = map_lookup(&vlan_parents, &params.ifindex);
	decision->out = params.ifindex;
	hop->vlan = hop->tpid = 0;
	if (parent) {
		decision->out = parent->ifindex;
		hop->vlan = parent->vlan;
		hop->tpid = parent->tpid;
	}
	struct port *to = port_of(decision->out);
	if (!to || !(to->flags & ROUTED)) {
		decision->out = 0;
		return XDP_PASS;
	}
	__builtin_memcpy(hop->destination, params.destination_mac, 6);
	__builtin_memcpy(hop->source, params.source_mac, 6);
	return XDP_REDIRECT;
}

// The MAC addresses of the next hop, and one hop less.
INLINE void rewrite(struct xdp_md *ctx, const struct packet *packet, const struct hop *hop)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct ethernet *eth = data;
	u32 at = packet->l3 & 31;
	struct ip4 *ip4 = data + at;
	struct ip6 *ip6 = data + at;
	if ((void *)(eth + 1) > end || (void *)(ip4 + 1) > end)
		return;
	if (packet->family == 4) {
		// RFC 1624: the checksum of a header whose TTL is one less.
		u32 sum = ip4->checksum + swap16(0x0100);
		ip4->checksum = sum + (sum >= 0xffff);
		ip4->ttl--;
	} else
		ip6->hops--;
	__builtin_memcpy(eth->destination, hop->destination, 6);
	__builtin_memcpy(eth->source, hop->source, 6);
}
