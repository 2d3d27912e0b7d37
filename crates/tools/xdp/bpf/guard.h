// What a port may send: source MAC, source addresses in IP, ARP and neighbour discovery, no DHCP server
// and no router advertisements; and how much.
#pragma once
#include "parse.h"

struct arp {
	u16 hardware, protocol;
	u8 hardware_length, protocol_length;
	u16 operation;
	u8 sender_mac[6];
	u8 sender[4];
	u8 target_mac[6];
	u8 target[4];
};

INLINE int is_same_mac(const u8 *one, const u8 *other)
{
	return *(const u32 *)one == *(const u32 *)other && *(const u16 *)(one + 4) == *(const u16 *)(other + 4);
}

INLINE int mac_allowed(const struct port *port, const u8 *mac)
{
	if (LIKELY(is_same_mac(port->guest_mac, mac)))
		return 1;
	struct mac_key key = { .slot = port->slot };
	__builtin_memcpy(key.mac, mac, 6);
	return map_lookup(&guard_mac, &key) != 0;
}

INLINE int address_allowed(const struct port *port, u32 family, const u32 *address)
{
	if (family == 4) {
		if (LIKELY(port->guest_ip4 && port->guest_ip4 == address[0]))
			return 1;
	} else if (port->guest_ip6[0] == address[0] && port->guest_ip6[1] == address[1] &&
		   port->guest_ip6[2] == address[2] && port->guest_ip6[3] == address[3] && address[0])
		return 1;
	struct address_key key = { .prefix_length = family == 4 ? 64 : 160, .slot = port->slot, .family = family };
	__builtin_memcpy(key.address, address, 16); // of IPv4 the rest is 0
	return map_lookup(&guard_ip, &key) != 0;
}

// Checks the addresses that the packet claims to come from.
FUNCTION int guard_addresses(struct xdp_md *ctx, const struct port *port, const struct packet *packet)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	if (!port || !packet)
		return INTERNAL;
	if (packet->type == ETH_ARP) {
		struct arp *arp = data + (packet->l3 & 31);
		if ((void *)(arp + 1) > end)
			return MALFORMED;
		if (port->flags & GUARD_MAC && !mac_allowed(port, arp->sender_mac))
			return SPOOFED_MAC;
		u32 sender[4] = {};
		__builtin_memcpy(sender, arp->sender, 4);
		// 0.0.0.0 is the sender of a probe (RFC 5227).
		if (port->flags & GUARD_IP && sender[0] && !address_allowed(port, 4, sender))
			return SPOOFED_IP;
		return NONE;
	}
	if (!(port->flags & GUARD_IP))
		return NONE;
	if (packet->family == 4) {
		if (!packet->source[0] && packet->protocol == IP_UDP && packet->destination_port == 67)
			return NONE;
		return address_allowed(port, 4, packet->source) ? NONE : SPOOFED_IP;
	}
	if (packet->family == 6) {
		// The unspecified address is the source of duplicate address detection and of MLD.
		if (!(packet->source[0] | packet->source[1] | packet->source[2] | packet->source[3]))
			return packet->protocol == IP_ICMP6 ? NONE : SPOOFED_IP;
		if (!address_allowed(port, 6, packet->source))
			return SPOOFED_IP;
		// A neighbour advertisement (136) must be for an address of the port.
		if (packet->protocol == IP_ICMP6 && !packet->fragment && packet->source_port >> 8 == 136) {
			u8 *advertisement = data + (packet->l4 & 0x3ff);
			if (advertisement + 24 > (u8 *)end)
				return MALFORMED;
			u32 target[4];
			__builtin_memcpy(target, advertisement + 8, 16);
			if (!address_allowed(port, 6, target))
				return SPOOFED_IP;
		}
		return NONE;
	}
	return packet->bad ? MALFORMED : NONE;
}

// DHCP servers and routers belong to the operator, not to a guest.
INLINE enum reason guard_servers(const struct packet *packet)
{
	if (packet->fragment)
		return NONE;
	if (packet->protocol == IP_UDP && ((packet->family == 4 && packet->source_port == 67) ||
					   (packet->family == 6 && packet->source_port == 547)))
		return DHCP_SERVER;
	if (packet->family == 6 && packet->protocol == IP_ICMP6) {
		u32 type = packet->source_port >> 8;
		if (type == 134 || type == 137)
			return ROUTER_ADVERTISEMENT;
	}
	return NONE;
}

// Adds `cost` to a theoretical arrival time if that stays within the burst.
INLINE int take(u64 *tat, u64 cost, u64 burst, u64 now)
{
	for (int i = 0; i < 8; i++) {
		u64 old = *(volatile u64 *)tat;
		u64 start = (s64)(old - now) > 0 ? old : now;
		u64 next = start + cost;
		if ((s64)(next - now) > (s64)burst)
			return 0;
		if (__sync_val_compare_and_swap(tat, old, next) == old)
			return 1;
	}
	return 0;
}

// Whether the packet is within the limits of policer `kind` of the port.
FUNCTION int conforms(u32 slot, u32 kind, u32 length)
{
	u32 index = slot * POLICERS + kind;
	struct policer *policer = map_lookup(&policers, &index);
	if (!policer)
		return 1;
	u64 now = ktime_get_ns() << 8;
	u64 cost = policer->packet_cost;
	int within = !cost || take(&policer->packet_tat, cost, policer->packet_burst, now);
	if (within && policer->byte_cost) {
		within = take(&policer->byte_tat, policer->byte_cost * length, policer->byte_burst, now);
		if (!within && cost)
			__sync_fetch_and_add(&policer->packet_tat, -cost);
	}
	__sync_fetch_and_add(within ? &policer->conformed : &policer->exceeded, 1);
	return within;
}
