// The programs of `weir xdp`: `weir_ingress` on every port, `weir_egress` behind the devmap of every port,
// and two tracepoints that count what the kernel drops between the two.
//
// A port's frame is located in a VLAN, checked (guard, ACL, policer), its source learned, its destination
// looked up, and redirected as it is. Tags are changed by the egress program alone, which knows both ports:
// a flooded frame may leave one port tagged and another untagged. The egress program also has the ACL and the
// policer towards the port, and counts what really leaves. The kernel keeps one egress program for all
// frames that it sends to a device in one turn, so every entry of both devmaps has the same program.
//
// For every packet exactly one of these is counted: out (by copy), drop with a reason, kernel, filtered copy:
//   in + replicated = out + drops + kernel + filtered
//
// Built by `build`; the object is committed.
#include "acl.h"
#include "answer.h"

// In 64 bits, because the verifier follows packet pointers in whole registers only.
INLINE u32 frame_length(struct xdp_md *ctx)
{
	u64 data = ctx->data, end = ctx->data_end;
	asm volatile("" : "+r"(data), "+r"(end));
	u64 length = end - data;
	asm volatile("" : "+r"(length));
	return length;
}

struct decision {
	u16 vlan;
	u8 found;
	u8 reason;
	u32 out;
	u32 rule;
};

// `what`: WHAT(kind, stage, verdict).
#define WHAT(kind, stage, verdict) ((kind) | (stage) << 8 | (verdict) << 16)
FUNCTION int report(struct xdp_md *ctx, struct counters *counters, u32 what, u32 in, const struct decision *decision)
{
	if (!ctx || !counters || !decision)
		return 0;
	struct event *event;
	if ((what & 0xff) == EVENT_TRACE)
		event = ringbuf_reserve(&traces, sizeof(*event), 0);
	else
		event = ringbuf_reserve(&events, sizeof(*event), 0);
	if (!event) {
		counters->events_lost++;
		return 0;
	}
	u32 length = frame_length(ctx);
	u32 captured = length < HEADER ? length : HEADER;
	event->time = ktime_get_ns();
	event->pool = counters->sample_pool;
	event->kind = what & 0xff;
	event->in = in;
	event->out = decision->out;
	event->length = length;
	event->rule = decision->rule;
	event->vlan = decision->vlan;
	event->reason = decision->reason;
	event->verdict = what >> 16;
	event->stage = what >> 8;
	event->found = decision->found;
	event->cpu = smp_processor_id();
	if (captured < 1 || captured > HEADER || xdp_load_bytes(ctx, 0, event->header, captured))
		captured = 0;
	event->captured = captured;
	ringbuf_submit(event, 0);
	return 0;
}

INLINE int is_traced(struct control *control, u32 slot)
{
	if (LIKELY(control->trace <= 0))
		return 0;
	if (control->trace_slot != ~0U && control->trace_slot != slot)
		return 0;
	return (s64)__sync_fetch_and_add(&control->trace, -1) > 0;
}

// Whether this packet is sampled. The gap to the next one is drawn from quantiles of the geometric
// distribution, which the daemon fills in.
INLINE int is_sampled(struct counters *counters)
{
	counters->sample_pool++;
	if (LIKELY(counters->sample_skip > 1)) {
		counters->sample_skip--;
		return 0;
	}
	int first = counters->sample_skip == 0;
	u32 at = get_prandom_u32() & (GAPS - 1);
	u32 *gap = map_lookup(&gaps, &at);
	counters->sample_skip = gap && *gap ? *gap : 1;
	if (first && counters->sample_skip > 1) {
		// Nothing was drawn yet for this CPU: this packet is the first of the gap.
		counters->sample_skip--;
		return 0;
	}
	counters->sampled++;
	return 1;
}

