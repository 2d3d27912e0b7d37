//! The key table, made of the declarations, and the few rows that no field declares.

use std::sync::LazyLock;

use super::{Key, Kind};
use crate::file::File;
use crate::section::Section;

/// Keys that vppcfg has and this version does not support.
const UNSUPPORTED: &[&str] = &[
    "interfaces.*.device-type",
    "taps.*.host.bridge",
    "taps.*.host.bridge-create",
    "taps.*.host.namespace",
    "taps.*.host.namespace-create",
];

/// The label of a pseudowire is pushed below those of its path, and there are 16 at most.
const FEWER_LABELS: (&str, Kind) = ("pseudowires.*.via[].labels", Kind::List(0, 15));

/// Every key, in the order of the reference.
pub(crate) static KEYS: LazyLock<Vec<Key>> = LazyLock::new(|| {
    let mut rows = Vec::new();
    File::key_rows("", "", &mut rows);
    for row in rows.iter_mut().filter(|row| row.path == FEWER_LABELS.0) {
        row.kind = FEWER_LABELS.1;
    }
    rows.extend(UNSUPPORTED.iter().map(|path| Key {
        path,
        kind: Kind::Unsupported,
        default: "",
        about: "",
        example: "",
        drivers: &[],
    }));
    rows
});
