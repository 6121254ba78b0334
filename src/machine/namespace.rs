//! Sockets of another network namespace. A socket belongs to the namespace in which it was made, so that a thread has
//! to be there only for that moment.

use crate::{Error, Result};
use nix::sched::{CloneFlags, setns};
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_that_is_not_there_is_named() {
        let error = within(Path::new("/there/is/no/namespace"), || Ok(())).expect_err("nowhere").to_string();
        assert!(error.contains("/there/is/no/namespace"), "{error}");
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