// A hash of addresses and ports: frames of a flow have the same.
FUNCTION u32 spread(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct ethernet *eth = data;
	if ((void *)(eth + 1) > end)
		return 0;
	u32 hash = *(u32 *)(eth->source + 2) ^ *(u32 *)(eth->destination + 2);
	u16 type = swap16(eth->type);
	u32 at = sizeof(*eth);
	if (is_tag(type)) {
		struct tag *tag = data + at;
		if ((void *)(tag + 1) > end)
			return hash;
		type = swap16(tag->type);
		at += sizeof(*tag);
	}
	if (type == ETH_IP4) {
		struct ip4 *ip = data + at;
		if ((void *)(ip + 1) <= end) {
			hash ^= ip->source ^ ip->destination ^ ip->protocol;
			u32 *ports = (void *)(ip + 1);
			if (!(ip->fragment & swap16(0x3fff)) && ip->version_length == 0x45 && (void *)(ports + 1) <= end)
				hash ^= *ports ^ (*ports >> 16);
		}
	} else if (type == ETH_IP6) {
		struct ip6 *ip = data + at;
		u32 *ports = (void *)(ip + 1);
		if ((void *)ports <= end) {
			for (int i = 0; i < 4; i++)
				hash ^= ip->source[i] ^ ip->destination[i];
			if ((ip->next == IP_TCP || ip->next == IP_UDP) && (void *)(ports + 1) <= end)
				hash ^= *ports ^ (*ports >> 16);
		}
	}
	// Finalizer of MurmurHash3: all bits of the sum reach the low ones.
	hash ^= hash >> 16;
	hash *= 0x85ebca6b;
	hash ^= hash >> 13;
	hash *= 0xc2b2ae35;
	return hash ^ hash >> 16;
}

INLINE enum reason learn(const u8 *mac, const struct port *port, u16 vlan, struct counters *counters)
{
	struct fdb_key key = { .vlan = vlan };
	__builtin_memcpy(key.mac, mac, 6);
	struct fdb_entry *known = map_lookup(&fdb, &key);
	u64 now = ktime_get_coarse_ns();
	if (LIKELY(known != 0)) {
		if (UNLIKELY(known->logical != port->logical)) {
			if (known->flags & STATIC)
				return STATIC_MAC_MOVED;
			known->logical = port->logical;
			known->moves++;
			counters->moved++;
		}
		// Written once a second, so that CPUs do not fight for the cache line.
		if (now - known->seen > 1000000000ULL)
			known->seen = now;
		return NONE;
	}
	struct fdb_entry entry = { .logical = port->logical, .seen = now };
	if (map_update(&fdb, &key, &entry, NOEXIST))
		counters->learn_full++;
	else
		counters->learned++;
	return NONE;
}

struct fib_params {
	u8 family, protocol;
	u16 source_port, destination_port, total_length;
	u32 ifindex;
	u32 tos;
	u32 source[4], destination[4];
	u16 vlan_protocol, vlan_tci;
	u8 source_mac[6], destination_mac[6];
};

// L3 mode: what the kernel's tables say. Exceptions (TTL, neighbours, fragments, own addresses) are the kernel's.
FUNCTION int route(struct xdp_md *ctx, const struct packet *packet, struct decision *decision)
{
	if (!packet || !decision)
		return XDP_PASS;
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct fib_params params = {};
	struct ethernet *eth = data;
	params.ifindex = ctx->ingress_ifindex;
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
	struct port *to = map_lookup(&ports, &params.ifindex);
	if (!to || !(to->flags & ROUTED))
		return XDP_PASS;
	data = (void *)(long)ctx->data;
	end = (void *)(long)ctx->data_end;
	eth = data;
	if ((void *)(eth + 1) > end)
		return XDP_PASS;
	if (packet->family == 4) {
		struct ip4 *ip = data + at;
		if ((void *)(ip + 1) > end)
			return XDP_PASS;
		// RFC 1624: the checksum of a header whose TTL is one less.
		u32 sum = ip->checksum + swap16(0x0100);
		ip->checksum = sum + (sum >= 0xffff);
		ip->ttl--;
	} else {
		struct ip6 *ip = data + at;
		if ((void *)(ip + 1) > end)
			return XDP_PASS;
		ip->hops--;
	}
	__builtin_memcpy(eth->destination, params.destination_mac, 6);
	__builtin_memcpy(eth->source, params.source_mac, 6);
	decision->out = params.ifindex;
	return XDP_REDIRECT;
}

INLINE int drop(struct decision *decision, enum reason reason)
{
	decision->reason = reason;
	return XDP_DROP;
}

