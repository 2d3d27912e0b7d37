//! The nodes, run on single frames.
