//! Configurations of the demo's routers and daemons.

use std::fmt::Write as _;

use ipnet::{Ipv4Net, Ipv6Net};
use weir_fib::synthetic::{internet4, internet6};

/// West's configuration of Weir. The TAPs are in the router's own namespace, whose devices have other names.
pub(crate) const WEST: &str = "\
interfaces:
  lan:   { device: { driver: af-xdp, name: port-a }, addresses: [ 10.1.0.1/24, 'fd00:1::1/64' ] }
  core1: { device: { driver: af-xdp, name: link-1 }, addresses: [ 10.0.1.1/24, 'fd00:11::1/64' ] }
  core2: { device: { driver: af-xdp, name: link-2 }, addresses: [ 10.0.2.1/24, 'fd00:12::1/64' ] }
loopbacks:
  loop0: { addresses: [ 10.255.0.1/32, 'fd00:ff::1/128' ] }
linux: { interfaces: { core1: {}, core2: {}, loop0: {} } }
";

/// East's: what the table is for leads to host-b.
pub(crate) const EAST: &str = "\
interfaces:
  lan:   { device: { driver: af-xdp, name: port-b }, addresses: [ 10.3.0.1/24, 'fd00:3::1/64' ] }
  core1: { device: { driver: af-xdp, name: link-1 }, addresses: [ 10.0.1.2/24, 'fd00:11::2/64' ] }
  core2: { device: { driver: af-xdp, name: link-2 }, addresses: [ 10.0.2.2/24, 'fd00:12::2/64' ] }
loopbacks:
  loop0: { addresses: [ 10.255.0.2/32, 'fd00:ff::2/128' ] }
routes:
  - { prefix: 0.0.0.0/0, via: 10.3.0.2 }
  - { prefix: '::/0', via: 'fd00:3::2' }
  - { prefix: 10.1.0.0/24, via: [ { next-hop: 10.0.1.1 }, { next-hop: 10.0.2.1 } ] }
  - { prefix: 'fd00:1::/64', via: [ { next-hop: 'fd00:11::1' }, { next-hop: 'fd00:12::1' } ] }
linux: { interfaces: { core1: {}, core2: {}, loop0: {} } }
";

/// BIRD's configuration at west. `check link` takes a path away whose link has no carrier.
pub(crate) const WEST_BIRD: &str = "\
router id 10.255.0.1;
graceful restart wait 60;
protocol device { scan time 10; }
protocol static core4 { ipv4; check link; route 10.255.0.2/32 via 10.0.1.2 via 10.0.2.2; }
protocol static core6 { ipv6; check link; route fd00:ff::2/128 via fd00:11::2 via fd00:12::2; }
protocol kernel k4 { scan time 600; graceful restart; ipv4 { import none; export all; }; }
protocol kernel k6 { scan time 600; graceful restart; ipv6 { import none; export all; }; }
protocol bgp east { local 10.255.0.1 as 65001; neighbor 10.255.0.2 as 65002; multihop 2; graceful restart on;
  connect delay time 1; connect retry time 1; error wait time 1, 2;
  ipv4 { import all; export none; }; ipv6 { import all; export none; }; }
";

/// BIRD's at east, which includes the table. It announces it and does not write it into the kernel.
pub(crate) const EAST_BIRD: &str = "\
router id 10.255.0.2;
protocol device { scan time 10; }
protocol static core4 { ipv4; check link; route 10.255.0.1/32 via 10.0.1.1 via 10.0.2.1; }
protocol static core6 { ipv6; check link; route fd00:ff::1/128 via fd00:11::1 via fd00:12::1; }
protocol kernel k4 { scan time 600; ipv4 { import none; export where proto = \"core4\"; }; }
protocol kernel k6 { scan time 600; ipv6 { import none; export where proto = \"core6\"; }; }
protocol static table4 { ipv4;
  include \"table4.conf\";
}
protocol static table6 { ipv6;
  include \"table6.conf\";
}
protocol bgp west { local 10.255.0.2 as 65002; neighbor 10.255.0.1 as 65001; multihop 2; graceful restart on;
  connect delay time 1; connect retry time 1; error wait time 1, 2;
  ipv4 { import none; export where proto = \"table4\"; next hop self; };
  ipv6 { import none; export where proto = \"table6\"; next hop address fd00:ff::2; }; }
";

/// Announced prefixes, shaped like the Internet's.
pub(crate) struct Announced {
    pub(crate) four: Vec<Ipv4Net>,
    pub(crate) six: Vec<Ipv6Net>,
}

impl Announced {
    /// This number of each, always the same ones.
    pub(crate) fn new(four: usize, six: usize) -> Announced {
        // Prefixes that lie in or over a special-purpose block are not announced.
        let is_special = |net: &Ipv4Net| {
            let special = [
                "100.64.0.0/10",
                "169.254.0.0/16",
                "172.16.0.0/12",
                "192.168.0.0/16",
                "192.0.0.0/16",
                "198.18.0.0/15",
            ];
            let mut special = special
                .iter()
                .filter_map(|text| text.parse::<Ipv4Net>().ok());
            special.any(|it| it.contains(net) || net.contains(&it))
        };
        let four4 = internet4(1, four + four / 50 + 64, 1);
        let four4 = four4.into_iter().map(|(net, _)| net);
        Announced {
            four: four4.filter(|net| !is_special(net)).take(four).collect(),
            six: internet6(2, six, 1)
                .into_iter()
                .map(|(net, _)| net)
                .collect(),
        }
    }

    /// Static routes of BIRD, IPv4 and IPv6.
    pub(crate) fn bird(&self) -> (String, String) {
        (routes(&self.four), routes(&self.six))
    }

    /// The number of prefixes.
    pub(crate) fn len(&self) -> usize {
        self.four.len() + self.six.len()
    }
}

fn routes<N: std::fmt::Display>(nets: &[N]) -> String {
    let mut text = String::with_capacity(nets.len() * 36);
    for net in nets {
        let _ = writeln!(text, "route {net} blackhole;");
    }
    text
}
