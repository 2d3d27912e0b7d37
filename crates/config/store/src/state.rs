//! The state: which revision runs, which one waits to be confirmed, what became of the others.
//!
//! ```text
//! weir store 1
//! generation 17
//! running 42
//! pending 42 before 41 deadline 1730000300000
//! revision 41 applied
//! revision 42 unconfirmed
//! check 1a2b3c4d
//! ```
//!
//! filled up with line ends to a size in which the longest state fits, so that overwriting one never
//! changes its size. There are two such files; the whole one of the higher generation counts. A state is
//! worked out as a value and then written: nothing here does I/O.

/// The files' names.
pub(crate) const SLOTS: [&str; 2] = ["state.a", "state.b"];

/// Bytes of a state file that can speak of `keep` revisions, the pending one and the one before it, with
/// the longest numbers there are; in whole pages.
pub(crate) const fn size_for(keep: usize) -> usize {
    (256 + 72 * (keep + 2)).next_multiple_of(4096)
}

/// What became of a revision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RevisionState {
    /// It runs, or ran until the next one.
    Applied,
    /// It runs, and waits to be confirmed.
    Unconfirmed,
    /// It ran, was not confirmed, and the one before it was taken again.
    RolledBack {
        /// When, in milliseconds since 1970.
        time_unix_ms: u64,
        /// What for.
        why: Why,
    },
}

/// Why an unconfirmed revision was rolled back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// Somebody asked for it.
    Asked,
    /// It was not confirmed in time.
    Deadline,
    /// The router ended before it was confirmed.
    Restart,
}

const WHYS: [(Why, &str); 3] = [
    (Why::Asked, "asked"),
    (Why::Deadline, "deadline"),
    (Why::Restart, "restart"),
];

impl Why {
    /// `asked`, `deadline` or `restart`.
    #[must_use]
    pub fn word(self) -> &'static str {
        WHYS.iter()
            .find(|(why, _)| *why == self)
            .map_or("", |(_, word)| word)
    }
}

/// A revision that waits to be confirmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pending {
    /// Which one.
    pub revision: u64,
    /// What is taken again when it is not confirmed; none when it was the first.
    pub before: Option<u64>,
    /// Until when, in milliseconds since 1970.
    pub deadline_unix_ms: u64,
}

/// The state of a store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct State {
    pub(crate) running: Option<u64>,
    pub(crate) pending: Option<Pending>,
    /// Ascending by number.
    pub(crate) revisions: Vec<(u64, RevisionState)>,
}

impl State {
    /// The state that is assumed where none can be read: the files' revisions were applied, and none runs.
    pub(crate) fn of_files(numbers: &[u64], keep: usize) -> State {
        let mut numbers = numbers.to_vec();
        numbers.sort_unstable();
        let surplus = numbers.len().saturating_sub(keep);
        let kept = numbers.into_iter().skip(surplus);
        State {
            revisions: kept.map(|it| (it, RevisionState::Applied)).collect(),
            ..State::default()
        }
    }

    /// The highest number that was given.
    pub(crate) fn newest(&self) -> u64 {
        self.revisions.last().map_or(0, |(number, _)| *number)
    }

    pub(crate) fn set_state(&mut self, number: u64, state: RevisionState) {
        self.revisions
            .iter_mut()
            .filter(|(other, _)| *other == number)
            .for_each(|(_, old)| *old = state);
    }

    /// The state after a new revision took effect, with the newest `keep` and those that are needed.
    pub(crate) fn after_commit(
        &self,
        number: u64,
        deadline_unix_ms: Option<u64>,
        keep: usize,
    ) -> State {
        let mut next = self.clone();
        next.pending = deadline_unix_ms.map(|deadline_unix_ms| Pending {
            revision: number,
            before: self.running,
            deadline_unix_ms,
        });
        next.running = Some(number);
        next.revisions.push((
            number,
            if next.pending.is_some() {
                RevisionState::Unconfirmed
            } else {
                RevisionState::Applied
            },
        ));
        let surplus = next.revisions.len().saturating_sub(keep);
        let needed = [
            next.running,
            next.pending.and_then(|pending| pending.before),
        ];
        let mut place = 0;
        next.revisions.retain(|(number, _)| {
            place += 1;
            place > surplus || needed.contains(&Some(*number))
        });
        next
    }

    /// The state after the pending revision was confirmed.
    pub(crate) fn after_confirm(&self) -> State {
        let mut next = self.clone();
        if let Some(pending) = next.pending.take() {
            next.set_state(pending.revision, RevisionState::Applied);
        }
        next
    }

