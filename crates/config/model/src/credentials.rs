//! Hashes of API tokens: kept out of everything that leaves the router, and put back into a file
//! that comes in.
//!
//! A hash is not a token, but whoever has the hash of a weak token finds the token offline. So the
//! API shows `hidden` in place of each hash. A file with `hidden` that is applied to a router keeps
//! the hash that the token of the same name has there, so that a dump can be edited and applied.
//! Pure functions; the engine calls them at the border to the API.

use crate::check::Checked;
use crate::findings::at;
use crate::model::Config;
use crate::scalar::Sha256;
use crate::settings::Token;
use crate::tree::{Limits, place_in, read};

/// Hexadecimal digits of a hash.
const DIGITS: usize = 64;

/// The configuration without the hashes of its tokens.
#[must_use]
pub fn without_hashes(mut config: Config) -> Config {
    for token in &mut config.api.tokens {
        token.sha256 = Sha256::HIDDEN;
    }
    config
}

/// A text, such as a file or a diff, with `hidden` in place of each hash.
#[must_use]
pub fn without_hashes_in(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| c.is_ascii_hexdigit()) {
        let (before, word_on) = rest.split_at(start);
        let end = word_on
            .find(|c: char| !c.is_ascii_hexdigit())
            .unwrap_or(word_on.len());
        let (word, after) = word_on.split_at(end);
        shown.push_str(before);
        shown.push_str(if word.len() == DIGITS {
            Sha256::HIDDEN_WORD
        } else {
            word
        });
        rest = after;
    }
    shown + rest
}

/// The text of a checked file with the hashes that `running` has for its hidden tokens; `None` when
/// none of them is known there, so that the text stays as it is.
#[must_use]
pub fn with_hashes_of(checked: &Checked, running: &[Token]) -> Option<String> {
    let tokens = checked.config.api.tokens.iter().enumerate();
    let known: Vec<(usize, Sha256)> = tokens
        .filter(|(_, token)| token.sha256.is_hidden())
        .filter_map(|(item, token)| {
            let same = running.iter().find(|it| it.name == token.name)?;
            (!same.sha256.is_hidden()).then_some((item, same.sha256))
        })
        .collect();
    if known.is_empty() {
        return None;
    }
    let limits = Limits {
        bytes: usize::MAX,
        separators: usize::MAX,
        nodes: usize::MAX,
        ..Limits::default()
    };
    let tree = read(&checked.text, &limits).ok()?;
    let mut lines: Vec<String> = checked
        .text
        .split_inclusive('\n')
        .map(str::to_owned)
        .collect();
    // From the end, so that the columns before a replaced word stay right.
    for (item, hash) in known.into_iter().rev() {
        let place = place_in(&tree.root, at!["api", "tokens", item, "sha256"]);
        let line = lines.get_mut((place.line as usize).checked_sub(1)?)?;
        let column = (place.column as usize).checked_sub(1)?;
        let start = line.char_indices().nth(column)?.0;
        let found = start + line.get(start..)?.find(Sha256::HIDDEN_WORD)?;
        line.replace_range(found..found + Sha256::HIDDEN_WORD.len(), &hash.to_string());
    }
    Some(lines.concat())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::{CheckOptions, check_with};

    const HASH: &str = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

    fn file(text: &str) -> Checked {
        match check_with(&CheckOptions::new("weir.yaml"), text.as_bytes()) {
            Ok(checked) => checked,
            Err(errors) => panic!("{}", errors[0]),
        }
    }

    #[test]
    fn a_hash_is_hidden_and_comes_back() {
        let text = format!(
            "# é\napi:\n  listen: [{{address: 127.0.0.1}}]\n  tokens: [{{name: a, sha256: {HASH}}}, {{sha256: \"{HASH_2}\", name: b}}]\n",
            HASH_2 = HASH.replace('0', "1").to_uppercase()
        );
        let checked = file(&text);
        let hidden = without_hashes_in(&text);
        assert!(
            !hidden.contains(HASH) && hidden.matches("hidden").count() == 2,
            "{hidden}"
        );
        let again = file(&hidden);
        assert_eq!(again.warnings.len(), 2);
        assert_eq!(again.config, without_hashes(checked.config.clone()));
        let back = with_hashes_of(&again, &checked.config.api.tokens).unwrap();
        assert_eq!(file(&back).config, checked.config, "{back}");
        assert_eq!(with_hashes_of(&again, &[]), None);
        assert_eq!(with_hashes_of(&checked, &checked.config.api.tokens), None);
    }

    #[test]
    fn other_words_stay() {
        let text = "abcdef 0123 é 192.0.2.1/24\n";
        assert_eq!(without_hashes_in(text), text);
        let longer = format!("{HASH}0");
        assert_eq!(without_hashes_in(&longer), longer);
    }
}
