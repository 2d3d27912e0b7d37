//! The structures that the router fills in or looks into.
//!
//! Each is a Rust type and, from the same list, its entry in the table.

use crate::sflow::DataFormat;
use crate::sflow::cursor::Cursor;
use crate::sflow::decode::{FlowRecord, Opaque};
use crate::sflow::structure::typed;

typed! {
    /// Counter record 0:1, the counters of an interface (RFC 2233 and RFC 3635 names without `if`).
    InterfaceCounters = 0:1 {
        /// ifIndex.
        index: U32 "ifIndex",
        /// ifType as IANA numbers it; 6 is Ethernet.
        kind: U32 "networkType",
        /// Bits a second.
        speed: U64 "ifSpeed",
        /// 0 unknown, 1 full duplex, 2 half duplex, 3 in, 4 out.
        direction: U32 "ifDirection",
        /// Bit 0 set when administratively up, bit 1 when operationally up.
        status: U32 "ifStatus",
        /// Octets received.
        in_octets: U64 "ifInOctets",
        /// Unicast packets received.
        in_unicast: U32 "ifInUcastPkts",
        /// Multicast packets received.
        in_multicast: U32 "ifInMulticastPkts",
        /// Broadcast packets received.
        in_broadcast: U32 "ifInBroadcastPkts",
        /// Received packets discarded although they had no error.
        in_discards: U32 "ifInDiscards",
        /// Packets received with errors.
        in_errors: U32 "ifInErrors",
        /// Packets received of an unknown protocol.
        in_unknown_protocols: U32 "ifInUnknownProtos",
        /// Octets sent.
        out_octets: U64 "ifOutOctets",
        /// Unicast packets sent.
        out_unicast: U32 "ifOutUcastPkts",
        /// Multicast packets sent.
        out_multicast: U32 "ifOutMulticastPkts",
        /// Broadcast packets sent.
        out_broadcast: U32 "ifOutBroadcastPkts",
        /// Packets discarded instead of sent although they had no error.
        out_discards: U32 "ifOutDiscards",
        /// Packets that could not be sent because of errors.
        out_errors: U32 "ifOutErrors",
        /// 1 when the interface takes in everything it sees.
        promiscuous: U32 "ifPromiscuousMode",
    }

    /// Counter record 0:2, what can go wrong on an Ethernet (RFC 3635).
    EthernetCounters = 0:2 {
        /// Frames whose length is no number of whole octets.
        alignment_errors: U32 "dot3StatsAlignmentErrors",
        /// Frames with a wrong check sequence.
        fcs_errors: U32 "dot3StatsFCSErrors",
        /// Frames sent after one collision.
        single_collisions: U32 "dot3StatsSingleCollisionFrames",
        /// Frames sent after more than one.
        multiple_collisions: U32 "dot3StatsMultipleCollisionFrames",
        /// Signal quality errors.
        sqe_test_errors: U32 "dot3StatsSQETestErrors",
        /// Frames that waited for a busy medium.
        deferred_transmissions: U32 "dot3StatsDeferredTransmissions",
        /// Collisions later than they may be.
        late_collisions: U32 "dot3StatsLateCollisions",
        /// Frames given up after too many.
        excessive_collisions: U32 "dot3StatsExcessiveCollisions",
        /// Frames not sent for a fault of the adapter.
        internal_mac_transmit_errors: U32 "dot3StatsInternalMacTransmitErrors",
        /// Carrier lost while sending.
        carrier_sense_errors: U32 "dot3StatsCarrierSenseErrors",
        /// Frames longer than allowed.
        frame_too_longs: U32 "dot3StatsFrameTooLongs",
        /// Frames not received for a fault of the adapter.
        internal_mac_receive_errors: U32 "dot3StatsInternalMacReceiveErrors",
        /// Invalid symbols.
        symbol_errors: U32 "dot3StatsSymbolErrors",
    }

    /// Counter record 0:5, a VLAN's traffic.
    VlanCounters = 0:5 {
        /// Which VLAN.
        vlan: U32 "in_vlan",
        /// Octets.
        octets: U64 "octets",
        /// Unicast packets.
        unicast: U32 "ucastPkts",
        /// Multicast packets.
        multicast: U32 "multicastPkts",
        /// Broadcast packets.
        broadcast: U32 "broadcastPkts",
        /// Packets discarded.
        discards: U32 "discards",
    }

    /// Counter record 0:7, a member of a link aggregation (IEEE 802.1AX names).
    LagCounters = 0:7 {
        /// Our system.
        actor_system: Mac "actorSystemID",
        /// The other end's.
        partner_system: Mac "partnerSystemID",
        /// ifIndex of the aggregate that the port belongs to; 0 when to none.
        aggregate: U32 "attachedAggID",
        /// Our port's administrative state.
        actor_admin_state: Octet "actorAdminPortState",
        /// Our port's operational state.
        actor_oper_state: Octet "actorOperPortState",
        /// The other port's administrative state.
        partner_admin_state: Octet "partnerAdminPortState",
        /// The other port's operational state.
        partner_oper_state: Octet "partnerOperPortState",
        /// LACPDUs received.
        lacpdus_rx: U32 "LACPDUsRx",
        /// Marker PDUs received.
        marker_pdus_rx: U32 "markerPDUsRx",
        /// Responses to markers received.
        marker_responses_rx: U32 "markerResponsePDUsRx",
        /// Slow protocol's frames of an unknown kind.
        unknown_rx: U32 "unknownRx",
        /// Frames that contradict themselves.
        illegal_rx: U32 "illegalRx",
        /// LACPDUs sent.
        lacpdus_tx: U32 "LACPDUsTx",
        /// Marker PDUs sent.
        marker_pdus_tx: U32 "markerPDUsTx",
        /// Responses to markers sent.
        marker_responses_tx: U32 "markerResponsePDUsTx",
    }

    /// Flow record 0:2, the Ethernet header alone.
    SampledEthernet = 0:2.flow("ETHERNET") {
        /// Length of the frame, without FCS and padding.
        length: U32 "ethernet_len",
        /// Where it is from.
        source: Mac "ethernet_src",
        /// Where it goes.
        destination: Mac "ethernet_dst",
        /// EtherType.
        ether_type: U32 "ethernet_type",
    }

    /// Flow record 0:3, the headers of an IPv4 packet as fields.
    SampledIpv4 = 0:3.flow("IPV4") {
        /// Length of the IP packet.
        length: U32 "IPSize",
        /// What it carries.
        protocol: U32 "IPProtocol",
        /// Where it is from.
        source: Ipv4 "srcIP",
        /// Where it goes.
        destination: Ipv4 "dstIP",
        /// Source port, or type of ICMP.
        source_port: U32 "srcPort",
        /// Destination port, or code of ICMP.
        destination_port: U32 "dstPort",
        /// TCP's flags.
        tcp_flags: U32 "TCPFlags",
        /// Type of service.
        tos: U32 "IPTOS",
    }

    /// Flow record 0:4, the headers of an IPv6 packet as fields.
    SampledIpv6 = 0:4.flow("IPV6") {
        /// Length of the IP packet.
        length: U32 "IPSize",
        /// What it carries.
        protocol: U32 "IPProtocol",
        /// Where it is from.
        source: Ipv6 "srcIP6",
        /// Where it goes.
        destination: Ipv6 "dstIP6",
        /// Source port, or type of ICMP.
        source_port: U32 "srcPort",
        /// Destination port, or code of ICMP.
        destination_port: U32 "dstPort",
        /// TCP's flags.
        tcp_flags: U32 "TCPFlags",
        /// Traffic class.
        priority: U32 "priority",
    }

    /// Flow record 0:1001, the VLANs a switch put the packet in; all ones what is unknown.
    ExtendedSwitch = 0:1001.extended("SWITCH") {
        /// VLAN it came in.
        source_vlan: U32 "in_vlan",
        /// Priority it came with.
        source_priority: U32 "in_priority",
        /// VLAN it left in.
        destination_vlan: U32 "out_vlan",
        /// Priority it left with.
        destination_priority: U32 "out_priority",
    }

    /// Flow record 0:1002, where the routing table sent the packet.
    ExtendedRouter = 0:1002.extended("ROUTER") {
        /// The next hop.
        next_hop: Address "nextHop",
        /// Length of the source's prefix.
        source_length: U32 "srcSubnetMask",
        /// Length of the destination's prefix.
        destination_length: U32 "dstSubnetMask",
    }
}

