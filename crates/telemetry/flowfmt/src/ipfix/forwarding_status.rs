//! Names of `forwardingStatus` (IANA element 89, RFC 7270 section 4.12).
//!
//! The two upper bits are the status, the six lower bits the reason. Values that IANA has not
//! assigned get the name of their status alone.

/// The name of a `forwardingStatus` value: `forwarded`, `dropped: TTL expired`, and so on.
#[must_use]
pub const fn forwarding_status_name(status: u8) -> &'static str {
    match status {
        64 => "forwarded",
        65 => "forwarded, fragmented",
        66 => "forwarded, not fragmented",
        128 => "dropped",
        129 => "dropped: ACL deny",
        130 => "dropped: ACL drop",
        131 => "dropped: unroutable",
        132 => "dropped: adjacency",
        133 => "dropped: fragmentation needed, DF set",
        134 => "dropped: bad header checksum",
        135 => "dropped: bad total length",
        136 => "dropped: bad header length",
        137 => "dropped: TTL expired",
        138 => "dropped: policer",
        139 => "dropped: WRED",
        140 => "dropped: uRPF",
        141 => "dropped: for this router",
        142 => "dropped: bad output interface",
        143 => "dropped: hardware",
        192 => "consumed",
        193 => "consumed: punted, adjacency",
        194 => "consumed: punted, incomplete adjacency",
        195 => "consumed: for this router",
        _ => match status >> 6 {
            0 => "unknown",
            1 => "forwarded",
            2 => "dropped",
            _ => "consumed",
        },
    }
}

#[cfg(test)]
mod tests {
    use super::forwarding_status_name;

    #[test]
    fn assigned_and_unassigned_values_have_names() {
        assert_eq!(forwarding_status_name(64), "forwarded");
        assert_eq!(forwarding_status_name(129), "dropped: ACL deny");
        assert_eq!(forwarding_status_name(137), "dropped: TTL expired");
        assert_eq!(forwarding_status_name(160), "dropped");
        assert_eq!(forwarding_status_name(255), "consumed");
        assert_eq!(forwarding_status_name(0), "unknown");
    }
}
