// The programs of `weir xdp`: `weir_ingress` on every port, `weir_egress` behind the devmap of every port,
// and two tracepoints that count what the kernel drops between the two.
//
// A port's frame is located in a VLAN, checked (guard, ACL, policer), its source learned, its destination
// looked up. A frame with one destination is then made what the port of departure wants, and redirected; that costs
// one parse and one program. A flooded frame is redirected as it is, because its copies may leave one port tagged and
// another untagged: the egress program makes each what its port wants.
//
// The kernel keeps one egress program for all frames that it sends to a device in one turn, so every entry of both
// devmaps has the same program. A frame that is finished carries a mark, which the egress program takes off: the group
// bit of its source address, with which no frame is ever forwarded.
//
// For every packet exactly one of these is counted: out (by copy), drop with a reason, kernel, filtered copy:
//   in + replicated = out + drops + kernel + filtered
//
// Built by `build`; the object is committed.
#include "answer.h"
#include "depart.h"
#include "route.h"

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

INLINE u64 key_of(const u8 *mac, u16 vlan)
{
	return *(const u32 *)mac | (u64)*(const u16 *)(mac + 4) << 32 | (u64)vlan << 48;
}

// What becomes of the source address. A CPU remembers the last one of each port until the epoch ends.
INLINE enum reason learn(const u8 *mac, const struct port *port, u16 vlan, struct counters *counters, u64 *epoch)
{
	u64 wanted = key_of(mac, vlan), as_of = *epoch;
	if (LIKELY(counters->source_key == wanted && counters->source_epoch == as_of))
		return NONE;
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
			__sync_fetch_and_add(epoch, 1);
			as_of++;
		}
		// Written once a second, so that CPUs do not fight for the cache line.
		if (now - known->seen > 1000000000ULL)
			known->seen = now;
	} else {
		struct fdb_entry entry = { .logical = port->logical, .seen = now };
		if (map_update(&fdb, &key, &entry, NOEXIST)) {
			counters->learn_full++;
			return NONE;
		}
		counters->learned++;
	}
	counters->source_key = wanted;
	// If another CPU moved an address meanwhile, the next frame looks again.
	counters->source_epoch = as_of;
	return NONE;
}

// Where the destination address is; 0: not known. A CPU remembers the last one of each port until the epoch ends.
INLINE int find_target(const u8 *mac, u16 vlan, struct counters *counters, const u64 *epoch, u32 *logical, u32 *flags)
{
	u64 wanted = key_of(mac, vlan);
	if (LIKELY(counters->target_key == wanted && counters->target_epoch == *epoch)) {
		*logical = counters->target_logical;
		*flags = counters->target_flags;
		return 1;
	}
	u64 now = *epoch;
	struct fdb_key key = { .vlan = vlan };
	__builtin_memcpy(key.mac, mac, 6);
	struct fdb_entry *entry = map_lookup(&fdb, &key);
	if (!entry)
		return 0;
	*logical = counters->target_logical = entry->logical;
	*flags = counters->target_flags = entry->flags;
	counters->target_key = wanted;
	counters->target_epoch = now;
	return 1;
}

// What the stages of the program of arrival know of a frame.
struct frame {
	struct packet packet;
	struct place place;
	struct hop hop;
	u32 parsed;
};

INLINE int drop(struct decision *decision, enum reason reason)
{
	decision->reason = reason;
	return XDP_DROP;
}

INLINE int is_broadcast(const struct ethernet *eth)
{
	return *(const u32 *)eth->destination == ~0U && *(const u16 *)(eth->destination + 4) == 0xffff;
}