    /// The state after the pending revision was given up.
    pub(crate) fn after_rollback(&self, time_unix_ms: u64, why: Why) -> State {
        let mut next = self.clone();
        if let Some(pending) = next.pending.take() {
            next.running = pending.before;
            next.set_state(
                pending.revision,
                RevisionState::RolledBack { time_unix_ms, why },
            );
        }
        next
    }

    /// The bytes of a state file of this size.
    pub(crate) fn encode(&self, generation: u64, size: usize) -> Vec<u8> {
        let mut text = format!(
            "weir store 1\ngeneration {generation}\nrunning {}\n",
            number_or_none(self.running)
        );
        if let Some(Pending {
            revision,
            before,
            deadline_unix_ms,
        }) = self.pending
        {
            text += &format!(
                "pending {revision} before {} deadline {deadline_unix_ms}\n",
                number_or_none(before)
            );
        }
        for (number, state) in &self.revisions {
            text += &match state {
                RevisionState::Applied => format!("revision {number} applied\n"),
                RevisionState::Unconfirmed => format!("revision {number} unconfirmed\n"),
                RevisionState::RolledBack { time_unix_ms, why } => format!(
                    "revision {number} rolled-back {time_unix_ms} {}\n",
                    why.word()
                ),
            };
        }
        text += &format!("check {:08x}\n", crc32fast::hash(text.as_bytes()));
        let mut bytes = text.into_bytes();
        bytes.resize(bytes.len().max(size), b'\n');
        bytes
    }

    /// Reads a state file: its generation and the state; nothing when it is not whole.
    pub(crate) fn decode(bytes: &[u8]) -> Option<(u64, State)> {
        let text = std::str::from_utf8(bytes).ok()?;
        let (body, check) = text.trim_end().rsplit_once("check ")?;
        if check != format!("{:08x}", crc32fast::hash(body.as_bytes())) {
            return None;
        }
        let mut lines = body.strip_prefix("weir store 1\n")?.lines().peekable();
        let generation = lines.next()?.strip_prefix("generation ")?.parse().ok()?;
        let running = none_or_number(lines.next()?.strip_prefix("running ")?)?;
        let pending = match lines.next_if(|line| line.starts_with("pending ")) {
            Some(line) => Some(decode_pending(line)?),
            None => None,
        };
        let revisions: Vec<(u64, RevisionState)> =
            lines.map(decode_revision).collect::<Option<_>>()?;
        let ascending = revisions
            .iter()
            .zip(revisions.iter().skip(1))
            .all(|((a, _), (b, _))| a < b);
        let known = |number: Option<u64>| {
            number.is_none_or(|number| revisions.iter().any(|(other, _)| *other == number))
        };
        let sound = ascending
            && known(running)
            && pending.is_none_or(|it| known(it.before) && running == Some(it.revision));
        sound.then_some((
            generation,
            State {
                running,
                pending,
                revisions,
            },
        ))
    }
}

fn number_or_none(number: Option<u64>) -> String {
    number.map_or_else(|| "none".to_owned(), |number| number.to_string())
}

fn none_or_number(word: &str) -> Option<Option<u64>> {
    if word == "none" {
        Some(None)
    } else {
        word.parse().ok().map(Some)
    }
}

fn decode_pending(line: &str) -> Option<Pending> {
    let words: Vec<&str> = line.split(' ').collect();
    let ["pending", revision, "before", before, "deadline", deadline] = words.as_slice() else {
        return None;
    };
    Some(Pending {
        revision: revision.parse().ok()?,
        before: none_or_number(before)?,
        deadline_unix_ms: deadline.parse().ok()?,
    })
}