impl InterfaceCounters {
    /// Octets of this record's body on the wire.
    pub const WIRE_LEN: usize = 88;
    /// `status` bit: administratively up.
    pub const ADMIN_UP: u32 = 1;
    /// `status` bit: operationally up.
    pub const OPER_UP: u32 = 2;

    /// The counters under their printed names, in the order of the wire.
    #[must_use]
    pub fn fields(&self) -> Vec<(&'static str, u64)> {
        let values = self.values();
        InterfaceCounters::STRUCTURE
            .fields
            .iter()
            .zip(values)
            .map(|(field, value)| (field.name, value.number().unwrap_or(0)))
            .collect()
    }
}

impl ExtendedSwitch {
    /// A VLAN or priority that is not known (errata of the specification).
    pub const UNKNOWN: u32 = u32::MAX;

    /// Of a record that may be another one, or too short.
    pub(in crate::sflow) fn of(record: &FlowRecord<'_>) -> Option<ExtendedSwitch> {
        match record {
            FlowRecord::Other(opaque) if opaque.format == DataFormat::EXTENDED_SWITCH => {
                ExtendedSwitch::read_from(&mut Cursor::inside(opaque.body, opaque.offset)).ok()
            }
            _ => None,
        }
    }
}

impl LagCounters {
    /// Of a record of its format, that may be too short.
    pub(in crate::sflow) fn of(record: &Opaque<'_>) -> Option<LagCounters> {
        LagCounters::read_from(&mut Cursor::inside(record.body, record.offset)).ok()
    }
}
