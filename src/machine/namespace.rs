//! Sockets of another network namespace. A socket belongs to the namespace in which it was made, so that a thread has
//! to be there only for that moment.

use crate::{Error, Result};
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, setns, unshare};
use std::fs::File;
use std::path::Path;

/// Runs `make` with this thread in the network namespace that the file stands for, and comes back.
///
/// # Errors
/// The file cannot be opened, or the thread may not go there (CAP_SYS_ADMIN). Not coming back is an error of its
/// own: what the thread did next would be done elsewhere.
pub fn within<T>(namespace: &Path, make: impl FnOnce() -> Result<T>) -> Result<T> {
    let open =
        |path: &Path| File::open(path).map_err(|e| Error::file(path, "opening a network namespace", e));
    let own = open(Path::new("/proc/thread-self/ns/net"))?;
    let other = open(namespace)?;
    let enter = |file: &File, call: &str| {
        setns(file, CloneFlags::CLONE_NEWNET).map_err(|e| Error::refused_to_case(call, e))
    };
    enter(&other, "setns to another network namespace (root may)")?;
    let made = make();
    enter(&own, "setns back to the own network namespace")?;
    made
}

/// Takes this process, which must have one thread, into a network namespace of its own, with a `/sys` that shows its
/// interfaces. For a child that ends there: nobody comes back.
///
/// # Errors
/// It may not (root may).
pub fn go_apart() -> Result<()> {
    let refused = |call: &str| {
        let call = call.to_owned();
        move |e| Error::refused_to_case(call, e)
    };
    unshare(CloneFlags::CLONE_NEWNET | CloneFlags::CLONE_NEWNS)
        .map_err(refused("unshare of the network and of mounts (root may)"))?;
    const NOTHING: Option<&str> = None;
    mount(NOTHING, "/", NOTHING, MsFlags::MS_REC | MsFlags::MS_PRIVATE, NOTHING)
        .map_err(refused("mount of everything as private"))?;
    mount(Some("sysfs"), "/sys", Some("sysfs"), MsFlags::empty(), NOTHING).map_err(refused("mount of sysfs"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_that_is_not_there_is_named() {
        let error = within(Path::new("/there/is/no/namespace"), || Ok(())).expect_err("nowhere").to_string();
        assert!(error.contains("/there/is/no/namespace"), "{error}");
    }

    #[test]
    fn whoever_goes_apart_finds_a_loopback_interface_and_nothing_else() {
        let child = crate::machine::child::Child::start(|| {
            if go_apart().is_ok() {
                let names = std::fs::read_dir("/sys/class/net").expect("a list").flatten();
                let names: Vec<_> =
                    names.map(|entry| entry.file_name()).filter(|name| name != "bonding_masters").collect();
                // A kernel may give each namespace ends of its tunnels.
                assert!(names.iter().any(|name| name == "lo"), "{names:?}");
                assert!(!names.iter().any(|name| name == "eth0"), "{names:?}");
            }
        });
        child
            .expect("forked")
            .end_within(std::time::Duration::from_secs(20))
            .expect("it found what it should");
    }

    #[test]
    fn a_thread_comes_back_to_where_it_was() {
        let own = || std::fs::read_link("/proc/thread-self/ns/net").expect("a namespace");
        let before = own();
        match within(Path::new("/proc/thread-self/ns/net"), || Ok(own())) {
            Ok(there) => assert_eq!(there, before),
            Err(error) => println!("skipped: {error}"),
        }
        assert_eq!(own(), before);
    }
}
