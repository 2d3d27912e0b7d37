//! Forms of an answer that the client chooses: compressed or not (RFC 9110 12.5.3), and for metrics the format (12.5.1).
//!
//! Metrics of 10,000 interfaces are 12 MB of text, of which a tenth is left. Runs on the thread that made the answer.

use std::io::Write;

use axum::http::{HeaderMap, header};
use flate2::Compression;
use flate2::write::GzEncoder;

/// Shorter answers are sent as they are.
const LEAST: usize = 4096;

/// Whether a list of `NAME[;q=WEIGHT]` in a header has this name, with a weight that is not 0.
fn accepts(headers: &HeaderMap, header: header::HeaderName, name: &str) -> bool {
    let values = headers.get_all(header);
    let texts = values.iter().filter_map(|value| value.to_str().ok());
    texts.flat_map(|text| text.split(',')).any(|item| {
        let mut parts = item.split(';').map(str::trim);
        let is_it = parts
            .next()
            .is_some_and(|word| word.eq_ignore_ascii_case(name));
        let is_refused = parts.any(|part| {
            let weight = part.strip_prefix("q=").or_else(|| part.strip_prefix("Q="));
            weight.and_then(|it| it.parse::<f32>().ok()) == Some(0.0)
        });
        is_it && !is_refused
    })
}

/// Whether the client takes answers compressed with gzip.
pub(crate) fn takes_gzip(headers: &HeaderMap) -> bool {
    accepts(headers, header::ACCEPT_ENCODING, "gzip")
}

/// Whether the client wants Prometheus's older text format: it names that and not OpenMetrics.
pub(crate) fn wants_plain_metrics(headers: &HeaderMap) -> bool {
    accepts(headers, header::ACCEPT, "text/plain")
        && !accepts(headers, header::ACCEPT, "application/openmetrics-text")
}

/// A long answer with gzip (RFC 1952), in the fastest way; `None` where it is not worth it.
pub(crate) fn compressed(text: &[u8]) -> Option<Vec<u8>> {
    if text.len() < LEAST {
        return None;
    }
    let mut to = GzEncoder::new(Vec::with_capacity(text.len() / 8), Compression::fast());
    // Writing to memory does not fail; if it did, the answer goes as it is.
    to.write_all(text).ok()?;
    to.finish().ok()
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    fn headers(name: header::HeaderName, value: &str) -> HeaderMap {
        HeaderMap::from_iter([(name, value.parse().unwrap())])
    }

    #[test]
    fn gzip_is_chosen_by_name_and_weight() {
        for (value, takes) in [
            ("gzip", true),
            ("deflate, GZIP;q=0.5", true),
            ("br", false),
            ("gzip;q=0", false),
            ("gzip; q=0.000", false),
            ("x-gzipped", false),
        ] {
            let headers = headers(header::ACCEPT_ENCODING, value);
            assert_eq!(takes_gzip(&headers), takes, "{value}");
        }
        assert!(!takes_gzip(&HeaderMap::new()));
    }

    #[test]
    fn openmetrics_is_the_default() {
        for (value, plain) in [
            ("*/*", false),
            (
                "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5",
                false,
            ),
            ("text/plain;version=0.0.4", true),
        ] {
            let headers = headers(header::ACCEPT, value);
            assert_eq!(wants_plain_metrics(&headers), plain, "{value}");
        }
    }

    #[test]
    fn what_is_compressed_comes_back() {
        let text = "weir_interface_rx_packets_total{interface=\"xe0\"} 17\n".repeat(1000);
        let small = compressed(text.as_bytes()).unwrap();
        assert!(small.len() * 10 < text.len(), "{} bytes", small.len());
        let mut back = String::new();
        flate2::read::GzDecoder::new(small.as_slice())
            .read_to_string(&mut back)
            .unwrap();
        assert_eq!(back, text);
        assert_eq!(compressed(b"short"), None);
    }
}
