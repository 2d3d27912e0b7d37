//! `generate-64k` and `generate-fields`: the traffic generator; see `generated.rs`.

use crate::case::{Case, Kind};
use crate::generated;

pub(super) const FLOWS: Case = Case {
    name: "generate-64k",
    about: "the traffic generator: 64 bytes, 64k random flows, checksums",
    kind: Kind::Load {
        run: generated::flows,
    },
};

pub(super) const FIELDS: Case = Case {
    name: "generate-fields",
    about: "the traffic generator: all fields of a tagged UDP packet vary, with stamps",
    kind: Kind::Load {
        run: generated::fields,
    },
};
