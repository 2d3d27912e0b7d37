//! Paths, the groups that hold them, and how weights become buckets.
//!
//! A group is its content: two routes over the same paths share one group. A label stack is part of
//! a path's identity, so that two stacks over one neighbour stay two paths.
//!
//! A group of several paths has a power of two of buckets, at most [`MAX_BUCKETS`]; a flow's hash picks
//! one. Buckets are shared out by weight once, as if every path were up; only the buckets of paths that
//! are down go to the others. So a failure moves the flows of the failed path and nobody else's, and
//! they all come back when it does.

use crate::nexthops::DROP;

/// The most buckets of a group, and so the most paths.
pub const MAX_BUCKETS: usize = 64;

/// What becomes of time to live and traffic class where a label is pushed or taken off (RFC 3443, RFC 3270).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, PartialOrd, Ord)]
pub enum TtlMode {
    /// Hops of the label switched path count as hops of the packet under it.
    #[default]
    Uniform,
    /// The label switched path is one hop of the packet under it.
    Pipe,
    /// The same; the egress acts by the traffic class of the packet under it.
    ShortPipe,
}

/// Labels to push, and how.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LabelStack {
    /// The labels, outermost first.
    pub labels: Vec<u32>,
    /// Where their time to live comes from.
    pub mode: TtlMode,
    /// The traffic class to write; without it, that of the packet they are pushed onto.
    pub class: Option<u8>,
    /// The time to live that they begin with where they do not take it over.
    pub ttl: u8,
    /// Whether an entropy label is pushed below the first one (RFC 6790).
    pub entropy: bool,
    /// How the outermost labels are pushed that are of other label switched paths, within which this one goes; all that
    /// stands above is of the labels that are left.
    pub outer: Vec<Layer>,
}

/// The labels of one label switched path in a stack, and how they are pushed.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Layer {
    /// How many labels it has.
    pub depth: usize,
    /// Where their time to live comes from.
    pub mode: TtlMode,
    /// Their traffic class; without it, that of the label below.
    pub class: Option<u8>,
    /// Whether an entropy label is pushed below its first one.
    pub entropy: bool,
}

impl Layer {
    /// Whether its labels are written as those of the stack below it would be.
    fn is_like(&self, below: &LabelStack) -> bool {
        let takes_all = self.mode == TtlMode::Uniform && self.class.is_none();
        !below.entropy && (takes_all || (self.mode, self.class) == (below.mode, below.class))
    }
}

impl Default for LabelStack {
    fn default() -> LabelStack {
        LabelStack {
            labels: Vec::new(),
            mode: TtlMode::Uniform,
            class: None,
            ttl: 255,
            entropy: false,
            outer: Vec::new(),
        }
    }
}

impl LabelStack {
    /// These labels, outermost first, in uniform mode.
    #[must_use]
    pub fn of(labels: &[u32]) -> LabelStack {
        LabelStack {
            labels: labels.to_vec(),
            ..LabelStack::default()
        }
    }

    /// These labels below those of the path within which they go, each pushed as its own path says (RFC 3443 section 3).
    #[must_use]
    pub fn within(&self, path: LabelStack) -> LabelStack {
        if self.labels.is_empty() || path.labels.is_empty() {
            return if self.labels.is_empty() {
                path
            } else {
                self.clone()
            };
        }
        let said: usize = path.outer.iter().map(|layer| layer.depth).sum();
        let depth = path.labels.len().saturating_sub(said);
        let (mut labels, mut outer) = (path.labels, path.outer);
        outer.push(Layer {
            depth,
            mode: path.mode,
            class: path.class,
            entropy: path.entropy,
        });
        outer.extend_from_slice(&self.outer);
        labels.extend_from_slice(&self.labels);
        let mut stack = LabelStack {
            labels,
            outer: Vec::new(),
            ..self.clone()
        };
        // What makes no difference is not said, so that the same packets come of the same stack.
        while let Some(layer) = outer.pop_if(|layer| layer.is_like(&stack)) {
            stack.entropy = layer.entropy;
        }
        LabelStack { outer, ..stack }
    }
}

/// One way that packets of a group can take.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Path {
    /// Number of the adjacency at its end.
    pub adjacency: u32,
    /// Its share, relative to the other paths; at least 1.
    pub weight: u32,
    /// Labels that are pushed on the way.
    pub labels: LabelStack,
}

impl Path {
    /// A path of weight 1 without labels.
    #[must_use]
    pub fn to(adjacency: u32) -> Path {
        Path {
            adjacency,
            weight: 1,
            labels: LabelStack::default(),
        }
    }
}

