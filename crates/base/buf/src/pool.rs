//! The pool: chunks, their free list, and lending them to drivers.
//!
//! The free list is a lock-free stack of chunk numbers. Its head carries a tag that changes with
//! every operation, so a whole chain can be taken with one compare-and-swap: if the head did not
//! change meanwhile, none of the links walked did either.
//!
//! Lending: a driver turns a packet into a [`Slot`] (`Pool::lend`), gives its address to a kernel or
//! a peer, and later redeems what comes back. Whatever comes back is checked: in range, and really
//! lent. So a driver needs no unsafe code to survive a peer that lies.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};

use crate::region::{Hugepages, Region};
use crate::{HEADROOM, Meta, Pkt, STRIDE};

/// How a pool is to be made.
#[derive(Clone, Copy, Debug)]
pub struct PoolConfig {
    /// Number of chunks; 64 to what fits 4 GiB.
    pub chunks: usize,
    /// Which pages to use.
    pub hugepages: Hugepages,
}

/// Why a pool could not be made.
#[derive(Debug)]
pub enum PoolError {
    /// Fewer than 64 chunks, or more than fit into one region of 4 GiB.
    Size {
        /// What was asked for.
        chunks: usize,
    },
    /// The system refused the memory.
    Memory {
        /// Bytes asked for.
        bytes: usize,
        /// What it said.
        source: io::Error,
    },
}

impl std::fmt::Display for PoolError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            PoolError::Size { chunks } => {
                write!(
                    f,
                    "a pool of {chunks} buffers cannot be made: 64 to {} are possible",
                    MOST_BYTES / STRIDE
                )
            }
            PoolError::Memory { bytes, source } => {
                write!(
                    f,
                    "no memory for the packet pool ({} MiB): {source}; ask for fewer buffers",
                    bytes >> 20
                )
            }
        }
    }
}

impl std::error::Error for PoolError {}

/// How much of a pool is where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolUse {
    /// All chunks.
    pub chunks: usize,
    /// Chunks in the shared free list.
    pub free: usize,
    /// Chunks that drivers have lent to a kernel or a peer.
    pub lent: usize,
}

const MOST_BYTES: usize = 4 << 30;
const OWNED: u8 = 0;
const LENT: u8 = 1;

/// A chunk's number in its pool, owned by the driver that lent it.
#[derive(Debug, PartialEq, Eq)]
pub struct Slot(pub(crate) u32);

impl Slot {
    /// The number.
    #[inline(always)]
    #[must_use]
    pub fn index(&self) -> u32 {
        self.0
    }
}

/// What the handles of one pool share. It never moves and is only freed when every chunk is home.
#[derive(Debug)]
pub(crate) struct Shared {
    region: Region,
    chunks: u32,
    /// Tag in the upper half, number of the top chunk plus one in the lower.
    head: AtomicU64,
    links: Box<[AtomicU32]>,
    lent: Box<[AtomicU8]>,
    metas: MetaArray,
}

/// Where the metadata of chunk 0 lies, and the last chunk's number.
#[derive(Clone, Copy)]
pub(crate) struct Numbering {
    first: usize,
    pub(crate) last: usize,
}

impl Numbering {
    /// The number of the chunk that `meta` belongs to; beyond the last one for another pool's.
    #[inline(always)]
    pub(crate) fn number_of(self, meta: std::ptr::NonNull<Meta>) -> usize {
        (meta.as_ptr() as usize).wrapping_sub(self.first) / size_of::<Meta>()
    }
}

/// The metadata array, reachable through chunk ownership only.
#[derive(Debug)]
pub(crate) struct MetaArray(std::ptr::NonNull<Meta>, usize);

#[expect(
    unsafe_code,
    reason = "the array is shared, its elements are owned through their chunk"
)]
mod meta_array {
    use super::{Meta, MetaArray, Shared};
    use std::ptr::NonNull;

    // SAFETY: the array is only a place; element `n` is touched solely by the owner of chunk `n`
    // (`Pkt` or the free list's single popper), and ownership passes with acquire and release.
    unsafe impl Send for MetaArray {}
    // SAFETY: as above.
    unsafe impl Sync for MetaArray {}

    impl MetaArray {
        pub(super) fn new(count: usize) -> MetaArray {
            let boxed: Box<[Meta]> = (0..count).map(|_| Meta::default()).collect();
            let first = Box::into_raw(boxed).cast::<Meta>();
            MetaArray(NonNull::new(first).unwrap_or(NonNull::dangling()), count)
        }

        /// The address of element `n`; `n` is below the count.
        #[inline(always)]
        pub(super) fn at(&self, n: usize) -> NonNull<Meta> {
            debug_assert!(n < self.1);
            // SAFETY: every caller passes the number of a chunk of this pool, and there is one
            // element for each.
            unsafe { self.0.add(n) }
        }

        /// Writes the owner into every element; called once, before any chunk is handed out.
        pub(super) fn own(&self, shared: &'static Shared) {
            for n in 0..self.1 {
                // SAFETY: no chunk is owned by anybody yet, so nobody else looks at the elements.
                unsafe { (*self.0.as_ptr().add(n)).pool = Some(shared) };
            }
        }
    }

