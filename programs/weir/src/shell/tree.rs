//! Where words lead in the tree of commands.
//!
//! Three things need to know what the words of an unfinished command line mean: Tab, `?`, and
//! shortened words. [`Position`] walks clap's tree word by word, as clap's own parser would, and
//! knows at each place what may follow. It judges nothing: what it does not understand it takes as
//! a value, and clap says later what is wrong with it.
//!
//! A word that is the beginning of exactly one command's name stands for that command; if it is of
//! none, other spellings count (hidden commands must be written out). Where a value may stand as well (`show interface r`: an
//! interface `r`, or `rx-placement`?) a value that exists wins.

use clap::builder::ValueRange;
use clap::{Arg, Command, Id};

/// Tells whether an argument has a value: the running router's names, mostly.
pub(crate) trait Known {
    /// Whether `value` exists as a value of `argument`.
    fn exists(&self, argument: &Arg, value: &str) -> bool;
}

/// Nobody to ask: nothing exists.
#[cfg(test)]
pub(crate) struct NothingKnown;

#[cfg(test)]
impl Known for NothingKnown {
    fn exists(&self, _argument: &Arg, _value: &str) -> bool {
        false
    }
}

/// A word that could be several commands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ambiguous {
    /// The word.
    pub(crate) word: String,
    /// What it could be.
    pub(crate) candidates: Vec<String>,
}

impl std::fmt::Display for Ambiguous {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "\"{}\" is not clear: {}",
            self.word,
            self.candidates.join(", ")
        )
    }
}

/// A place in the tree, after some words.
#[derive(Debug, Clone)]
pub(crate) struct Position<'t> {
    /// The innermost command.
    pub(crate) command: &'t Command,
    /// The option whose value comes next.
    pub(crate) awaited: Option<&'t Arg>,
    /// After `--` there are no options.
    pub(crate) only_values: bool,
    /// Options that were said.
    given: Vec<&'t Id>,
    /// How many values without an option were said to the innermost command.
    values: usize,
    /// A word made no sense: nothing that follows it does.
    lost: bool,
}

impl<'t> Position<'t> {
    /// Before the first word. The tree must have been built ([`Command::build`]).
    pub(crate) fn start(tree: &'t Command) -> Self {
        Self {
            command: tree,
            awaited: None,
            only_values: false,
            given: Vec::new(),
            values: 0,
            lost: false,
        }
    }

    /// After `words`, which are replaced by what they stand for.
    pub(crate) fn after(
        tree: &'t Command,
        words: &mut [String],
        known: &dyn Known,
    ) -> Result<Self, Ambiguous> {
        let mut position = Self::start(tree);
        for word in words {
            if let Some(whole) = position.take(word, known)? {
                *word = whole;
            }
        }
        Ok(position)
    }