/// Why paths are no group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GroupError {
    /// There is none.
    #[error("a group needs at least one path")]
    Empty,
    /// There are more than buckets.
    #[error("a group of {0} paths; {MAX_BUCKETS} is the most")]
    TooManyPaths(usize),
    /// A weight is 0.
    #[error("a path of weight 0 would never be taken")]
    NoWeight,
    /// A path ends in an adjacency that does not exist.
    #[error("there is no adjacency {0}")]
    UnknownAdjacency(u32),
    /// A path pushes labels, but no neighbour is at its end.
    #[error("adjacency {0} is no neighbour that could get labels")]
    LabelsToNobody(u32),
    /// A path pushes more labels than [`crate::MAX_LABELS`].
    #[error("a stack of {0} labels; {most} is the most", most = crate::MAX_LABELS)]
    TooManyLabels(usize),
}

/// Paths in a fixed order, so that equal groups are equal values.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Group {
    paths: Vec<Path>,
    /// Of a resilient group the path of each bucket, as if all were up; others work that out from the weights.
    layout: Option<Box<[u8; MAX_BUCKETS]>>,
}

impl Group {
    /// A group of these paths; their order does not matter. Equal paths count together.
    ///
    /// # Errors
    /// When there are none or too many, or one has no weight.
    pub fn new(paths: impl IntoIterator<Item = Path>) -> Result<Group, GroupError> {
        let mut paths: Vec<Path> = paths.into_iter().collect();
        if paths.iter().any(|path| path.weight == 0) {
            return Err(GroupError::NoWeight);
        }
        paths.sort_by(|a, b| (a.adjacency, &a.labels).cmp(&(b.adjacency, &b.labels)));
        paths.dedup_by(|next, kept| {
            let same = next.adjacency == kept.adjacency && next.labels == kept.labels;
            if same {
                kept.weight = kept.weight.saturating_add(next.weight);
            }
            same
        });
        match paths.len() {
            0 => Err(GroupError::Empty),
            1..=MAX_BUCKETS => Ok(Group {
                paths: reduced(paths),
                layout: None,
            }),
            many => Err(GroupError::TooManyPaths(many)),
        }
    }

    /// A group whose flows stay where they are when a path is added or taken away by the configuration: `before` is the
    /// group that it takes the place of. A path that goes leaves its buckets to the others, who keep theirs; one that
    /// comes, or whose weight changes, takes as few from the others as its share wants.
    ///
    /// # Errors
    /// As [`Group::new`].
    pub fn resilient(
        paths: impl IntoIterator<Item = Path>,
        before: Option<&Group>,
    ) -> Result<Group, GroupError> {
        let group = Group::new(paths)?;
        let layout = Some(Box::new(group.lay_out(before)));
        Ok(Group { layout, ..group })
    }

    /// A group that drops what it gets, as where there is no route.
    #[must_use]
    pub fn nowhere() -> Group {
        Group {
            paths: vec![Path::to(DROP)],
            layout: None,
        }
    }

    /// The paths.
    #[must_use]
    pub fn paths(&self) -> &[Path] {
        &self.paths
    }

    /// Whether flows stay where they are when paths come and go.
    #[must_use]
    pub fn is_resilient(&self) -> bool {
        self.layout.is_some()
    }

    /// The path of each bucket, as near to that of another group as can be.
    fn lay_out(&self, before: Option<&Group>) -> [u8; MAX_BUCKETS] {
        let shares = self.shares_of(MAX_BUCKETS);
        let place_of = |old: &Path| {
            self.paths
                .iter()
                .position(|path| path.adjacency == old.adjacency && path.labels == old.labels)
        };
        let old = before.and_then(|before| Some((before, before.layout.as_ref()?)));
        let mut layout: Vec<Option<usize>> = match old {
            None => vec![None; MAX_BUCKETS],
            Some((before, layout)) => layout
                .iter()
                .map(|&path| before.paths.get(usize::from(path)).and_then(place_of))
                .collect(),
        };
        let mut has = vec![0; shares.len()];
        layout.iter().flatten().for_each(|&path| has[path] += 1);
        // Who is furthest below its share gets the next bucket that is free.
        let neediest = |has: &[usize]| {
            (0..shares.len()).max_by_key(|&path| {
                (
                    shares[path] as i64 - has[path] as i64,
                    std::cmp::Reverse(path),
                )
            })
        };
        for bucket in layout.iter_mut().filter(|bucket| bucket.is_none()) {
            if let Some(path) = neediest(&has) {
                *bucket = Some(path);
                has[path] += 1;
            }
        }
        if old.is_some_and(|(before, _)| self.wants_more_than(before)) {
            for bucket in layout.iter_mut().rev() {
                let (Some(rich), Some(poor)) = (*bucket, neediest(&has)) else {
                    continue;
                };
                if has[rich] > shares[rich] && has[poor] < shares[poor] {
                    *bucket = Some(poor);
                    (has[rich], has[poor]) = (has[rich] - 1, has[poor] + 1);
                }
            }
        }
        let mut places = [0; MAX_BUCKETS];
        places
            .iter_mut()
            .zip(layout)
            .for_each(|(place, path)| *place = path.unwrap_or(0) as u8);
        places
    }