// What becomes of a frame. XDP_REDIRECT with `out` 0 is never returned; ~0 is flooding.
INLINE int decide(struct xdp_md *ctx, struct port *port, struct counters *counters, struct control *control,
		  struct decision *decision)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct ethernet *eth = data;
	u32 length = end - data;
	struct place place;
	enum reason reason = locate(data, end, port, &place);
	decision->vlan = reason == SHORT_FRAME ? 0 : place.vlan;
	if (port->flags & ROUTED) {
		if (reason == SHORT_FRAME)
			return drop(decision, reason);
		if (reason || place.carried)
			return XDP_PASS;
	}
	if (reason == VLAN_NOT_ALLOWED && port->flags & KERNEL_OTHER)
		return XDP_PASS;
	if (reason)
		return drop(decision, reason);
	if ((void *)(eth + 1) > end)
		return drop(decision, SHORT_FRAME);
	if (eth->source[0] & 1)
		return drop(decision, SOURCE_MAC_INVALID);
	// 01:80:c2:00:00:0x: spanning tree, LACP, LLDP, 802.1X. A bridge does not forward them.
	if (UNLIKELY(eth->destination[0] == 1 && eth->destination[1] == 0x80 && eth->destination[2] == 0xc2 &&
		     !eth->destination[3] && !eth->destination[4] && eth->destination[5] < 16)) {
		decision->found = CONTROL;
		if (port->flags & CONTROL_TO_KERNEL)
			return XDP_PASS;
		return drop(decision, CONTROL_FRAME);
	}
	if (port->flags & GUARD_MAC && !mac_allowed(port, eth->source))
		return drop(decision, SPOOFED_MAC);
	int group = eth->destination[0] & 1;
	struct packet packet = {};
	u32 need = GUARD_IP | GUARD_MAC | GUARD_SERVER | ROUTED | (group ? ANSWER : 0);
	if (port->flags & need || port->acl_in) {
		parse(ctx, &packet);
		reason = guard_addresses(ctx, port, &packet);
		if (!reason && port->flags & GUARD_SERVER)
			reason = guard_servers(&packet);
		if (reason)
			return drop(decision, reason);
		if (port->acl_in && (packet.type == ETH_IP4 || packet.type == ETH_IP6)) {
			if (packet.bad)
				return drop(decision, MALFORMED);
			if (!acl_permits(port->acl_in, &packet, length, decision->vlan, &decision->rule))
				return drop(decision, ACL_IN);
		}
	}
	if (port->flags & POLICE_IN && !conforms(port->slot, POLICER_IN, length))
		return drop(decision, POLICED_IN);
	if (port->flags & ROUTED)
		return packet.bad ? XDP_PASS : route(ctx, &packet, decision);
	if (port->flags & LEARN) {
		reason = learn(eth->source, port, decision->vlan, counters);
		if (reason)
			return drop(decision, reason);
	}
	if (group && port->flags & ANSWER) {
		int answered = 0;
		if (packet.type == ETH_ARP)
			answered = answer_arp(ctx, port, decision->vlan, &packet);
		else if (packet.family == 6 && packet.protocol == IP_ICMP6 && !packet.bad)
			answered = answer_nd(ctx, port, decision->vlan, &packet);
		if (answered) {
			counters->answered++;
			decision->found = ANSWERED;
			decision->out = ctx->ingress_ifindex;
			return XDP_REDIRECT;
		}
	}
	if (!group) {
		struct fdb_key key = { .vlan = decision->vlan };
		__builtin_memcpy(key.mac, eth->destination, 6);
		struct fdb_entry *entry = map_lookup(&fdb, &key);
		if (LIKELY(entry != 0)) {
			decision->found = FOUND;
			if (entry->flags & TO_KERNEL)
				return XDP_PASS;
			u32 target = entry->logical;
			if (target == port->logical)
				return drop(decision, HAIRPIN);
			struct logical *logical = map_lookup(&logicals, &target);
			if (!logical)
				return drop(decision, INTERNAL);
			if (port->flags & ISOLATE && logical->flags & ISOLATE)
				return drop(decision, ISOLATED);
			u32 members = logical->members, member = 0;
			if (!members)
				return drop(decision, PORT_DOWN);
			if (members > 1)
				member = ((u64)spread(ctx) * members) >> 32;
			decision->out = logical->ifindex[member & (MEMBERS - 1)];
			return XDP_REDIRECT;
		}
		decision->found = UNKNOWN;
		if (port->flags & KERNEL_UNKNOWN)
			return XDP_PASS;
		if (!(port->flags & FLOOD_UNKNOWN))
			return drop(decision, UNKNOWN_UNICAST);
	} else
		decision->found = GROUP;
	if (port->flags & POLICE_STORM && !conforms(port->slot, POLICER_STORM, length))
		return drop(decision, STORM);
	if (length > control->flood_bytes)
		return drop(decision, MTU);
	decision->out = ~0U;
	return XDP_REDIRECT;
}

