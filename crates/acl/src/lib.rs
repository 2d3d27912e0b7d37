//! Access lists: which rule of a list is the first that a packet matches.

#![forbid(unsafe_code)]
