//! Numbers of routing protocols (`rtm_protocol`), as iproute2 and FRR name them.

/// Number, name and the daemon that uses it.
const PROTOCOLS: [(u8, &str, Option<&str>); 25] = [
    (1, "redirect", None),
    (2, "kernel", None),
    (3, "boot", None),
    (4, "static", None),
    (8, "gated", None),
    (9, "ra", None),
    (10, "mrt", None),
    (11, "zebra", Some("FRR")),
    (12, "bird", Some("BIRD")),
    (13, "dnrouted", None),
    (14, "xorp", None),
    (15, "ntk", None),
    (16, "dhcp", None),
    (18, "keepalived", Some("keepalived")),
    (42, "babel", None),
    (186, "bgp", Some("FRR")),
    (187, "isis", Some("FRR")),
    (188, "ospf", Some("FRR")),
    (189, "rip", Some("FRR")),
    (192, "eigrp", Some("FRR")),
    (193, "ldp", Some("FRR")),
    (195, "pbr", Some("FRR")),
    (196, "static", Some("FRR")),
    (197, "openfabric", Some("FRR")),
    (198, "srte", Some("FRR")),
];

fn known(number: u8) -> Option<&'static (u8, &'static str, Option<&'static str>)> {
    PROTOCOLS.iter().find(|known| known.0 == number)
}

/// The name of a protocol; its number when it has none.
#[must_use]
pub fn name(number: u8) -> String {
    known(number).map_or_else(|| number.to_string(), |known| known.1.to_owned())
}

/// The daemon that a protocol belongs to, where only one uses it.
#[must_use]
pub fn daemon(number: u8) -> Option<&'static str> {
    known(number)?.2
}

/// A set of protocols.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Protocols([u64; 4]);

impl Protocols {
    /// Adds a protocol; whether it is new.
    pub fn add(&mut self, number: u8) -> bool {
        let (place, bit) = (usize::from(number / 64), 1 << (number % 64));
        let Some(word) = self.0.get_mut(place) else {
            return false;
        };
        let is_new = *word & bit == 0;
        *word |= bit;
        is_new
    }

    /// Whether a protocol is in it.
    #[must_use]
    pub fn contains(&self, number: u8) -> bool {
        let word = self.0.get(usize::from(number / 64));
        word.is_some_and(|word| word >> (number % 64) & 1 == 1)
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_set_has_what_was_added() {
        let mut all = super::Protocols::default();
        for number in [0, 63, 64, 186, 255] {
            assert!(!all.contains(number) && all.add(number) && !all.add(number));
        }
        let has: Vec<u8> = (0..=255).filter(|number| all.contains(*number)).collect();
        assert_eq!(has, [0, 63, 64, 186, 255]);
    }

    #[test]
    fn protocols_have_names() {
        assert_eq!(
            (super::name(12), super::daemon(12)),
            ("bird".to_owned(), Some("BIRD"))
        );
        assert_eq!(
            (super::name(188), super::daemon(188)),
            ("ospf".to_owned(), Some("FRR"))
        );
        assert_eq!(
            (super::name(99), super::daemon(99)),
            ("99".to_owned(), None)
        );
    }
}
