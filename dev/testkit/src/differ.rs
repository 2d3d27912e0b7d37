//! How a frame differs from the one that was expected, for people.
//!
//! Both are shown sixteen octets a line with the octets that differ marked, and the first field that
//! differs is named after its comment in `packets.txt`.

use std::fmt::Write;

use crate::script::Frame;

const ROW: usize = 16;

/// Where and how `got` differs from what was expected.
#[must_use]
pub fn explain(expected: &Frame, got: &[u8]) -> String {
    let mut text = String::new();
    let wanted = &expected.bytes;
    if wanted.len() != got.len() {
        let _ = writeln!(
            text,
            "  length: expected {} octets, got {}",
            wanted.len(),
            got.len()
        );
    }
    let first = (0..wanted.len().max(got.len()))
        .find(|&place| wanted.get(place) != got.get(place))
        .unwrap_or(0);
    let field = expected
        .fields
        .iter()
        .find(|(end, _)| first < *end)
        .map_or("behind the last one", |(_, comment)| comment);
    let _ = writeln!(
        text,
        "  first difference: octet {first}, in the field \"{field}\""
    );
    let rows = wanted.len().max(got.len()).div_ceil(ROW);
    let mut skipped = 0;
    for row in 0..rows {
        let range = row * ROW..(row + 1) * ROW;
        if range
            .clone()
            .all(|place| wanted.get(place) == got.get(place))
            && row > 3
        {
            skipped += 1;
            continue;
        }
        if std::mem::take(&mut skipped) > 0 {
            text.push_str("        …\n");
        }
        compare_row(&mut text, range, wanted, got);
    }
    text
}

fn compare_row(text: &mut String, range: std::ops::Range<usize>, wanted: &[u8], got: &[u8]) {
    let octets = |of: &[u8]| -> String {
        range
            .clone()
            .map(|place| {
                of.get(place)
                    .map_or("   ".to_owned(), |octet| format!("{octet:02x} "))
            })
            .collect()
    };
    if range
        .clone()
        .all(|place| wanted.get(place) == got.get(place))
    {
        let _ = writeln!(
            text,
            "  {:04x}    {}",
            range.start,
            octets(wanted).trim_end()
        );
        return;
    }
    let marks: String = range
        .clone()
        .map(|place| {
            if wanted.get(place) == got.get(place) {
                "   "
            } else {
                "^^ "
            }
        })
        .collect();
    let _ = writeln!(
        text,
        "  {:04x} -  {}",
        range.start,
        octets(wanted).trim_end()
    );
    let _ = writeln!(text, "       +  {}", octets(got).trim_end());
    let _ = writeln!(text, "          {}", marks.trim_end());
}

/// A frame as `packets.txt` would have it.
#[must_use]
pub fn dump(frame: &[u8]) -> String {
    let row = |row: &[u8]| {
        format!(
            "  {}\n",
            row.iter()
                .map(|octet| format!("{octet:02x}"))
                .collect::<Vec<_>>()
                .join(" ")
        )
    };
    frame.chunks(ROW).map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_field_is_named_and_the_octet_marked() {
        let fields = vec![(2, "kind".to_owned()), (20, "time to live".to_owned())];
        let expected = Frame {
            port: "left".to_owned(),
            times: 1,
            together: false,
            bytes: vec![7; 20],
            fields,
        };
        let mut got = vec![7; 20];
        got[17] = 9;
        let text = explain(&expected, &got);
        assert!(
            text.contains("octet 17, in the field \"time to live\""),
            "{text}"
        );
        assert!(
            text.contains("0010 -  07 07 07 07")
                && text.contains("+  07 09 07 07")
                && text.contains("\n             ^^\n"),
            "{text}"
        );
        assert!(explain(&expected, &got[..5]).contains("expected 20 octets, got 5"));
    }
}