    impl Drop for MetaArray {
        fn drop(&mut self) {
            // SAFETY: pointer and length are those of the boxed slice that `new` took apart.
            drop(unsafe {
                Box::from_raw(std::ptr::slice_from_raw_parts_mut(self.0.as_ptr(), self.1))
            });
        }
    }
}

impl Shared {
    #[inline(always)]
    pub(crate) fn meta(&self, chunk: u32) -> std::ptr::NonNull<Meta> {
        self.metas.at(chunk as usize)
    }

    /// The first byte of a chunk.
    #[inline(always)]
    #[expect(unsafe_code, reason = "address arithmetic inside the region")]
    pub(crate) fn chunk(&self, chunk: u32) -> std::ptr::NonNull<u8> {
        debug_assert!(chunk < self.chunks);
        // SAFETY: `chunk` is below the pool's count, and the region holds count × STRIDE bytes.
        unsafe { self.region.base().add(chunk as usize * STRIDE) }
    }

    /// The chunk that `meta` belongs to, when it is one of this pool's.
    #[inline(always)]
    pub(crate) fn chunk_of(&self, meta: std::ptr::NonNull<Meta>) -> Option<u32> {
        let numbering = self.numbering();
        let chunk = numbering.number_of(meta);
        if chunk <= numbering.last {
            Some(chunk as u32)
        } else {
            None
        }
    }

    /// How chunks are numbered, by value, for loops over many packets.
    #[inline(always)]
    pub(crate) fn numbering(&self) -> Numbering {
        Numbering {
            first: self.metas.0.as_ptr() as usize,
            last: self.chunks as usize - 1,
        }
    }

    /// Puts a chain of chunks back. `chunks` are owned by the caller until here.
    pub(crate) fn release(&self, chunks: &[u32]) {
        let (Some(&first), Some(&last)) = (chunks.first(), chunks.last()) else {
            return;
        };
        for pair in chunks.windows(2) {
            if let Some(link) = self.links.get(pair[0] as usize) {
                link.store(pair[1] + 1, Ordering::Relaxed);
            }
        }
        let Some(tail) = self.links.get(last as usize) else {
            return;
        };
        let mut head = self.head.load(Ordering::Relaxed);
        loop {
            tail.store(head as u32, Ordering::Relaxed);
            let next = (head & !0xffff_ffff).wrapping_add(1 << 32) | u64::from(first + 1);
            match self
                .head
                .compare_exchange_weak(head, next, Ordering::Release, Ordering::Relaxed)
            {
                Ok(_) => return,
                Err(now) => head = now,
            }
        }
    }

    /// Takes up to `most` chunks; the caller owns what it gets.
    pub(crate) fn acquire(&self, most: usize, mut take: impl FnMut(u32)) -> usize {
        let mut got = [0u32; 256];
        let most = most.min(got.len());
        let mut head = self.head.load(Ordering::Acquire);
        loop {
            let (mut next, mut count) = (head as u32, 0);
            while next != 0 && count < most {
                // A link read while another thread changes the list may be stale; then the tag has
                // changed and the exchange below fails. `get` keeps a stale number harmless.
                let Some(link) = self.links.get(next as usize - 1) else {
                    break;
                };
                got[count] = next - 1;
                count += 1;
                next = link.load(Ordering::Relaxed);
            }
            if count == 0 {
                return 0;
            }
            let new = (head & !0xffff_ffff).wrapping_add(1 << 32) | u64::from(next);
            match self
                .head
                .compare_exchange_weak(head, new, Ordering::Acquire, Ordering::Acquire)
            {
                Ok(_) => {
                    got[..count].iter().for_each(|&chunk| take(chunk));
                    return count;
                }
                Err(now) => head = now,
            }
        }
    }

    /// Chunks in the free list; exact only while nobody else uses it.
    fn free(&self) -> usize {
        let (mut next, mut count) = (self.head.load(Ordering::Acquire) as u32, 0);
        while next != 0 && count < self.chunks as usize {
            count += 1;
            next = self
                .links
                .get(next as usize - 1)
                .map_or(0, |link| link.load(Ordering::Acquire));
        }
        count
    }
}