    /// Whether a path is new, or its weight beside the others has changed; not so when paths only went.
    fn wants_more_than(&self, before: &Group) -> bool {
        let old = |path: &Path| {
            before
                .paths
                .iter()
                .find(|old| old.adjacency == path.adjacency && old.labels == path.labels)
        };
        let weights: Option<Vec<(u64, u64)>> = self
            .paths
            .iter()
            .map(|path| Some((u64::from(path.weight), u64::from(old(path)?.weight))))
            .collect();
        weights.is_none_or(|weights| {
            weights
                .windows(2)
                .any(|pair| pair[0].0 * pair[1].1 != pair[1].0 * pair[0].1)
        })
    }

    /// The adjacency of each bucket, when the paths for which `is_up` holds are up; their number is a
    /// power of two. One bucket to [`DROP`] when none is. `ends` are the adjacencies of the paths, in their order,
    /// with labels where they have some.
    pub(crate) fn buckets(&self, ends: &[u32], is_up: impl Fn(u32) -> bool) -> Vec<u32> {
        let shares = match &self.layout {
            None => self.shares(),
            Some(layout) => (0..self.paths.len())
                .map(|path| layout.iter().filter(|&&of| usize::from(of) == path).count())
                .collect(),
        };
        let mut live: Vec<(&Path, u32, u64)> = Vec::with_capacity(self.paths.len());
        let mut buckets: Vec<Option<u32>> = Vec::with_capacity(MAX_BUCKETS);
        for ((path, &end), &share) in self.paths.iter().zip(ends).zip(&shares) {
            let up = is_up(path.adjacency);
            buckets.extend(std::iter::repeat_n(up.then_some(end), share));
            if up {
                live.push((path, end, share as u64));
            }
        }
        if let Some(layout) = &self.layout {
            let end_of = |&path: &u8| {
                let (path, end) = (
                    self.paths.get(usize::from(path))?,
                    ends.get(usize::from(path))?,
                );
                is_up(path.adjacency).then_some(*end)
            };
            buckets = layout.iter().map(end_of).collect();
        }
        // A bucket without a path goes to the path that has the fewest for its weight.
        let mut adopt = || {
            let (_, end, share) = live.iter_mut().min_by(|(a, _, has_a), (b, _, has_b)| {
                ((*has_a + 1) * u64::from(b.weight)).cmp(&((*has_b + 1) * u64::from(a.weight)))
            })?;
            *share += 1;
            Some(*end)
        };
        let buckets: Vec<u32> = buckets
            .into_iter()
            .map(|bucket| bucket.or_else(&mut adopt).unwrap_or(DROP))
            .collect();
        match buckets.first() {
            Some(&only) if buckets.iter().all(|&bucket| bucket == only) => vec![only],
            _ => buckets,
        }
    }

    /// How many buckets each path gets, at least one: of [`MAX_BUCKETS`], so that those of a failed path
    /// can be shared out; only two paths, which have nothing to share out, make do with as many as
    /// their weights add up to, if that is a power of two.
    fn shares(&self) -> Vec<usize> {
        let total: u64 = self.paths.iter().map(|path| u64::from(path.weight)).sum();
        let few = self.paths.len() <= 2 && total.is_power_of_two() && total <= MAX_BUCKETS as u64;
        self.shares_of(if few { total as usize } else { MAX_BUCKETS })
    }

    /// How many of so many buckets each path gets.
    fn shares_of(&self, wanted: usize) -> Vec<usize> {
        let total: u64 = self.paths.iter().map(|path| u64::from(path.weight)).sum();
        let buckets = wanted as u64;
        let ideal = |weight: u32| u64::from(weight) * buckets;
        let mut shares: Vec<usize> = self
            .paths
            .iter()
            .map(|path| (ideal(path.weight) / total).max(1) as usize)
            .collect();
        loop {
            let given: usize = shares.iter().sum();
            if given == wanted {
                return shares;
            }
            // The path that is furthest below (or above) its ideal gets (or gives) one.
            let error = |n: &usize| {
                (shares[*n] as i64 * total as i64) - ideal(self.paths[*n].weight) as i64
            };
            let all = 0..shares.len();
            let chosen = if given < wanted {
                all.min_by_key(error)
            } else {
                all.filter(|&n| shares[n] > 1).max_by_key(error)
            };
            let Some(chosen) = chosen else { return shares };
            if given < wanted {
                shares[chosen] += 1;
            } else {
                shares[chosen] -= 1;
            }
        }
    }
}

