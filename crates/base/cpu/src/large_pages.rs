//! Memory for tables that are read all over: on large pages from its first byte to its last.
//!
//! An allocator gives memory where it has some, so that of four megabytes as little as one large page may lie on
//! one; each line that is asked for then waits for an address to be translated first. This
//! begins at a large page, and is said to lie on such before it is touched.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

use crate::{HUGE_PAGE, prefer_hugepages};

/// A slice of its own on large pages; less than one page lies like any other memory.
pub struct LargePages<T: Copy> {
    start: NonNull<T>,
    len: usize,
    layout: Layout,
}

impl<T: Copy> LargePages<T> {
    /// So many times the same value. Ends the process, as a vector does, when there is no memory.
    ///
    /// # Panics
    /// When that is more than any memory has.
    #[must_use]
    pub fn filled(value: T, len: usize) -> LargePages<T> {
        let layout = layout::<T>(len).expect("less than all addresses");
        let start = if layout.size() == 0 {
            NonNull::dangling()
        } else {
            memory(layout).cast::<T>()
        };
        if layout.size() >= HUGE_PAGE {
            #[expect(
                unsafe_code,
                reason = "no value lies there yet, so it is shown as bytes that may be anything"
            )]
            // SAFETY: `memory` gave so many bytes; any bit pattern is right for `MaybeUninit`.
            let bytes = unsafe {
                std::slice::from_raw_parts(
                    start.as_ptr().cast::<std::mem::MaybeUninit<u8>>(),
                    layout.size(),
                )
            };
            prefer_hugepages(bytes, false);
        }
        for place in 0..len {
            #[expect(
                unsafe_code,
                reason = "memory without values can be written through pointers only"
            )]
            // SAFETY: `place` is below `len`, and the layout has room for `len` values at their alignment.
            unsafe {
                start.add(place).write(value);
            }
        }
        let filled = LargePages { start, len, layout };
        if layout.size() >= HUGE_PAGE {
            prefer_hugepages(&filled, true);
        }
        filled
    }
}

/// Room for so many values; whole large pages when they fill one.
fn layout<T>(len: usize) -> Option<Layout> {
    let layout = Layout::array::<T>(len).ok()?;
    if layout.size() < HUGE_PAGE {
        Some(layout)
    } else {
        Some(layout.align_to(HUGE_PAGE).ok()?.pad_to_align())
    }
}

fn memory(layout: Layout) -> NonNull<u8> {
    #[expect(
        unsafe_code,
        reason = "the allocator's own interface, the only one that takes an alignment"
    )]
    // SAFETY: the caller asks for more than no bytes.
    let start = unsafe { alloc(layout) };
    NonNull::new(start).unwrap_or_else(|| handle_alloc_error(layout))
}

impl<T: Copy> Deref for LargePages<T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        #[expect(unsafe_code, reason = "the slice is this value's own memory")]
        // SAFETY: `len` values were written from `start` on, which is aligned for them; they live as long as `self`.
        unsafe {
            std::slice::from_raw_parts(self.start.as_ptr(), self.len)
        }
    }
}

impl<T: Copy> DerefMut for LargePages<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [T] {
        #[expect(unsafe_code, reason = "the slice is this value's own memory")]
        // SAFETY: as for `deref`; `&mut self` is the only way to it.
        unsafe {
            std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len)
        }
    }
}

impl<T: Copy> Drop for LargePages<T> {
    fn drop(&mut self) {
        if self.layout.size() > 0 {
            #[expect(
                unsafe_code,
                reason = "memory from the allocator's own interface goes back by it"
            )]
            // SAFETY: `start` came from `alloc` with this layout, and nobody has it any more. Values that can be copied
            // need not be dropped.
            unsafe {
                dealloc(self.start.as_ptr().cast(), self.layout);
            }
        }
    }
}

#[expect(unsafe_code, reason = "it owns its memory as a vector does")]
// SAFETY: the memory belongs to this value alone.
unsafe impl<T: Copy + Send> Send for LargePages<T> {}
#[expect(unsafe_code, reason = "it owns its memory as a vector does")]
// SAFETY: `&LargePages` only gives `&[T]`.
unsafe impl<T: Copy + Sync> Sync for LargePages<T> {}

impl<T: Copy + std::fmt::Debug> std::fmt::Debug for LargePages<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LargePages")
            .field("len", &self.len)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_begins_at_a_page_and_keeps_what_is_written() {
        for len in [0, 1, 1000, HUGE_PAGE / 8, HUGE_PAGE / 4 + 1] {
            let mut memory = LargePages::filled(7u64, len);
            assert_eq!(memory.len(), len);
            assert!(memory.iter().all(|&value| value == 7));
            memory
                .iter_mut()
                .enumerate()
                .for_each(|(n, value)| *value = n as u64);
            assert!(
                memory
                    .iter()
                    .enumerate()
                    .all(|(n, &value)| value == n as u64)
            );
            assert!(
                size_of_val(&*memory) < HUGE_PAGE
                    || memory.as_ptr().addr().is_multiple_of(HUGE_PAGE)
            );
        }
    }

    #[test]
    fn values_lie_where_their_alignment_wants_them() {
        #[derive(Clone, Copy)]
        #[repr(align(64))]
        struct Line(u8);
        let lines = LargePages::filled(Line(3), 5);
        assert!(lines.as_ptr().addr().is_multiple_of(64) && lines.iter().all(|line| line.0 == 3));
    }
}
