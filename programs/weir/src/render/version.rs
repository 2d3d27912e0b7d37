//! Who answers.

use weir_api::Version;

use super::{Screen, Style, harmless, units};

/// `show version`.
pub(crate) fn version(reply: &Version, screen: &Screen) -> String {
    let name = screen.styled(
        &format!("weir {}", harmless(&reply.version)),
        Style::Heading,
    );
    let commit = reply
        .commit
        .as_ref()
        .map_or_else(String::new, |commit| format!(" ({})", harmless(commit)));
    let workers = units::count(reply.workers.into(), "worker", "workers");
    let up = units::seconds(reply.uptime as f64);
    let file = reply.config_file.as_ref().map_or_else(String::new, |file| {
        format!(", configured by {}", harmless(file))
    });
    format!(
        "{name}{commit}\nprocess {}, up {up}, {workers}{file}\n",
        reply.pid
    )
}