// What becomes of a frame. XDP_REDIRECT with `out` 0 is never returned; ~0 is flooding.
INLINE int decide(struct xdp_md *ctx, struct port *port, struct counters *counters, struct control *control,
		  struct frame *frame, struct decision *decision)
{
	struct place *place = &frame->place;
	struct packet *packet = &frame->packet;
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct ethernet *eth = data;
	u32 length = end - data;
	enum reason reason = locate(data, end, port, place);
	u64 *epoch = epoch_of();
	if (!epoch)
		return drop(decision, INTERNAL);
	decision->vlan = reason == SHORT_FRAME ? 0 : place->vlan;
	u32 by = port->ifindex;
	if (port->flags & ROUTED) {
		if (reason == SHORT_FRAME)
			return drop(decision, reason);
		if (place->vid) {
			struct vlan_key key = { .ifindex = by, .vlan = place->vid, .tpid = place->tpid };
			u32 *device = map_lookup(&vlan_devices, &key);
			if (!device)
				return XDP_PASS;
			by = *device;
			place->carried = 1;
			decision->vlan = place->vid;
		} else if (reason)
			return XDP_PASS;
		reason = NONE;
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
	if (group)
		*(is_broadcast(eth) ? &counters->in_broadcast : &counters->in_multicast) += 1;
	u32 need = GUARD_IP | GUARD_MAC | GUARD_SERVER | ROUTED | (group ? ANSWER : 0);
	if (port->flags & need || port->acl_in) {
		parse(ctx, packet);
		frame->parsed = 1;
		reason = guard_addresses(ctx, port, packet);
		if (!reason && port->flags & GUARD_SERVER)
			reason = guard_servers(packet);
		if (reason)
			return drop(decision, reason);
		if (port->acl_in && (packet->type == ETH_IP4 || packet->type == ETH_IP6)) {
			if (packet->bad)
				return drop(decision, MALFORMED);
			if (!acl_permits(port->acl_in, packet, length, decision->vlan, &decision->rule))
				return drop(decision, ACL_IN);
		}
	}
	if (port->flags & POLICE_IN && !conforms(port->slot, POLICER_IN, length))
		return drop(decision, POLICED_IN);
	if (port->flags & ROUTED)
		return packet->bad ? XDP_PASS : route(ctx, packet, by, decision, &frame->hop);
	if (port->flags & LEARN) {
		reason = learn(eth->source, port, decision->vlan, counters, epoch);
		if (reason)
			return drop(decision, reason);
	}
	if (group && port->flags & ANSWER) {
		int answered = 0;
		if (packet->type == ETH_ARP)
			answered = answer_arp(ctx, port, decision->vlan, packet);
		else if (packet->family == 6 && packet->protocol == IP_ICMP6 && !packet->bad)
			answered = answer_nd(ctx, port, decision->vlan, packet);
		if (answered) {
			counters->answered++;
			decision->found = ANSWERED;
			decision->out = port->ifindex;
			return XDP_REDIRECT;
		}
	}
	if (!group) {
		u32 target, flags;
		if (LIKELY(find_target(eth->destination, decision->vlan, counters, epoch, &target, &flags))) {
			decision->found = FOUND;
			if (flags & TO_KERNEL)
				return XDP_PASS;
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

// Makes the frame what the port of departure wants, and marks it as finished. -1: no room for a tag.
INLINE int finish(struct xdp_md *ctx, const struct tagging *tagging, const struct frame *frame, int is_routed)
{
	if (is_routed)
		rewrite(ctx, &frame->packet, &frame->hop);
	if (retag(ctx, tagging))
		return -1;
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct ethernet *eth = data;
	if ((void *)(eth + 1) > end)
		return -1;
	eth->source[0] |= 1;
	return 0;
}

// A frame with one destination: everything up to the device. Returns the verdict; drops are counted at the port of
// departure, and reported.
INLINE int unicast(struct xdp_md *ctx, const struct port *port, u32 length, struct control *control, struct frame *frame,
		   struct decision *decision, u32 *is_departure, struct counters **departed, struct tagging *tagging)
{
	struct port *to = port_of(decision->out);
	struct counters *out = to ? counters_of(to->slot) : 0;
	if (!out || redirect_map(&transmit, decision->out, XDP_ABORTED) != XDP_REDIRECT)
		return drop(decision, PORT_DOWN);
	*is_departure = 1;
	*departed = out;
	*tagging = tagging_of(port, to, &frame->place);
	if (port->flags & ROUTED) {
		tagging->vlan = frame->hop.vlan;
		tagging->tpid = frame->hop.tpid;
	} else if (!is_for(port, to, decision->vlan, decision->found == ANSWERED))
		return drop(decision, NOT_A_MEMBER);
	enum reason reason = depart(ctx, to, length, decision->vlan, tagging, &frame->packet, frame->parsed, decision);
	return reason ? drop(decision, reason) : XDP_REDIRECT;
}

INLINE int ingress(struct xdp_md *ctx, u32 in)
{
	struct port *port = port_of(in);
	struct control *control = control_of();
	if (!port || !control)
		return XDP_PASS;
	struct counters *counters = counters_of(port->slot), *departed = 0;
	if (!counters)
		return XDP_PASS;
	struct decision decision = {};
	struct frame frame = {};
	struct tagging tagging = {};
	u32 length = frame_length(ctx), is_departure = 0;
	counters->in_packets++;
	counters->in_bytes += length;
	int verdict = decide(ctx, port, counters, control, &frame, &decision);
	if (verdict == XDP_REDIRECT) {
		if (decision.out == ~0U) {
			u32 copies = control->flood_ports - (port->flags & IN_FLOOD ? 1 : 0);
			if ((int)copies > 0) {
				verdict = redirect_map(&flood, 0, BROADCAST | EXCLUDE_INGRESS);
				counters->flooded++;
				counters->replicated += copies - 1;
			} else
				verdict = drop(&decision, NO_FLOOD_PORT);
		} else
			verdict = unicast(ctx, port, length, control, &frame, &decision, &is_departure, &departed, &tagging);
	} else if (verdict == XDP_PASS)
		counters->kernel++;
	if (decision.reason)
		report_drop(ctx, is_departure && departed ? departed : counters, is_departure, in, control, &decision);
	if (port->flags & SAMPLE && is_sampled(counters))
		report(ctx, counters, WHAT(EVENT_SAMPLE, 0, verdict), in, &decision);
	if (is_traced(control, port->slot))
		report(ctx, counters, WHAT(EVENT_TRACE, 0, verdict), in, &decision);
	if (verdict != XDP_REDIRECT || !departed)
		return verdict;
	if (finish(ctx, &tagging, &frame, port->flags & ROUTED)) {
		drop(&decision, INTERNAL);
		report_drop(ctx, departed, 1, in, control, &decision);
		return XDP_DROP;
	}
	departed->out_packets++;
	departed->out_bytes += frame_length(ctx);
	return XDP_REDIRECT;
}

// Finishes copies of flooded frames.
INLINE int egress(struct xdp_md *ctx, u32 in, u32 out)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct ethernet *eth = data;
	if ((void *)(eth + 1) > end)
		return XDP_DROP; // as below
	if (LIKELY(eth->source[0] & 1)) {
		eth->source[0] &= ~1;
		return XDP_PASS;
	}
	struct port *to = port_of(out), *from = port_of(in);
	struct control *control = control_of();
	struct counters *counters = to ? counters_of(to->slot) : 0;
	if (!counters || !control)
		return XDP_DROP; // counted by the kernel's tracepoint
	struct decision decision = { .out = out };
	struct place place = {};
	u32 length = frame_length(ctx);
	if (!from) {
		decision.reason = PORT_REMOVED;
		goto dropped;
	}
	decision.reason = locate(data, end, from, &place);
	if (decision.reason)
		goto dropped;
	u16 vlan = decision.vlan = place.vlan;
	if (!is_for(from, to, vlan, in == out)) {
		counters->filtered++;
		counters->egress_drops++;
		return XDP_DROP;
	}
	if (from->flags & to->flags & ISOLATE) {
		decision.reason = ISOLATED;
		goto dropped;
	}
	int group = eth->destination[0] & 1, broadcast = is_broadcast(eth);
	struct tagging tagging = tagging_of(from, to, &place);
	struct packet packet = {};
	decision.reason = depart(ctx, to, length, vlan, &tagging, &packet, 0, &decision);
	if (!decision.reason && retag(ctx, &tagging))
		decision.reason = INTERNAL;
	if (decision.reason)
		goto dropped;
	counters->out_packets++;
	counters->out_bytes += frame_length(ctx);
	if (group)
		*(broadcast ? &counters->out_broadcast : &counters->out_multicast) += 1;
	if (is_traced(control, to->slot))
		report(ctx, counters, WHAT(EVENT_TRACE, 1, XDP_PASS), in, &decision);
	return XDP_PASS;
dropped:
	counters->egress_drops++;
	report_drop(ctx, counters, 1, in, control, &decision);
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
	struct port *port = port_of(ifindex);
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