/// Divides the weights by what they have in common: 2:4 is 1:2.
fn reduced(mut paths: Vec<Path>) -> Vec<Path> {
    let common = paths
        .iter()
        .map(|path| path.weight)
        .fold(0, greatest_common_divisor)
        .max(1);
    paths.iter_mut().for_each(|path| path.weight /= common);
    paths
}

fn greatest_common_divisor(a: u32, b: u32) -> u32 {
    if b == 0 {
        a
    } else {
        greatest_common_divisor(b, a % b)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn weighted(weights: &[u32]) -> Group {
        let path = |(n, &weight): (usize, &u32)| Path {
            weight,
            ..Path::to(n as u32 + 1)
        };
        Group::new(weights.iter().enumerate().map(path)).unwrap()
    }

    impl Group {
        /// The buckets of paths without labels.
        fn plain_buckets(&self, is_up: impl Fn(u32) -> bool) -> Vec<u32> {
            let ends: Vec<u32> = self.paths.iter().map(|path| path.adjacency).collect();
            self.buckets(&ends, is_up)
        }
    }

    fn shares(buckets: &[u32], adjacency: u32) -> usize {
        buckets
            .iter()
            .filter(|&&bucket| bucket == adjacency)
            .count()
    }

    #[test]
    fn equal_content_is_an_equal_group() {
        let one = Group::new([Path::to(2), Path::to(1)]).unwrap();
        assert_eq!(one, Group::new([Path::to(1), Path::to(2)]).unwrap());
        assert_eq!(
            one,
            Group::new([
                Path {
                    weight: 7,
                    ..Path::to(1)
                },
                Path {
                    weight: 7,
                    ..Path::to(2)
                }
            ])
            .unwrap()
        );
        let doubled = Group::new([Path::to(1), Path::to(2), Path::to(1)]).unwrap();
        assert_eq!(doubled, weighted(&[2, 1]));
        let labelled = Group::new([
            Path {
                labels: LabelStack::of(&[100]),
                ..Path::to(1)
            },
            Path {
                labels: LabelStack::of(&[200]),
                ..Path::to(1)
            },
        ]);
        assert_eq!(labelled.unwrap().paths().len(), 2);
    }

    #[test]
    fn what_is_no_group_is_refused() {
        assert_eq!(Group::new([]), Err(GroupError::Empty));
        assert_eq!(
            Group::new((0..65).map(Path::to)),
            Err(GroupError::TooManyPaths(65))
        );
        assert_eq!(
            Group::new([Path {
                weight: 0,
                ..Path::to(1)
            }]),
            Err(GroupError::NoWeight)
        );
    }

    #[test]
    fn buckets_follow_weights() {
        let all = |group: &Group| group.plain_buckets(|_| true);
        assert_eq!(all(&weighted(&[9])), [1]);
        assert_eq!(all(&weighted(&[1, 1])), [1, 2]);
        assert_eq!(all(&weighted(&[3, 1])), [1, 1, 1, 2]);
        let thirds = all(&weighted(&[1, 1, 1]));
        assert_eq!(
            (
                thirds.len(),
                shares(&thirds, 1),
                shares(&thirds, 2),
                shares(&thirds, 3)
            ),
            (64, 22, 21, 21)
        );
        let lopsided = all(&weighted(&[u32::MAX, 1]));
        assert_eq!((lopsided.len(), shares(&lopsided, 2)), (64, 1));
        let four = all(&weighted(&[1, 1, 1, 1]));
        assert_eq!(
            (four.len(), shares(&four, 1), shares(&four, 4)),
            (64, 16, 16)
        );
        let crowd = all(&weighted(&[1; 64]));
        assert!((1..=64).all(|n| shares(&crowd, n) == 1));
        let mut heavy = [1; 64];
        heavy[0] = 1000;
        assert_eq!(all(&weighted(&heavy)).len(), 64);
    }

    #[test]
    fn a_failure_moves_only_the_failed_paths_flows() {
        let group = weighted(&[1, 1, 1, 1]);
        let before = group.plain_buckets(|_| true);
        let group3 = weighted(&[2, 1, 1, 2, 1]);
        for (group, before) in [(&group, before), (&group3, group3.plain_buckets(|_| true))] {
            let after = group.plain_buckets(|adjacency| adjacency != 2);
            assert_eq!(after.len(), before.len());
            assert!(before.iter().zip(&after).all(|(&was, &is)| if was == 2 {
                is != 2 && is != DROP
            } else {
                is == was
            }));
        }
        let last = group.plain_buckets(|adjacency| adjacency == 4);
        assert_eq!(last, [4]);
        assert_eq!(group.plain_buckets(|_| false), [DROP]);
    }

    /// Paths to these adjacencies with these weights, in the place of another group.
    fn resilient(paths: &[(u32, u32)], before: Option<&Group>) -> Group {
        Group::resilient(
            paths.iter().map(|&(adjacency, weight)| Path {
                weight,
                ..Path::to(adjacency)
            }),
            before,
        )
        .unwrap()
    }

    #[test]
    fn a_path_that_is_taken_away_moves_only_its_own_flows() {
        for weights in [
            &[1, 1][..],
            &[1, 1, 1],
            &[5, 1, 3, 2],
            &[1; 7],
            &[1; 33],
            &[1; 64],
            &[200, 1, 1],
        ] {
            let paths: Vec<(u32, u32)> = weights
                .iter()
                .enumerate()
                .map(|(n, &weight)| (n as u32 + 1, weight))
                .collect();
            let mut group = resilient(&paths, None);
            let mut left = paths.clone();
            while left.len() > 1 {
                let (gone, _) = left.remove(left.len() / 2);
                let after = resilient(&left, Some(&group));
                let (was, is) = (group.plain_buckets(|_| true), after.plain_buckets(|_| true));
                let is = |place: usize| is.get(place).copied().unwrap_or(is[0]);
                assert!(was.iter().enumerate().all(|(place, &was)| if was == gone {
                    is(place) != gone
                } else {
                    is(place) == was
                }));
                assert!(
                    left.iter()
                        .all(|&(path, _)| (0..64).any(|place| is(place) == path)),
                    "{left:?}"
                );
                group = after;
            }
        }
        // The same without: flows of others move, too.
        let (was, is) = (
            weighted(&[1, 1, 1, 1]).plain_buckets(|_| true),
            weighted(&[1, 1, 1]).plain_buckets(|_| true),
        );
        assert!(was.iter().zip(&is).any(|(&was, &is)| was != 4 && was != is));
    }

    #[test]
    fn a_path_that_comes_takes_its_share_and_no_more() {
        let two = resilient(&[(1, 1), (2, 1)], None);
        assert_eq!(shares(&two.plain_buckets(|_| true), 1), 32);
        let three = resilient(&[(1, 1), (2, 1), (9, 2)], Some(&two));
        let (was, is) = (two.plain_buckets(|_| true), three.plain_buckets(|_| true));
        assert_eq!([1, 2, 9].map(|path| shares(&is, path)), [16, 16, 32]);
        assert!(was.iter().zip(&is).all(|(&was, &is)| is == was || is == 9));
        // The weights change: 1 gets more from each.
        let other = resilient(&[(1, 6), (2, 1), (9, 1)], Some(&three));
        assert_eq!(
            [1, 2, 9].map(|path| shares(&other.plain_buckets(|_| true), path)),
            [48, 8, 8]
        );
        // A link that goes down and comes back moves only what was on it.
        let down = other.plain_buckets(|path| path != 2);
        assert!(
            other
                .plain_buckets(|_| true)
                .iter()
                .zip(&down)
                .all(|(&was, &is)| was == is || was == 2)
        );
        assert_eq!(
            other,
            resilient(&[(9, 1), (2, 1), (1, 6)], Some(&other)),
            "nothing changes, nothing moves"
        );
    }

    #[test]
    fn flows_of_a_failed_path_are_spread_over_all_others() {
        let after = weighted(&[1, 1, 1]).plain_buckets(|adjacency| adjacency != 1);
        assert_eq!((shares(&after, 2), shares(&after, 3)), (32, 32));
        let after = weighted(&[1, 1, 1, 1]).plain_buckets(|adjacency| adjacency != 3);
        for (adjacency, near) in [(1, 21..=22), (2, 21..=22), (4, 21..=22)] {
            assert!(
                near.contains(&shares(&after, adjacency)),
                "{adjacency}: {after:?}"
            );
        }
        let after = weighted(&[4, 2, 1, 1]).plain_buckets(|adjacency| adjacency != 1);
        for (adjacency, near) in [(2, 30..=34), (3, 14..=18), (4, 14..=18)] {
            assert!(
                near.contains(&shares(&after, adjacency)),
                "{adjacency}: {after:?}"
            );
        }
    }
}
