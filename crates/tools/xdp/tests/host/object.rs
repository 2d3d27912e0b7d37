//! The committed objects are what the sources compile to.

use std::io::Write;
use std::process::Command;

use weir_xdp::measure::GENERATOR;
use weir_xdp::programs::OBJECT;

#[test]
fn the_committed_objects_are_the_compiled_sources() {
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
    let folder = std::env::temp_dir().join(format!("weir-xdp-object-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/bpf/build");
    let status = Command::new(script).arg(&folder).status().unwrap();
    assert!(status.success());
    for (name, committed) in [("weir.o", OBJECT), ("generate.o", GENERATOR)] {
        let compiled = std::fs::read(folder.join(name)).unwrap();
        assert!(
            compiled == committed,
            "bpf/{name} is not what bpf/ compiles to: run bpf/build"
        );
    }
    std::fs::remove_dir_all(&folder).unwrap();
}
