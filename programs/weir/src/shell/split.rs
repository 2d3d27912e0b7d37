//! A line's words, as a shell splits them.
//!
//! Spaces separate; quotes ('single' take everything, "double" know \" and \\) and backslashes keep
//! them together; a # at the beginning of a word makes the rest a comment. Nothing else is special:
//! no variables, no patterns.

/// A line in words.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Split {
    /// The words, without their quotes.
    pub(crate) words: Vec<String>,
    /// Where each of them begins in the line, in bytes.
    pub(crate) starts: Vec<usize>,
    /// How the line ends.
    pub(crate) end: End,
}

/// How a line ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum End {
    /// After a space, or before anything: the next character begins a new word.
    #[default]
    Between,
    /// In a word.
    InWord,
    /// In quotes that nobody closed, or after a lone backslash.
    Open,
    /// In a comment.
    Comment,
}

impl Split {
    /// The whole words, and the beginning of the one that the line ends in (perhaps empty).
    pub(crate) fn unfinished(&self, line: &str) -> Option<(&[String], &str, usize)> {
        match (self.end, self.words.split_last(), self.starts.last()) {
            (End::Comment, ..) => None,
            (End::InWord | End::Open, Some((last, before)), Some(start)) => {
                Some((before, last, *start))
            }
            _ => Some((&self.words, "", line.len())),
        }
    }
}

/// Splits a line.
pub(crate) fn split(line: &str) -> Split {
    let mut split = Split::default();
    let mut characters = line.char_indices();
    let mut quote = None;
    while let Some((at, c)) = characters.next() {
        if quote.is_none() && c.is_whitespace() {
            split.end = End::Between;
            continue;
        }
        if split.end == End::Between {
            if c == '#' {
                split.end = End::Comment;
                return split;
            }
            split.words.push(String::new());
            split.starts.push(at);
            split.end = End::InWord;
        }
        let Some(word) = split.words.last_mut() else {
            continue;
        };
        match (quote, c) {
            (None, '\'' | '"') => quote = Some(c),
            (Some(open), _) if c == open => quote = None,
            (None, '\\') => match characters.next() {
                Some((_, next)) => word.push(next),
                None => {
                    split.end = End::Open;
                    return split;
                }
            },
            (Some('"'), '\\') => {
                let rest = characters.as_str();
                if rest.starts_with(['"', '\\']) {
                    word.extend(characters.next().map(|(_, next)| next));
                } else {
                    word.push(c);
                }
            }
            _ => word.push(c),
        }
    }
    if quote.is_some() {
        split.end = End::Open;
    }
    split
}

/// A word as it must be written to be one word.
pub(crate) fn quoted(word: &str) -> String {
    let special = |c: char| c.is_whitespace() || matches!(c, '\'' | '"' | '\\' | '#');
    let mut text = String::with_capacity(word.len());
    for c in word.chars() {
        if special(c) {
            text.push('\\');
        }
        text.push(c);
    }
    if text.is_empty() {
        "''".to_owned()
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn words(line: &str) -> Vec<String> {
        split(line).words
    }

    #[test]
    fn words_quotes_and_comments() {
        assert_eq!(
            words("  show   interface\twan "),
            ["show", "interface", "wan"]
        );
        assert_eq!(
            words(r#"a "b c" 'd "e' f\ g "h\"i\\j\k""#),
            ["a", "b c", "d \"e", "f g", "h\"i\\j\\k"]
        );
        assert_eq!(words("a#b #c d"), ["a#b"]);
        assert_eq!(words("'' \"\""), ["", ""]);
        assert_eq!(words(r"\# x"), ["#", "x"]);
        assert!(words(" # only this").is_empty());
    }

    #[test]
    fn the_end_is_known() {
        for (line, end) in [
            ("", End::Between),
            ("show ", End::Between),
            ("show", End::InWord),
            ("'a'", End::InWord),
            ("a 'b c", End::Open),
            ("a\\", End::Open),
            ("# x", End::Comment),
        ] {
            assert_eq!(split(line).end, end, "{line}");
        }
        let line = "show int w";
        assert_eq!(
            split(line).unfinished(line),
            Some((["show".to_owned(), "int".to_owned()].as_slice(), "w", 9))
        );
        let line = "show ";
        assert_eq!(
            split(line).unfinished(line),
            Some((["show".to_owned()].as_slice(), "", 5))
        );
        assert_eq!(split("show # x").unfinished("show # x"), None);
    }

    proptest! {
        #[test]
        fn a_quoted_word_is_one_word(word in "\\PC*") {
            let split = split(&quoted(&word));
            prop_assert_eq!(split.words, [word]);
            prop_assert_eq!(split.end, End::InWord);
        }

        #[test]
        fn any_line_can_be_split(line in "\\PC*") {
            let split = split(&line);
            prop_assert_eq!(split.words.len(), split.starts.len());
            prop_assert!(split.starts.iter().all(|start| line.is_char_boundary(*start)));
        }
    }
}
