//! The table of records: every structure that sFlow version 5 has, by number.
//!
//! * `typed`: those that the router itself fills in or looks into, as Rust types.
//! * `flow`, `counters`: all, sorted by number, for who only wants to read or print them.
//!
//! The names are those that sflowtool prints; where it does not know a structure, the specification's.

mod counters;
mod flow;
mod typed;

pub use counters::COUNTERS;
pub use flow::FLOW;
pub use typed::*;

use super::DataFormat;
use super::structure::Structure;

/// The structure of a flow record, if it is known.
#[must_use]
pub fn flow_record(format: DataFormat) -> Option<&'static Structure> {
    find(FLOW, format)
}

/// The structure of a counter record, if it is known.
#[must_use]
pub fn counter_record(format: DataFormat) -> Option<&'static Structure> {
    find(COUNTERS, format)
}

fn find(table: &'static [Structure], format: DataFormat) -> Option<&'static Structure> {
    table
        .binary_search_by_key(&format, |structure| structure.format)
        .ok()
        .and_then(|place| table.get(place))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_are_sorted_and_name_nothing_twice() {
        for table in [FLOW, COUNTERS] {
            assert!(table.is_sorted_by(|a, b| a.format < b.format));
            for structure in table {
                let mut names: Vec<&str> =
                    structure.fields.iter().map(|field| field.name).collect();
                names.sort_unstable();
                assert!(
                    names.windows(2).all(|pair| pair[0] != pair[1]),
                    "{}",
                    structure.format
                );
                assert!(structure.required > 0 && structure.required <= structure.fields.len());
            }
        }
        assert!(
            flow_record(DataFormat::standard(1002))
                .is_some_and(|found| found.format.format == 1002)
        );
        assert!(
            counter_record(DataFormat {
                enterprise: 5703,
                format: 1
            })
            .is_some()
        );
        assert!(
            flow_record(DataFormat {
                enterprise: 77,
                format: 1
            })
            .is_none()
        );
    }
}
