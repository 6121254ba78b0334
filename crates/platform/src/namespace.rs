//! Network namespaces: making sockets in another, making one of our own, and the program `ip`, which makes interfaces.
//!
//! A socket belongs to the namespace in which it was made, so that a thread has to be there only for that moment.

use super::process::tool;
use crate::error::{Error, Result};
use nix::errno::Errno;
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, setns, unshare};
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::Stdio;

/// Runs `make` with this thread in the network namespace of this file, and returns the thread to its own.
///
/// # Errors
/// The file cannot be opened, or the thread may not enter (CAP_SYS_ADMIN). Also if the thread cannot return: its next
/// actions would happen in the other namespace.
pub fn run_in_namespace<T>(namespace: &Path, make: impl FnOnce() -> Result<T>) -> Result<T> {
    let open =
        |path: &Path| File::open(path).map_err(|e| Error::file(path, "opening a network namespace", e));
    let own = open(Path::new("/proc/thread-self/ns/net"))?;
    let other = open(namespace)?;
    let enter = |file: &File, call: &str| {
        setns(file, CloneFlags::CLONE_NEWNET).map_err(|e| Error::from_case_errno(call, e))
    };
    enter(&other, "setns to another network namespace (root may)")?;
    let made = make();
    enter(&own, "setns back to the own network namespace")?;
    made
}

/// Runs `make` in a new network namespace ([`enter_new_namespace`]), in a thread of its own. Handles that it opens keep referring
/// to that namespace, which exists as long as the returned file is open.
///
/// # Errors
/// No namespace may be made (root may), or an error of `make`.
pub fn run_in_new_namespace<T: Send>(make: impl FnOnce() -> Result<T> + Send) -> Result<(T, File)> {
    let there = || {
        enter_new_namespace()?;
        let path = "/proc/thread-self/ns/net";
        let own = File::open(path).map_err(|e| Error::file(path, "opening a network namespace", e))?;
        Ok((make()?, own))
    };
    let refused = |cause| Error::Kernel { call: "pthread_create in a network namespace".into(), cause };
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().spawn_scoped(scope, there).map_err(refused)?;
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Runs commands of `ip` (iproute2), one a line, in the network namespace of this thread.
///
/// # Errors
/// [`Error::Missing`] if there is no such program, or a command fails.
pub fn run_ip_commands(commands: &str) -> Result<()> {
    let missing =
        |e| Error::Missing(format!("interfaces are made by `ip` (iproute2), which fails here: {e}"));
    let mut command = tool::command("ip");
    command.args(["-batch", "-"]).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(missing)?;
    // If `ip` ends before it has read everything, its exit status says so.
    let _ = child.stdin.take().map(|mut input| input.write_all(commands.as_bytes()));
    let output = child.wait_with_output().map_err(missing)?;
    if output.status.success() {
        return Ok(());
    }
    let first = commands.lines().next().unwrap_or_default();
    Err(Error::Missing(format!("`ip {first}` failed here {}", tool::failure_message(&output))))
}

/// Makes pairs of virtual interfaces in the network namespace of this thread.
///
/// # Errors
/// As of [`run_ip_commands`].
pub fn make_veth_pairs(count: usize) -> Result<()> {
    let line = |pair| {
        format!("link add {} type veth peer name {}-there\n", near_end_name(pair), near_end_name(pair))
    };
    run_ip_commands(&(0..count).map(line).collect::<String>())
}

/// The name of the near end of a pair that [`make_veth_pairs`] has made. Pairs are counted from 0.
pub fn near_end_name(pair: usize) -> String {
    format!("pair-{pair}")
}

/// Moves this thread into a new network namespace, with a `/sys` that shows its interfaces. There is no way back, so
/// this is for a child, or a thread that ends there.
///
/// # Errors
/// The process may not make a namespace (root may).
pub fn enter_new_namespace() -> Result<()> {
    let refused = |call: &str| {
        let call = call.to_owned();
        move |e| Error::from_case_errno(call, e)
    };
    unshare(CloneFlags::CLONE_NEWNET | CloneFlags::CLONE_NEWNS)
        .map_err(refused("unshare of the network and of mounts (root may)"))?;
    const NOTHING: Option<&str> = None;
    mount(NOTHING, "/", NOTHING, MsFlags::MS_REC | MsFlags::MS_PRIVATE, NOTHING)
        .map_err(refused("mount of everything as private"))?;
    mount(Some("sysfs"), "/sys", Some("sysfs"), MsFlags::empty(), NOTHING).map_err(|errno| match errno {
        Errno::ENOENT => Error::file("/sys", "mounting", errno.into()),
        _ => refused("mount of sysfs")(errno),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::print_skipped;

    #[test]
    fn a_namespace_that_is_not_there_is_named() {
        let error = run_in_namespace(Path::new("/there/is/no/namespace"), || Ok(()))
            .expect_err("nowhere")
            .to_string();
        assert!(error.contains("/there/is/no/namespace"), "{error}");
    }

    #[test]
    fn a_new_namespace_has_a_loopback_interface_and_nothing_else() {
        crate::testing::run_in_child_process(|| {
            if enter_new_namespace().is_ok() {
                let names = std::fs::read_dir("/sys/class/net").expect("a list").flatten();
                let names: Vec<_> =
                    names.map(|entry| entry.file_name()).filter(|name| name != "bonding_masters").collect();
                // A kernel may create interfaces of tunnels in each namespace.
                assert!(names.iter().any(|name| name == "lo"), "{names:?}");
                assert!(!names.iter().any(|name| name == "eth0"), "{names:?}");
            }
        });
    }

    #[test]
    fn interfaces_of_a_new_namespace_are_not_here_but_their_open_files_work() {
        let read = || {
            make_veth_pairs(3)?;
            let path = format!("/sys/class/net/{}/statistics/tx_bytes", near_end_name(2));
            File::open(&path).map_err(|e| Error::file(&path, "opening", e))
        };
        match run_in_new_namespace(read) {
            Ok((file, living)) => {
                assert_eq!(std::io::read_to_string(&file).expect("a number").trim(), "0");
                assert!(!Path::new("/sys/class/net").join(near_end_name(2)).exists(), "it is not here");
                drop(living);
            }
            Err(error) => print_skipped(&error.to_string()),
        }
    }

    #[test]
    fn a_thread_returns_to_its_own_namespace() {
        let own = || std::fs::read_link("/proc/thread-self/ns/net").expect("a namespace");
        let before = own();
        match run_in_namespace(Path::new("/proc/thread-self/ns/net"), || Ok(own())) {
            Ok(there) => assert_eq!(there, before),
            Err(error) => print_skipped(&error.to_string()),
        }
        assert_eq!(own(), before);
    }
}