/// The last handle frees the memory, if every chunk is home.
#[derive(Debug)]
struct Handle(&'static Shared);

impl Drop for Handle {
    fn drop(&mut self) {
        if self.0.free() != self.0.chunks as usize {
            // Packets or lent chunks are still out there: leave the memory where it is.
            return;
        }
        #[expect(unsafe_code, reason = "the counterpart of Box::leak")]
        // SAFETY: `Shared` was leaked by `Pool::new`, this is the last handle (caches hold one too),
        // and with every chunk in the free list there is neither a `Pkt` nor a lent slot.
        drop(unsafe { Box::from_raw(std::ptr::from_ref(self.0).cast_mut()) });
    }
}

/// Packet memory. Cloning gives another handle to the same pool.
#[derive(Clone, Debug)]
pub struct Pool(Arc<Handle>);

impl Pool {
    /// Makes a pool.
    ///
    /// # Errors
    /// When the size is impossible or the system has no memory for it.
    pub fn new(config: PoolConfig) -> Result<Pool, PoolError> {
        let chunks = config.chunks;
        let bytes = chunks.saturating_mul(STRIDE);
        if chunks < 64 || bytes > MOST_BYTES {
            return Err(PoolError::Size { chunks });
        }
        let region = Region::new(bytes, config.hugepages)
            .map_err(|source| PoolError::Memory { bytes, source })?;
        let shared: &'static Shared = Box::leak(Box::new(Shared {
            region,
            chunks: chunks as u32,
            head: AtomicU64::new(0),
            links: (0..chunks).map(|_| AtomicU32::new(0)).collect(),
            lent: (0..chunks).map(|_| AtomicU8::new(OWNED)).collect(),
            metas: MetaArray::new(chunks),
        }));
        shared.metas.own(shared);
        let all: Vec<u32> = (0..chunks as u32).collect();
        shared.release(&all);
        Ok(Pool(Arc::new(Handle(shared))))
    }

    #[inline(always)]
    pub(crate) fn shared(&self) -> &'static Shared {
        self.0.0
    }

    /// One packet straight from the shared list: for cold threads and tests. Workers use a
    /// [`crate::PktCache`].
    #[must_use]
    pub fn alloc(&self) -> Option<Pkt> {
        let mut packet = None;
        self.shared()
            .acquire(1, |chunk| packet = Some(Pkt::fresh(self.shared(), chunk)));
        packet
    }

    /// The memory file, to give to a kernel or a peer.
    #[must_use]
    pub fn file(&self) -> BorrowedFd<'_> {
        self.shared().region.file().as_fd()
    }

    /// Where the region lies, for a driver that registers it with a kernel: address and length.
    #[must_use]
    pub fn area(&self) -> (*mut u8, usize) {
        (
            self.shared().region.base().as_ptr(),
            self.shared().chunks as usize * STRIDE,
        )
    }

    /// Bytes that were really mapped.
    #[must_use]
    pub fn mapped_bytes(&self) -> usize {
        self.shared().region.bytes()
    }

    /// Whether the region lies on hugepages.
    #[must_use]
    pub fn on_hugepages(&self) -> bool {
        self.shared().region.is_huge()
    }

    /// How many chunks there are.
    #[must_use]
    pub fn chunks(&self) -> usize {
        self.shared().chunks as usize
    }

    /// How much is where. Exact while nobody allocates or frees; else a good guess.
    #[must_use]
    pub fn usage(&self) -> PoolUse {
        PoolUse {
            chunks: self.chunks(),
            free: self.shared().free(),
            lent: self
                .shared()
                .lent
                .iter()
                .filter(|state| state.load(Ordering::Relaxed) == LENT)
                .count(),
        }
    }

    /// Whether `packet` lies in this pool.
    #[inline]
    #[must_use]
    pub fn holds(&self, packet: &Pkt) -> bool {
        self.shared().chunk_of(packet.meta_address()).is_some()
    }

    /// Gives up a packet of this pool for its chunk's number and the offset of its first byte in the
    /// region, which a driver may hand to a kernel. The rest of a chain is not lent: lend the
    /// segments one by one (`Pkt::split_first`).
    ///
    /// # Errors
    /// A packet of another pool, or one that is chained, comes back unchanged.
    #[inline]
    pub fn lend(&self, packet: Pkt) -> Result<(Slot, usize), Pkt> {
        let shared = self.shared();
        if packet.is_chained() {
            return Err(packet);
        }
        let Some(chunk) = shared.chunk_of(packet.meta_address()) else {
            return Err(packet);
        };
        let offset = chunk as usize * STRIDE + packet.headroom();
        if let Some(state) = shared.lent.get(chunk as usize) {
            state.store(LENT, Ordering::Release);
        }
        packet.forget();
        Ok((Slot(chunk), offset))
    }

    /// Takes back the chunk that holds byte `offset` of the region, as a packet whose data starts at
    /// that byte and is `len` long. `None` when the offset lies outside, the chunk was not lent, or
    /// the bytes would leave it: what a kernel or a peer says is not believed.
    #[inline]
    #[must_use]
    pub fn redeem(&self, offset: usize, len: usize) -> Option<Pkt> {
        let shared = self.shared();
        let (chunk, head) = (offset / STRIDE, offset % STRIDE);
        let state = shared.lent.get(chunk)?;
        if head + len > STRIDE {
            return None;
        }
        state
            .compare_exchange(LENT, OWNED, Ordering::Acquire, Ordering::Relaxed)
            .ok()?;
        let mut packet = Pkt::fresh(shared, chunk as u32);
        packet.place(head, len);
        Some(packet)
    }

    /// Takes back a slot that the driver still holds itself; the data is empty.
    #[must_use]
    pub fn redeem_slot(&self, slot: Slot) -> Option<Pkt> {
        self.redeem(slot.0 as usize * STRIDE + HEADROOM, 0)
    }
}
