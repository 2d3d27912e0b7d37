//! How many ICMP messages a worker may send: a budget for each kind, so that none uses up another's
//! (RFC 1812 section 4.3.2.8, RFC 4443 section 2.4 f).

/// How many messages of each kind a worker may send.
#[derive(Clone, Copy, Debug)]
pub struct IcmpLimit {
    /// Messages a second.
    pub rate: u32,
    /// Messages at once.
    pub burst: u32,
}

impl Default for IcmpLimit {
    fn default() -> IcmpLimit {
        IcmpLimit {
            rate: 1000,
            burst: 100,
        }
    }
}

/// A budget that fills with time.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    /// Nanoseconds' worth of messages saved up.
    saved: u64,
    last: u64,
}

/// The budgets of `KINDS` kinds of messages.
#[derive(Debug)]
pub(crate) struct Budgets<const KINDS: usize> {
    buckets: [Bucket; KINDS],
    /// Nanoseconds a message.
    price: u64,
    most: u64,
}

impl<const KINDS: usize> Budgets<KINDS> {
    pub(crate) fn new(limit: IcmpLimit) -> Budgets<KINDS> {
        let price = 1_000_000_000 / u64::from(limit.rate.max(1));
        let most = price * u64::from(limit.burst.max(1));
        Budgets {
            buckets: [Bucket {
                saved: most,
                last: 0,
            }; KINDS],
            price,
            most,
        }
    }

    /// Whether a message of this kind may be sent now; if so, it is paid for.
    pub(crate) fn may_send(&mut self, kind: usize, now: u64) -> bool {
        let Some(bucket) = self.buckets.get_mut(kind) else {
            return false;
        };
        bucket.saved = bucket
            .saved
            .saturating_add(now.saturating_sub(bucket.last))
            .min(self.most);
        bucket.last = now;
        if bucket.saved < self.price {
            return false;
        }
        bucket.saved -= self.price;
        true
    }
}