fn decode_revision(line: &str) -> Option<(u64, RevisionState)> {
    let words: Vec<&str> = line.split(' ').collect();
    let (number, state) = match words.as_slice() {
        ["revision", number, "applied"] => (number, RevisionState::Applied),
        ["revision", number, "unconfirmed"] => (number, RevisionState::Unconfirmed),
        ["revision", number, "rolled-back", time, why] => {
            let why = WHYS.iter().find(|(_, word)| word == why)?.0;
            (
                number,
                RevisionState::RolledBack {
                    time_unix_ms: time.parse().ok()?,
                    why,
                },
            )
        }
        _ => return None,
    };
    Some((number.parse().ok()?, state))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As long as it gets: the first one runs, and is far from the others.
    fn full(keep: usize) -> State {
        let mut state = State::default().after_commit(1 << 63, None, keep);
        let last = u64::MAX - 1;
        for number in last - keep as u64 - 5..=last {
            state = state
                .after_commit(number, Some(u64::MAX), keep)
                .after_rollback(u64::MAX, Why::Deadline);
        }
        state.after_commit(u64::MAX, Some(u64::MAX), keep)
    }

    #[test]
    fn what_is_written_is_read() {
        let empty = State::default();
        let plain = empty.after_commit(1, None, 50);
        let pending = plain.after_commit(2, Some(99), 50);
        let back = pending.after_rollback(100, Why::Restart);
        for (generation, state) in [
            empty,
            plain,
            pending.clone(),
            pending.after_confirm(),
            back.clone(),
        ]
        .iter()
        .enumerate()
        {
            let bytes = state.encode(generation as u64, 4096);
            assert_eq!(
                (bytes.len(), State::decode(&bytes)),
                (4096, Some((generation as u64, state.clone())))
            );
        }
        for keep in [1, 3, 50, 100, crate::store::MOST_KEPT] {
            let bytes = full(keep).encode(u64::MAX, size_for(keep));
            assert_eq!(
                (bytes.len(), State::decode(&bytes)),
                (size_for(keep), Some((u64::MAX, full(keep))))
            );
        }
        assert_eq!(back.running, Some(1));
        assert_eq!(
            back.revisions,
            [
                (1, RevisionState::Applied),
                (
                    2,
                    RevisionState::RolledBack {
                        time_unix_ms: 100,
                        why: Why::Restart
                    }
                )
            ]
        );
    }

    /// 256 octets for what is there once, 72 for each revision that is kept and two more, in whole pages.
    #[test]
    fn sizes_are_whole_pages() {
        assert_eq!([1, 51, 52].map(size_for), [4096, 4096, 8192]);
    }

    #[test]
    fn the_newest_are_kept_and_those_that_are_needed() {
        let mut state = State::default().after_commit(1, None, 3);
        for number in 2..6 {
            state = state
                .after_commit(number, Some(9), 3)
                .after_rollback(10, Why::Asked);
        }
        let numbers: Vec<u64> = state.revisions.iter().map(|(number, _)| *number).collect();
        assert_eq!(numbers, [1, 3, 4, 5], "1 runs");
        let numbers: Vec<u64> = state
            .after_commit(6, Some(9), 3)
            .revisions
            .iter()
            .map(|(number, _)| *number)
            .collect();
        assert_eq!(numbers, [1, 4, 5, 6], "1 may be taken again");
        let numbers: Vec<u64> = state
            .after_commit(6, None, 3)
            .revisions
            .iter()
            .map(|(number, _)| *number)
            .collect();
        assert_eq!(numbers, [4, 5, 6]);
    }

    #[test]
    fn any_byte_changed_or_missing_is_seen() {
        let bytes = full(4).encode(7, 0);
        for place in 0..bytes.len() {
            let mut other = bytes.clone();
            other[place] ^= 0x10;
            assert_eq!(State::decode(&other), None, "byte {place}");
            assert!(
                State::decode(&bytes[..place]).is_none() || place == bytes.len() - 1,
                "all but the last line end"
            );
        }
    }

    #[test]
    fn what_an_older_state_left_behind_the_new_one_is_not_taken() {
        let (old, new) = (
            full(9).encode(7, 0),
            State::default().after_commit(1, None, 9).encode(8, 0),
        );
        assert!(State::decode(&[&new[..], &old[new.len()..]].concat()).is_none());
    }

    #[test]
    fn a_state_that_contradicts_itself_is_not_taken() {
        let sound = State::default()
            .after_commit(1, None, 5)
            .after_commit(2, Some(9), 5);
        let mut wrong = vec![sound.clone(); 5];
        wrong[0].running = Some(7);
        wrong[1].pending = Some(Pending {
            revision: 1,
            before: None,
            deadline_unix_ms: 0,
        });
        wrong[2].pending = Some(Pending {
            revision: 2,
            before: Some(3),
            deadline_unix_ms: 0,
        });
        wrong[3].revisions.reverse();
        // A revision twice.
        let last = *sound.revisions.last().unwrap();
        wrong[4].revisions.push(last);
        assert!(State::decode(&sound.encode(1, 0)).is_some());
        assert!(
            wrong
                .iter()
                .all(|state| State::decode(&state.encode(1, 0)).is_none())
        );
    }
}
