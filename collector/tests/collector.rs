//! placeholder
#[test]
fn x() {}
