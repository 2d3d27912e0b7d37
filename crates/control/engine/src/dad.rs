//! Duplicate address detection: whether an own IPv6 address is free (RFC 4862 section 5.4).
//!
//! Pure: from the addresses, the received messages and the time it determines what to send.
//! An address is tentative from the time it is configured, or its link comes up, until a second after the
//! one question (DupAddrDetectTransmits and RetransTimer at their defaults) in which nobody claimed it. One
//! that somebody claimed is a duplicate, and is not used until its link comes up anew or it is configured
//! again. Addresses where nobody else can be (loopbacks) are not in here.

use std::collections::BTreeMap;
use std::net::Ipv6Addr;

use weir_wire::MacAddr;

/// How far it is known that an address is ours alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Claim {
    /// To be asked about, once the link is there.
    Waiting,
    /// Asked about at that time.
    Asked(u64),
    /// Nobody else has it.
    Free,
    /// Somebody else has it.
    Duplicate(MacAddr),
}

/// RFC 4861 section 10: RetransTimer, in nanoseconds.
const RETRANS_TIMER: u64 = 1_000_000_000;

/// The own IPv6 addresses of all interfaces that share their link.
#[derive(Debug, Default)]
pub(crate) struct Claims(BTreeMap<(u32, Ipv6Addr), Claim>);

impl Claims {
    /// These are all addresses of an interface: others of it are forgotten, new ones are to be asked about.
    pub(crate) fn are(&mut self, interface: u32, addresses: &[Ipv6Addr]) {
        let gone: Vec<_> = self
            .of(interface)
            .map(|(address, _)| address)
            .filter(|address| !addresses.contains(address))
            .collect();
        for address in gone {
            self.0.remove(&(interface, address));
        }
        for address in addresses {
            self.0
                .entry((interface, *address))
                .or_insert(Claim::Waiting);
        }
    }

    /// The addresses of an interface.
    pub(crate) fn of(&self, interface: u32) -> impl Iterator<Item = (Ipv6Addr, Claim)> + '_ {
        let all = (interface, Ipv6Addr::UNSPECIFIED)..=(interface, Ipv6Addr::from(u128::MAX));
        self.0
            .range(all)
            .map(|(&(_, address), &claim)| (address, claim))
    }

    /// An address; free when it is not in here.
    pub(crate) fn get(&self, interface: u32, address: Ipv6Addr) -> Claim {
        self.0
            .get(&(interface, address))
            .copied()
            .unwrap_or(Claim::Free)
    }

    /// The link was away: somebody else may be on it now.
    pub(crate) fn ask_again(&mut self, interface: u32) {
        let all = (interface, Ipv6Addr::UNSPECIFIED)..=(interface, Ipv6Addr::from(u128::MAX));
        self.0
            .range_mut(all)
            .for_each(|(_, claim)| *claim = Claim::Waiting);
    }

    /// Somebody else claims an address. Whether it was tentative, and is a duplicate from now on.
    pub(crate) fn contest(&mut self, interface: u32, address: Ipv6Addr, mac: MacAddr) -> bool {
        match self.0.get_mut(&(interface, address)) {
            Some(claim @ (Claim::Waiting | Claim::Asked(_))) => {
                *claim = Claim::Duplicate(mac);
                true
            }
            _ => false,
        }
    }

    /// Lets time pass. Returns the addresses to ask about now, and the interfaces of which an address is free
    /// from now on. `ready` says whether an interface can send.
    pub(crate) fn tick(
        &mut self,
        now: u64,
        ready: impl Fn(u32) -> bool,
    ) -> (Vec<(u32, Ipv6Addr)>, Vec<u32>) {
        let (mut ask, mut settled) = (Vec::new(), Vec::new());
        for (&(interface, address), claim) in &mut self.0 {
            match *claim {
                Claim::Waiting if ready(interface) => {
                    *claim = Claim::Asked(now);
                    ask.push((interface, address));
                }
                Claim::Asked(at) if now.saturating_sub(at) >= RETRANS_TIMER => {
                    *claim = Claim::Free;
                    settled.push(interface);
                }
                _ => {}
            }
        }
        settled.dedup();
        (ask, settled)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAC: MacAddr = MacAddr([2, 0, 0, 0, 0, 7]);
    const ONE: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
    const TWO: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 2);

    #[test]
    fn an_address_is_free_a_second_after_it_was_asked_about() {
        let mut claims = Claims::default();
        claims.are(3, &[ONE, TWO]);
        assert_eq!(claims.tick(0, |_| false), (vec![], vec![]));
        assert_eq!(claims.tick(5, |_| true), (vec![(3, ONE), (3, TWO)], vec![]));
        assert_eq!(claims.tick(RETRANS_TIMER, |_| true), (vec![], vec![]));
        assert_eq!(claims.tick(5 + RETRANS_TIMER, |_| true), (vec![], vec![3]));
        assert_eq!(
            (claims.get(3, ONE), claims.get(4, ONE)),
            (Claim::Free, Claim::Free)
        );
        claims.are(3, &[TWO]);
        assert_eq!(claims.of(3).collect::<Vec<_>>(), [(TWO, Claim::Free)]);
    }

    #[test]
    fn a_tentative_address_that_is_claimed_is_never_used() {
        let mut claims = Claims::default();
        claims.are(3, &[ONE]);
        claims.tick(0, |_| true);
        assert!(claims.contest(3, ONE, MAC) && !claims.contest(3, ONE, MAC));
        assert_eq!(claims.tick(9 * RETRANS_TIMER, |_| true), (vec![], vec![]));
        assert_eq!(claims.get(3, ONE), Claim::Duplicate(MAC));
        claims.are(3, &[ONE]);
        assert_eq!(claims.get(3, ONE), Claim::Duplicate(MAC));
        claims.ask_again(3);
        assert_eq!(claims.tick(0, |_| true).0, [(3, ONE)]);
    }

    #[test]
    fn what_is_ours_already_is_not_given_up() {
        let mut claims = Claims::default();
        claims.are(3, &[ONE]);
        claims.tick(0, |_| true);
        claims.tick(RETRANS_TIMER, |_| true);
        assert!(!claims.contest(3, ONE, MAC) && !claims.contest(4, ONE, MAC));
        assert_eq!(claims.get(3, ONE), Claim::Free);
    }
}
