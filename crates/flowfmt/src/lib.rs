//! flowfmt
