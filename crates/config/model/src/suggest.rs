//! The nearest known word for a mistyped one.

/// The candidate that `word` most likely was meant to be: at most a third of its letters wrong,
/// swapped neighbours counting as one.
pub(crate) fn nearest<'a>(
    word: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    const LONGEST: usize = 64;
    let word: Vec<char> = word
        .chars()
        .take(LONGEST + 1)
        .map(|c| {
            if c == '_' {
                '-'
            } else {
                c.to_ascii_lowercase()
            }
        })
        .collect();
    if word.len() > LONGEST {
        return None;
    }
    let allowed = (word.len() / 3).max(1);
    let with_distance = candidates
        .into_iter()
        .map(|candidate| (distance(&word, candidate), candidate));
    with_distance
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Optimal string alignment distance (Damerau-Levenshtein without overlapping swaps).
fn distance(word: &[char], candidate: &str) -> usize {
    let candidate: Vec<char> = candidate.chars().take(word.len() * 2 + 2).collect();
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=candidate.len()).collect();
    for (row, letter) in word.iter().enumerate() {
        let mut current = vec![row + 1];
        for (column, other) in candidate.iter().enumerate() {
            let at =
                |line: &[usize], index: usize| line.get(index).copied().unwrap_or(usize::MAX / 2);
            let substitute = at(&last, column) + usize::from(letter != other);
            let mut best = substitute
                .min(at(&last, column + 1) + 1)
                .min(at(&current, column) + 1);
            let swapped = row > 0
                && column > 0
                && word.get(row - 1) == Some(other)
                && candidate.get(column - 1) == Some(letter);
            if swapped {
                best = best.min(at(&before_last, column - 1) + 1);
            }
            current.push(best);
        }
        before_last = last;
        last = current;
    }
    last.last().copied().unwrap_or(usize::MAX)
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
