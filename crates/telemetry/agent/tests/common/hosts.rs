//! Tests of names: in a process of their own, whose `/etc/hosts` is another file.

use std::process::{Command, Stdio};

/// Whether this machine allows namespaces; says so when it does not.
pub(crate) fn may_make_namespaces() -> bool {
    weir_netlink::lab::preflight()
        .inspect_err(|why| eprintln!("skipped: {why}"))
        .is_ok()
}

/// Runs a test in a process of its own, whose `/etc/hosts` is another file.
pub(crate) fn with_own_hosts(test: &str) {
    if !may_make_namespaces() {
        return;
    }
    let folder = std::env::temp_dir().join(format!("weir-hosts-{test}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let script = r#"mount --bind "$1/hosts" /etc/hosts && mount --bind "$1/nsswitch.conf" /etc/nsswitch.conf &&
        WEIR_HOSTS="$1/hosts" exec "$2" --ignored --exact "$3""#;
    std::fs::write(folder.join("hosts"), "127.0.0.1 localhost\n").unwrap();
    std::fs::write(folder.join("nsswitch.conf"), "hosts: files\n").unwrap();
    let program = std::env::current_exe().unwrap();
    let output = Command::new("unshare")
        .args(["--mount", "sh", "-c", script, "sh"])
        .args([folder.as_os_str(), program.as_os_str(), test.as_ref()])
        .stdin(Stdio::null())
        .output();
    std::fs::remove_dir_all(&folder).unwrap();
    let output = output.unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && said.contains("1 passed"),
        "{said}{}",
        String::from_utf8_lossy(&output.stderr)
    );
}
