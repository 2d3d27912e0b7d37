//! Credentials: hashes of API tokens and secrets of memif. They are kept out of everything that leaves the router, and
//! put back into a file that comes in.
//!
//! A hash is not a token, but whoever has the hash of a weak token finds the token offline; a secret is used as it is. So
//! the API shows `hidden` in place of each. A file with `hidden` that is applied to a router keeps
//! the hash of the token of the same name, and the secret of the interface of the same name, so that a dump can be edited
//! and applied. Pure functions; the engine calls them at the border to the API.

use crate::check::{CheckOptions, Checked, check_with};
use crate::device::{Device, Memif};
use crate::findings::{Segment, at};
use crate::model::Config;
use crate::scalar::Sha256;
use crate::tree::{Limits, place_in, read};

/// Hexadecimal digits of a hash.
const DIGITS: usize = 64;
/// The key of a memif's secret.
const SECRET: &str = "secret:";

/// The configuration without its credentials.
#[must_use]
pub fn without_credentials(mut config: Config) -> Config {
    for token in &mut config.api.tokens {
        token.sha256 = Sha256::HIDDEN;
    }
    for interface in config.interfaces.values_mut() {
        if let Some(Device::Memif(Memif {
            secret: Some(secret),
            ..
        })) = &mut interface.device
        {
            Memif::HIDDEN.clone_into(secret);
        }
    }
    config
}

fn secrets(config: &Config) -> impl Iterator<Item = (&str, &str)> {
    config
        .interfaces
        .iter()
        .filter_map(|(name, interface)| match &interface.device {
            Some(Device::Memif(memif)) => Some((name.as_str(), memif.secret.as_deref()?)),
            _ => None,
        })
}

/// The text of a file that was applied, with `hidden` in place of each credential. Where a secret is written so unusually
/// that it cannot be replaced, the text is made anew from its meaning, without its comments.
#[must_use]
pub fn without_credentials_in_file(text: &str) -> String {
    let shown = without_credentials_in(text);
    let options = CheckOptions {
        skip_unsupported: true,
        ..CheckOptions::new("revision")
    };
    let Ok(checked) = check_with(&options, text.as_bytes()) else {
        return shown;
    };
    let leaks = |(_, secret): (&str, &str)| secret != Memif::HIDDEN && shown.contains(secret);
    if secrets(&checked.config).any(leaks) && secrets_of(&shown).is_none_or(|left| left) {
        return crate::to_yaml(&without_credentials(checked.config));
    }
    shown
}

/// Whether a file has a secret that is not hidden; `None` when it is no configuration.
fn secrets_of(text: &str) -> Option<bool> {
    let options = CheckOptions {
        skip_unsupported: true,
        ..CheckOptions::new("revision")
    };
    let checked = check_with(&options, text.as_bytes()).ok()?;
    Some(secrets(&checked.config).any(|(_, secret)| secret != Memif::HIDDEN))
}

/// A text, such as a file or a diff, with `hidden` in place of each hash and of what follows `secret:`.
#[must_use]
pub fn without_credentials_in(text: &str) -> String {
    without_secrets_in(&without_hashes_in(text))
}

fn without_hashes_in(text: &str) -> String {
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

fn without_secrets_in(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let mut rest = line;
        while let Some(at) = rest.find(SECRET) {
            let (before, after) = rest.split_at(at + SECRET.len());
            let spaces = after.len() - after.trim_start_matches(' ').len();
            let (space, value) = after.split_at(spaces);
            let end = end_of_scalar(value);
            shown.push_str(before);
            shown.push_str(space);
            shown.push_str(if end == 0 { "" } else { Memif::HIDDEN });
            rest = value.get(end..).unwrap_or_default();
        }
        shown.push_str(rest);
    }
    shown
}

/// Where a scalar ends that begins a text of one line.
pub(crate) fn end_of_scalar(text: &str) -> usize {
    let quote = text.chars().next().filter(|c| matches!(c, '"' | '\''));
    let Some(quote) = quote else {
        let ends = [",", "}", " #", "\n", "\r"];
        let end = ends.iter().filter_map(|end| text.find(end)).min();
        return end.unwrap_or(text.len());
    };
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' if quote == '"' => escaped = true,
            _ if c == quote => {
                // In single quotes, two are one.
                let doubled = text
                    .get(at + 1..)
                    .is_some_and(|next| next.starts_with(quote));
                if quote == '"' || !doubled {
                    return at + 1;
                }
                escaped = true;
            }
            _ => {}
        }
    }
    text.trim_end_matches(['\n', '\r']).len()
}

