//! `ipfix-…`: the flow meter over `ip4`, and the exporter; see `metered.rs`.

use crate::case::{Case, Kind};
use crate::metered;

pub(super) const THOUSAND: Case = Case {
    name: "ipfix-1k",
    about: "the flow meter over IPv4, 1,000 flows",
    kind: Kind::Load {
        run: metered::thousand,
    },
};
pub(super) const HUNDRED_THOUSAND: Case = Case {
    name: "ipfix-100k",
    about: "the same with 100,000 flows",
    kind: Kind::Load {
        run: metered::hundred_thousand,
    },
};
pub(super) const MILLION: Case = Case {
    name: "ipfix-1m",
    about: "the same with 1,000,000 flows",
    kind: Kind::Load {
        run: metered::million,
    },
};
pub(super) const FLOOD: Case = Case {
    name: "ipfix-flood",
    about: "the same where every packet begins a flow",
    kind: Kind::Load {
        run: metered::flood,
    },
};
pub(super) const EXPORT: Case = Case {
    name: "ipfix-export",
    about: "flow records a second to a UDP socket",
    kind: Kind::Load {
        run: metered::export,
    },
};
