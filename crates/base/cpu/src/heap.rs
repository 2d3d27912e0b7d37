//! Gives memory of the heap back to the system.
//!
//! The C library's allocator keeps freed memory below any block that is still in use. A request that took a gigabyte for a
//! moment would keep it for good.

/// Gives free pages of all arenas back. Takes the arenas' locks and some milliseconds, so it is for slow threads.
pub fn give_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        #[expect(unsafe_code, reason = "the C library has no safe interface")]
        // SAFETY: malloc_trim(3) is thread-safe, takes a number, and releases only what no block uses.
        unsafe {
            libc::malloc_trim(0);
        }
    }
}

#[cfg(all(test, target_os = "linux", target_env = "gnu"))]
mod tests {
    const BLOCKS: usize = 64 << 10;
    const BYTES: usize = 1 << 10;

    /// Resident bytes of this process.
    fn resident() -> usize {
        let text = std::fs::read_to_string("/proc/self/statm").unwrap();
        let pages: usize = text.split(' ').nth(1).unwrap().parse().unwrap();
        pages * 4096
    }

    #[test]
    fn free_memory_below_a_block_in_use_is_given_back() {
        let mut blocks: Vec<Vec<u8>> = (0..BLOCKS).map(|_| vec![1; BYTES]).collect();
        let last = blocks.pop();
        drop(blocks);
        let before = resident();
        super::give_back();
        let after = resident();
        let least = BLOCKS * BYTES / 2;
        assert!(before >= after + least, "{before} and {after} bytes");
        drop(last);
    }
}