/// The text of a checked file with the credentials that `running` has for its hidden tokens and secrets; `None` when
/// none of them is known there, so that the text stays as it is.
#[must_use]
pub fn with_credentials_of(checked: &Checked, running: &Config) -> Option<String> {
    let tokens = checked.config.api.tokens.iter().enumerate();
    let hashes = tokens
        .filter(|(_, token)| token.sha256.is_hidden())
        .filter_map(|(item, token)| {
            let mut known = running.api.tokens.iter();
            let same = known.find(|it| it.name == token.name)?;
            let at: Vec<Segment<'_>> = at!["api", "tokens", item, "sha256"].to_vec();
            (!same.sha256.is_hidden()).then(|| (at, same.sha256.to_string()))
        });
    let hidden = secrets(&checked.config).filter(|(_, secret)| *secret == Memif::HIDDEN);
    let known = hidden.filter_map(|(name, _)| {
        let (_, secret) = secrets(running).find(|(other, _)| *other == name)?;
        let at: Vec<Segment<'_>> = at!["interfaces", name, "device", "secret"].to_vec();
        (secret != Memif::HIDDEN).then(|| (at, format!("'{}'", secret.replace('\'', "''"))))
    });
    let known: Vec<(Vec<Segment<'_>>, String)> = hashes.chain(known).collect();
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
    let mut places: Vec<_> = known
        .into_iter()
        .map(|(at, text)| (place_in(&tree.root, &at), text))
        .collect();
    // From the end, so that the columns before a replaced word stay right.
    places.sort_by_key(|(place, _)| std::cmp::Reverse((place.line, place.column)));
    for (place, known) in places {
        let line = lines.get_mut((place.line as usize).checked_sub(1)?)?;
        let column = (place.column as usize).checked_sub(1)?;
        let start = line.char_indices().nth(column)?.0;
        let found = start + line.get(start..)?.find(Sha256::HIDDEN_WORD)?;
        let mut range = found..found + Sha256::HIDDEN_WORD.len();
        let before = line.get(..range.start)?.chars().next_back();
        if before.is_some_and(|c| matches!(c, '"' | '\'')) {
            range = range.start - 1..range.end + 1;
        }
        line.get(range.clone())?;
        line.replace_range(range, &known);
    }
    Some(lines.concat())
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let hidden = without_credentials_in(&text);
        assert!(
            !hidden.contains(HASH) && hidden.matches("hidden").count() == 2,
            "{hidden}"
        );
        let again = file(&hidden);
        assert_eq!(again.warnings.len(), 2);
        assert_eq!(again.config, without_credentials(checked.config.clone()));
        let back = with_credentials_of(&again, &checked.config).unwrap();
        assert_eq!(file(&back).config, checked.config, "{back}");
        assert_eq!(with_credentials_of(&again, &Config::default()), None);
        assert_eq!(with_credentials_of(&checked, &checked.config), None);
    }

    #[test]
    fn a_secret_is_hidden_and_comes_back() {
        let of = |secrets: [&str; 3]| {
            let [a, b, c] = secrets;
            format!(
                "interfaces:
  m0: {{ device: {{ driver: memif, role: slave, socket: /run/m0.sock, secret: {a}, id: 1 }} }} # secret: {a}
  m1:
    device:
      driver: memif
      role: slave
      socket: /run/m1.sock
      secret: {b} # é
  m2: {{ device: {{ secret: {c}, driver: memif, role: slave, socket: /run/m2.sock }} }}
"
            )
        };
        let text = of(["sesame", "'it''s: #1, }'", r#""a\"b""#]);
        let checked = file(&text);
        let all: Vec<&str> = secrets(&checked.config).map(|(_, secret)| secret).collect();
        assert_eq!(all, ["sesame", "it's: #1, }", "a\"b"]);
        let hidden = without_credentials_in_file(&text);
        assert_eq!(hidden, of(["hidden"; 3]));
        let again = file(&hidden);
        assert_eq!(again.warnings.len(), 3, "{:?}", again.warnings);
        assert_eq!(again.config, without_credentials(checked.config.clone()));
        let quoted = file(&of(["'hidden'", r#""hidden""#, "hidden"]));
        for again in [again, quoted] {
            let back = with_credentials_of(&again, &checked.config).unwrap();
            assert_eq!(file(&back).config, checked.config, "{back}");
        }
        let dump = crate::to_yaml(&without_credentials(checked.config.clone()));
        assert!(!dump.contains("sesame") && !dump.contains("it's"), "{dump}");
        let diff = crate::diff("a", &Config::default(), "b", &checked.config);
        let diff = without_credentials_in(&diff);
        assert!(
            !diff.contains("sesame") && !diff.contains("it''s"),
            "{diff}"
        );
    }

    #[test]
    fn a_secret_on_a_line_of_its_own_is_hidden_too() {
        let text = "interfaces:\n  m0:\n    device:\n      driver: memif\n      role: slave\n      socket: /run/m0.sock\n      secret:\n        sesame\n";
        assert_eq!(secrets(&file(text).config).count(), 1);
        let hidden = without_credentials_in_file(text);
        assert!(!hidden.contains("sesame"), "{hidden}");
        assert_eq!(file(&hidden).config, without_credentials(file(text).config));
    }

    #[test]
    fn other_words_stay() {
        let text = "abcdef 0123 é 192.0.2.1/24\n";
        assert_eq!(without_credentials_in(text), text);
        let longer = format!("{HASH}0");
        assert_eq!(without_credentials_in(&longer), longer);
    }
}
