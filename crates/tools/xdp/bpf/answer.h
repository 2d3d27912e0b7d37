// Answers ARP requests and neighbour solicitations for known addresses: the request becomes the answer in
// place, and goes back out of its port. What cannot be answered is flooded as usual.
#pragma once
#include "guard.h"

// 1: the frame is now an answer.
FUNCTION int answer_arp(struct xdp_md *ctx, const struct port *port, u32 vlan, const struct packet *packet)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	if (!port || !packet)
		return 0;
	struct ethernet *eth = data;
	struct arp *arp = data + (packet->l3 & 31);
	if ((void *)(eth + 1) > end || (void *)(arp + 1) > end)
		return 0;
	if (arp->operation != swap16(1) || arp->hardware != swap16(1) || arp->protocol != swap16(ETH_IP4) ||
	    arp->hardware_length != 6 || arp->protocol_length != 4)
		return 0;
	struct neighbor_key key = { .vlan = vlan, .address = { [10] = 0xff, [11] = 0xff } };
	__builtin_memcpy(key.address + 12, arp->target, 4);
	struct neighbor *known = map_lookup(&neighbors, &key);
	// A guest's question for its own address is duplicate detection: others must see it.
	if (!known || known->logical == port->logical)
		return 0;
	u8 asked[4];
	__builtin_memcpy(asked, arp->target, 4);
	__builtin_memcpy(arp->target_mac, arp->sender_mac, 6);
	__builtin_memcpy(arp->target, arp->sender, 4);
	__builtin_memcpy(arp->sender_mac, known->mac, 6);
	__builtin_memcpy(arp->sender, asked, 4);
	arp->operation = swap16(2);
	__builtin_memcpy(eth->destination, eth->source, 6);
	__builtin_memcpy(eth->source, known->mac, 6);
	return 1;
}

// One's complement sum of `words` 16-bit words; never reads behind `end`.
INLINE u32 sum16(const u16 *at, int words)
{
	u32 sum = 0;
#pragma unroll
	for (int i = 0; i < words; i++)
		sum += at[i];
	return sum;
}

struct solicitation {
	struct ip6 ip;
	u8 type, code;
	u16 checksum;
	u32 flags;
	u32 target[4];
	u8 option, option_length;
	u8 mac[6];
};

// 1: the frame is now an answer. Takes solicitations with one option (source address), from a host that
// has an address: others (duplicate detection) go their usual path.
FUNCTION int answer_nd(struct xdp_md *ctx, const struct port *port, u32 vlan, const struct packet *packet)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	if (!port || !packet)
		return 0;
	struct ethernet *eth = data;
	struct solicitation *nd = data + (packet->l3 & 31);
	if ((void *)(eth + 1) > end || (void *)(nd + 1) > end)
		return 0;
	if (packet->l4 != packet->l3 + 40 || nd->type != 135 || nd->code || nd->ip.hops != 255 ||
	    nd->ip.length != swap16(32) || nd->option != 1 || nd->option_length != 1)
		return 0;
	if (!(packet->source[0] | packet->source[1] | packet->source[2] | packet->source[3]))
		return 0;
	struct neighbor_key key = { .vlan = vlan };
	__builtin_memcpy(key.address, nd->target, 16);
	struct neighbor *known = map_lookup(&neighbors, &key);
	if (!known || known->logical == port->logical)
		return 0;
	__builtin_memcpy(eth->destination, eth->source, 6);
	__builtin_memcpy(eth->source, known->mac, 6);
	__builtin_memcpy(nd->ip.destination, nd->ip.source, 16);
	__builtin_memcpy(nd->ip.source, nd->target, 16);
	nd->type = 136;
	nd->flags = swap32(0x60000000); // solicited, override
	nd->option = 2;
	__builtin_memcpy(nd->mac, known->mac, 6);
	nd->checksum = 0;
	u32 sum = sum16((u16 *)nd->ip.source, 16) + sum16((u16 *)&nd->type, 16) + swap16(32) + swap16(IP_ICMP6);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	nd->checksum = ~sum;
	return 1;
}