    /// The argument without an option that a next word would be.
    pub(crate) fn next_value(&self) -> Option<&'t Arg> {
        let mut passed = 0;
        self.command.get_positionals().find(|argument| {
            passed += 1;
            passed > self.values
                || argument
                    .get_num_args()
                    .is_some_and(|range| range.max_values() > 1)
        })
    }

    /// The commands that a next word may be.
    pub(crate) fn subcommands(&self) -> impl Iterator<Item = &'t Command> + use<'t> {
        let values_only = self.values > 0 && self.command.is_args_conflicts_with_subcommands_set();
        let possible = !(self.lost || self.only_values || values_only);
        self.command.get_subcommands().filter(move |_| possible)
    }

    /// The options that may still be said.
    pub(crate) fn options(&self) -> impl Iterator<Item = &'t Arg> {
        let possible = !(self.lost || self.only_values);
        self.command.get_arguments().filter(move |argument| {
            let again = !self.given.contains(&argument.get_id())
                || matches!(argument.get_action(), clap::ArgAction::Append);
            possible && again && !argument.is_positional() && !argument.is_hide_set()
        })
    }

    /// Whether the line may end here.
    pub(crate) fn is_complete(&self) -> bool {
        let missing = |argument: &&Arg| argument.is_required_set();
        let values_missing = self
            .command
            .get_positionals()
            .skip(self.values)
            .any(|argument| missing(&argument));
        let options_missing = self.options().any(|argument| missing(&argument));
        self.awaited.is_none()
            && !self.command.is_subcommand_required_set()
            && !values_missing
            && !options_missing
    }

    /// Goes on by a word; tells the whole word when it was a shortened one or another spelling.
    fn take(&mut self, word: &str, known: &dyn Known) -> Result<Option<String>, Ambiguous> {
        if self.awaited.take().is_some() {
            return Ok(None);
        }
        if !self.only_values && word == "--" {
            self.only_values = true;
            return Ok(None);
        }
        if !self.only_values && word.len() > 1 && word.starts_with('-') {
            self.take_option(word);
            return Ok(None);
        }
        if let Some(command) = self.subcommand(word, known)? {
            self.command = command;
            self.values = 0;
            return Ok((command.get_name() != word).then(|| command.get_name().to_owned()));
        }
        self.lost |= self.next_value().is_none();
        self.values += 1;
        Ok(None)
    }

    fn take_option(&mut self, word: &str) {
        let (argument, has_value) = match word.strip_prefix("--") {
            Some(long) => {
                let (name, value) = long
                    .split_once('=')
                    .map_or((long, None), |(name, value)| (name, Some(value)));
                (
                    self.command
                        .get_arguments()
                        .find(|argument| is_long(argument, name)),
                    value.is_some(),
                )
            }
            // Of several short options in one word only the last may wait for its value.
            None => {
                let shorts = word
                    .char_indices()
                    .skip(1)
                    .map(|(at, c)| (self.short(c), at + c.len_utf8() < word.len()));
                shorts.fold((None, false), |seen: (Option<&Arg>, bool), next| {
                    if seen.0.is_some_and(takes_value) {
                        seen
                    } else {
                        next
                    }
                })
            }
        };
        let Some(argument) = argument else { return };
        self.given.push(argument.get_id());
        self.awaited = (takes_value(argument) && !has_value).then_some(argument);
    }

    fn short(&self, c: char) -> Option<&'t Arg> {
        self.command.get_arguments().find(|argument| {
            argument
                .get_short_and_visible_aliases()
                .is_some_and(|shorts| shorts.contains(&c))
        })
    }

    /// The command that a word stands for.
    fn subcommand(&self, word: &str, known: &dyn Known) -> Result<Option<&'t Command>, Ambiguous> {
        let is_name = |command: &&Command| {
            command.get_name() == word || command.get_all_aliases().any(|alias| alias == word)
        };
        if let Some(command) = self.subcommands().find(is_name) {
            return Ok(Some(command));
        }
        let visible = || {
            self.subcommands()
                .filter(|command| !command.is_hide_set() && !word.is_empty())
        };
        let mut candidates: Vec<&Command> = visible()
            .filter(|command| command.get_name().starts_with(word))
            .collect();
        if candidates.is_empty() {
            candidates = visible()
                .filter(|command| {
                    command
                        .get_all_aliases()
                        .any(|alias| alias.starts_with(word))
                })
                .collect();
        }
        let value = self.next_value();
        if candidates.is_empty() || value.is_some_and(|argument| known.exists(argument, word)) {
            return Ok(None);
        }
        match (candidates.as_slice(), value) {
            ([only], _) => Ok(Some(only)),
            (_, Some(_)) => Ok(None),
            (several, None) => {
                let names = several
                    .iter()
                    .map(|command| command.get_name().to_owned())
                    .collect();
                Err(Ambiguous {
                    word: word.to_owned(),
                    candidates: names,
                })
            }
        }
    }
}

fn is_long(argument: &Arg, name: &str) -> bool {
    argument.get_long() == Some(name)
        || argument
            .get_all_aliases()
            .is_some_and(|aliases| aliases.contains(&name))
}

/// Whether an option is followed by a value.
pub(crate) fn takes_value(argument: &Arg) -> bool {
    argument
        .get_num_args()
        .unwrap_or(ValueRange::EMPTY)
        .takes_values()
}
