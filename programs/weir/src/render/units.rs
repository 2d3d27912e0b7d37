//! Quantities for people.

/// Bits per second: `10 Gbit/s`; 0 is nobody's speed.
pub(crate) fn speed(bits: u64) -> String {
    const STEPS: [(u64, &str); 3] = [
        (1_000_000_000, "Gbit/s"),
        (1_000_000, "Mbit/s"),
        (1000, "kbit/s"),
    ];
    if bits == 0 {
        return "unknown speed".to_owned();
    }
    for (step, unit) in STEPS {
        if bits >= step {
            return if bits.is_multiple_of(step) {
                format!("{} {unit}", bits / step)
            } else {
                format!("{:.1} {unit}", bits as f64 / step as f64)
            };
        }
    }
    format!("{bits} bit/s")
}

/// Seconds: `12.3 s`, `4 min 5 s`, `3 h 2 min`, `5 d 3 h`.
pub(crate) fn seconds(seconds: f64) -> String {
    if seconds < 60.0 {
        return format!("{seconds:.1} s");
    }
    // Beyond a minute fractions are noise. The cast saturates.
    let whole = seconds as u64;
    let (days, hours, minutes) = (whole / 86_400, whole / 3600 % 24, whole / 60 % 60);
    match (days, hours) {
        (0, 0) => format!("{minutes} min {} s", whole % 60),
        (0, _) => format!("{hours} h {minutes} min"),
        _ => format!("{days} d {hours} h"),
    }
}

/// `1 packet`, `2 packets`.
pub(crate) fn count(number: u64, one: &str, many: &str) -> String {
    if number == 1 {
        format!("1 {one}")
    } else {
        format!("{number} {many}")
    }
}

/// A part of a whole: `12.5 %`; of nothing, 0.
pub(crate) fn percent(part: u64, whole: u64) -> String {
    if whole == 0 {
        "0.0 %".to_owned()
    } else {
        format!("{:.1} %", part as f64 * 100.0 / whole as f64)
    }
}

/// A rate: `812`, `12.3 k`, `4.56 M`.
pub(crate) fn amount(number: f64) -> String {
    const STEPS: [(f64, &str); 4] = [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")];
    match STEPS.into_iter().find(|(step, _)| number >= *step) {
        Some((step, unit)) => format!("{:.2} {unit}", number / step),
        None => format!("{number:.0}"),
    }
}

/// Bytes of memory: `512 bytes`, `40 MiB`, `1.5 GiB`.
pub(crate) fn memory(bytes: u64) -> String {
    const STEPS: [(u64, &str); 3] = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    match STEPS.into_iter().find(|(step, _)| bytes >= *step) {
        Some((step, unit)) if bytes.is_multiple_of(step) => format!("{} {unit}", bytes / step),
        Some((step, unit)) => format!("{:.1} {unit}", bytes as f64 / step as f64),
        None => count(bytes, "byte", "bytes"),
    }
}