INLINE int ingress(struct xdp_md *ctx, u32 in)
{
	struct port *port = map_lookup(&ports, &in);
	struct control *control = control_of();
	if (!port || !control)
		return XDP_PASS;
	struct counters *counters = counters_of(port->slot);
	if (!counters)
		return XDP_PASS;
	struct decision decision = {};
	counters->in_packets++;
	counters->in_bytes += frame_length(ctx);
	int verdict = decide(ctx, port, counters, control, &decision);
	if (verdict == XDP_REDIRECT) {
		if (decision.out == ~0U) {
			u32 copies = control->flood_ports - (port->flags & IN_FLOOD ? 1 : 0);
			if ((int)copies > 0) {
				verdict = redirect_map(&flood, 0, BROADCAST | EXCLUDE_INGRESS);
				counters->flooded++;
				counters->replicated += copies - 1;
			} else {
				verdict = XDP_DROP;
				decision.reason = NO_FLOOD_PORT;
			}
		} else {
			verdict = redirect_map(&transmit, decision.out, XDP_ABORTED);
			if (verdict != XDP_REDIRECT) {
				verdict = XDP_DROP;
				decision.reason = PORT_DOWN;
			}
		}
	} else if (verdict == XDP_PASS)
		counters->kernel++;
	if (decision.reason) {
		counters->drops[decision.reason & (REASONS - 1)]++;
		if (control->drop_events)
			report(ctx, counters, WHAT(EVENT_DROP, 0, verdict), in, &decision);
	}
	if (port->flags & SAMPLE && is_sampled(counters))
		report(ctx, counters, WHAT(EVENT_SAMPLE, 0, verdict), in, &decision);
	if (is_traced(control, port->slot))
		report(ctx, counters, WHAT(EVENT_TRACE, 0, verdict), in, &decision);
	return verdict;
}

// Makes the outer tag what `to` wants. -1: the driver has no room for a tag.
FUNCTION int retag(struct xdp_md *ctx, const struct port *from, const struct port *to, const struct place *place)
{
	if (!from || !to || !place)
		return -1;
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct ethernet *eth = data;
	struct tag *tag = data + sizeof(*eth);
	int wants = !(to->flags & ACCESS) && place->vlan != to->vlan;
	if (place->carried || place->priority) {
		if ((void *)(tag + 1) > end)
			return -1;
		if (wants) {
			eth->type = swap16(to->tpid);
			tag->tci = swap16((swap16(tag->tci) & 0xf000) | place->vlan);
			return 0;
		}
		if (!place->carried && to->flags & ACCESS)
			return 0;
		if (to->flags & PRIORITY_TAGS) {
			eth->type = swap16(ETH_VLAN);
			tag->tci &= swap16(0xf000);
			return 0;
		}
		// The addresses move over the tag, and the frame begins four bytes later.
		u32 one = *(u32 *)data, two = *(u32 *)(data + 4), three = *(u32 *)(data + 8);
		*(u32 *)(data + 4) = one;
		*(u32 *)(data + 8) = two;
		*(u32 *)(data + 12) = three;
		return xdp_adjust_head(ctx, 4) ? -1 : 0;
	}
	if (!wants)
		return 0;
	u16 priority = from->priority << 13, tpid = to->tpid, vlan = place->vlan;
	if (xdp_adjust_head(ctx, -4))
		return -1;
	data = (void *)(long)ctx->data;
	end = (void *)(long)ctx->data_end;
	if (data + 18 > end)
		return -1;
	u32 one = *(u32 *)(data + 4), two = *(u32 *)(data + 8), three = *(u32 *)(data + 12);
	*(u32 *)data = one;
	*(u32 *)(data + 4) = two;
	*(u32 *)(data + 8) = three;
	*(u16 *)(data + 12) = swap16(tpid);
	*(u16 *)(data + 14) = swap16(vlan | priority);
	return 0;
}

