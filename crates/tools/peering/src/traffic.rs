//! Measured traffic by destination, to weigh routes with: lines of `prefix,bytes`, as a query of the collector
//! writes them.

use std::path::Path;

use ipnet::IpNet;

use crate::{Error, read};

/// Bytes by destination.
#[derive(Clone, Debug, Default)]
pub struct Traffic {
    rows: Vec<(IpNet, u64)>,
    total: u64,
}

impl Traffic {
    /// Traffic of a router's flows.
    pub fn of(rows: impl Iterator<Item = (IpNet, u64)>) -> Traffic {
        let mut traffic = Traffic::default();
        for (destination, bytes) in rows {
            traffic.rows.push((destination.trunc(), bytes));
            traffic.total = traffic.total.saturating_add(bytes);
        }
        traffic
    }

    /// Reads a file. The first line may be a heading. Addresses without a length are hosts.
    ///
    /// # Errors
    /// When the file cannot be read, or a line is not `prefix,bytes`.
    pub fn load(path: &Path) -> Result<Traffic, Error> {
        let text = read(path)?;
        let mut traffic = Traffic::default();
        for (number, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() {
                continue;
            }
            let row = line.split_once(',').and_then(|(destination, bytes)| {
                let destination = destination.trim().trim_matches('"');
                let net = destination
                    .parse::<IpNet>()
                    .or_else(|_| destination.parse().map(|ip: std::net::IpAddr| ip.into()));
                Some((
                    net.ok()?.trunc(),
                    bytes.trim().trim_matches('"').parse().ok()?,
                ))
            });
            match row {
                Some((destination, bytes)) => {
                    traffic.rows.push((destination, bytes));
                    traffic.total = traffic.total.saturating_add(bytes);
                }
                None if number == 0 => {}
                None => {
                    return Err(Error::Format {
                        path: path.display().to_string(),
                        reason: format!("line {}: {line:?} is not prefix,bytes", number + 1),
                    });
                }
            }
        }
        Ok(traffic)
    }

    /// The share, from 0 to 1, of bytes to destinations that `is_affected` selects.
    pub(crate) fn share(&self, mut is_affected: impl FnMut(&IpNet) -> bool) -> f64 {
        if self.total == 0 {
            return 0.0;
        }
        let affected: u64 = self
            .rows
            .iter()
            .filter(|(destination, _)| is_affected(destination))
            .map(|(_, bytes)| *bytes)
            .fold(0, u64::saturating_add);
        affected as f64 / self.total as f64
    }
}
