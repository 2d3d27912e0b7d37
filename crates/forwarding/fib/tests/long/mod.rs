//! How often something is tried: in `make test` so often that it ends soon, in `make test-long` millions of times in all.

/// So often, or so many times as often in the long runs.
pub(crate) fn times(usual: u32, long: u32) -> u32 {
    if std::env::var_os("WEIR_LONG").is_some() {
        usual * long
    } else {
        usual
    }
}
