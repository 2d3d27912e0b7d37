//! The nearest known word for a mistyped one.

/// The candidate that `word` most likely was meant to be: at most a third of its letters wrong,
/// swapped neighbours counting as one (optimal string alignment distance).
pub(crate) fn nearest<'a>(
    word: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    const LONGEST: usize = 64;
    // Bounded: the time of a comparison grows with the product of the lengths.
    let length = word.chars().take(LONGEST + 1).count();
    if length > LONGEST {
        return None;
    }
    let word = word.to_ascii_lowercase().replace('_', "-");
    let allowed = (length / 3).max(1);
    let with_distance = candidates
        .into_iter()
        .filter(|candidate| candidate.chars().count() <= 2 * length + 2)
        .map(|candidate| (strsim::osa_distance(&word, candidate), candidate));
    with_distance
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn typos_find_their_word() {
        let keys = ["mtu", "mac", "addresses", "sampling-rate", "l2xc"];
        assert_eq!(nearest("mut", keys), Some("mtu"));
        assert_eq!(nearest("adresses", keys), Some("addresses"));
        assert_eq!(nearest("sampling_rate", keys), Some("sampling-rate"));
        assert_eq!(nearest("L2XC", keys), Some("l2xc"));
        assert_eq!(nearest("colour", keys), None);
        assert_eq!(nearest("", keys), None);
        assert_eq!(nearest(&"m".repeat(5000), keys), None);
    }
}
