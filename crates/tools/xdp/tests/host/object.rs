//! The committed object is what the sources compile to.

use std::io::Write;
use std::process::Command;

use weir_xdp::programs::OBJECT;

#[test]
fn the_committed_object_is_the_compiled_source() {
    let installed = |program: &str| {
        Command::new(program)
            .arg("--version")
            .output()
            .is_ok_and(|output| output.status.success())
    };
    if !installed("clang-14") || !installed("llvm-strip-14") {
        let _ = writeln!(
            std::io::stderr(),
            "skipped: the XDP programs are not compiled again without clang-14 and llvm-14 (apt install clang-14 llvm-14)"
        );
        return;
    }
    let object = std::env::temp_dir().join(format!("weir-xdp-{}.o", std::process::id()));
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/bpf/build");
    let status = Command::new(script).arg(&object).status().unwrap();
    assert!(status.success());
    let compiled = std::fs::read(&object).unwrap();
    std::fs::remove_file(&object).unwrap();
    assert!(
        compiled == OBJECT,
        "bpf/weir.o is not what bpf/ compiles to: run bpf/build"
    );
}