INLINE int egress(struct xdp_md *ctx, u32 in, u32 out)
{
	struct port *to = map_lookup(&ports, &out);
	struct port *from = map_lookup(&ports, &in);
	struct control *control = control_of();
	if (!to || !control)
		return XDP_DROP; // counted by the kernel's tracepoint
	struct counters *counters = counters_of(to->slot);
	if (!counters)
		return XDP_DROP;
	struct decision decision = { .out = out };
	u32 length = frame_length(ctx);
	struct place place = {};
	if (!from) {
		decision.reason = PORT_REMOVED;
		goto dropped;
	}
	if (!(to->flags & ROUTED)) {
		void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
		decision.reason = locate(data, end, from, &place);
		if (decision.reason)
			goto dropped;
		u16 vlan = decision.vlan = place.vlan;
		int member = vlan == to->vlan;
		if (!(to->flags & ACCESS))
			member |= to->vlans[(vlan >> 6) & 63] >> (vlan & 63) & 1;
		// Copies of flooded frames reach ports of other VLANs, and other members of a bond.
		if (!member || (from->logical == to->logical && in != out)) {
			counters->filtered++;
			counters->egress_drops++;
			return XDP_DROP;
		}
		if (from->flags & to->flags & ISOLATE && in != out) {
			decision.reason = ISOLATED;
			goto dropped;
		}
	}
	if (to->acl_out) {
		struct packet packet = {};
		parse(ctx, &packet);
		if (packet.type == ETH_IP4 || packet.type == ETH_IP6) {
			decision.reason = packet.bad ? MALFORMED :
				acl_permits(to->acl_out, &packet, length, place.vlan, &decision.rule) ? NONE : ACL_OUT;
			if (decision.reason)
				goto dropped;
		}
	}
	if (to->flags & POLICE_OUT && !conforms(to->slot, POLICER_OUT, length)) {
		decision.reason = POLICED_OUT;
		goto dropped;
	}
	if (!(to->flags & ROUTED) && retag(ctx, from, to, &place)) {
		decision.reason = INTERNAL;
		goto dropped;
	}
	length = frame_length(ctx);
	if (length > to->mtu + 14 + (to->flags & ACCESS ? 0 : 8)) {
		decision.reason = MTU;
		goto dropped;
	}
	counters->out_packets++;
	counters->out_bytes += length;
	if (is_traced(control, to->slot))
		report(ctx, counters, WHAT(EVENT_TRACE, 1, XDP_PASS), in, &decision);
	return XDP_PASS;
dropped:
	counters->drops[decision.reason & (REASONS - 1)]++;
	counters->egress_drops++;
	if (control->drop_events)
		report(ctx, counters, WHAT(EVENT_DROP, 1, XDP_DROP), in, &decision);
	if (is_traced(control, to->slot))
		report(ctx, counters, WHAT(EVENT_TRACE, 1, XDP_DROP), in, &decision);
	return XDP_DROP;
}

SECTION("xdp") int weir_ingress(struct xdp_md *ctx)
{
	return ingress(ctx, ctx->ingress_ifindex);
}

SECTION("xdp/devmap") int weir_egress(struct xdp_md *ctx)
{
	return egress(ctx, ctx->ingress_ifindex, ctx->egress_ifindex);
}

// The kernel does not run devmap programs by BPF_PROG_TEST_RUN. Tests run this one; the port that it
// sends to is the receive queue's number.
SECTION("xdp") int weir_egress_test(struct xdp_md *ctx)
{
	return egress(ctx, ctx->ingress_ifindex, ctx->rx_queue_index + 1000);
}

// For port's peers: a veth device takes redirected frames only while its peer has a program.
SECTION("xdp") int weir_pass(struct xdp_md *ctx)
{
	return XDP_PASS;
}

INLINE struct counters *counters_of_device(const struct net_device *device)
{
	struct control *control = control_of();
	if (!control || !device || device->nd_net.net->ns.inum != control->netns)
		return 0;
	u32 ifindex = device->ifindex;
	struct port *port = map_lookup(&ports, &ifindex);
	return port ? counters_of(port->slot) : 0;
}

// xdp_devmap_xmit(from, to, sent, drops, err): frames that a device did not take.
SECTION("tp_btf/xdp_devmap_xmit") int weir_devmap_xmit(u64 *ctx)
{
	int lost = (int)ctx[3];
	if (lost <= 0)
		return 0;
	struct counters *counters = counters_of_device((struct net_device *)ctx[1]);
	if (counters)
		counters->transmit_lost += lost;
	return 0;
}

// xdp_redirect_err(device, program, target, err, ...): frames that were never queued for a device.
SECTION("tp_btf/xdp_redirect_err") int weir_redirect_err(u64 *ctx)
{
	struct counters *counters = counters_of_device((struct net_device *)ctx[0]);
	if (counters)
		counters->redirect_lost++;
	return 0;
}

char terms[] SECTION("license") = "Dual MIT/GPL";
