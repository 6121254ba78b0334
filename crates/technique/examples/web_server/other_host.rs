//! A host for the clients of the server, without a second machine.

use nix::sched::{CloneFlags, setns};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use syscost_platform::error::{Error, Result};
use syscost_platform::namespace::{run_in_new_namespace, run_ip_commands};

/// A network namespace that stands for another host. A pair of virtual interfaces connects it to this host. It exists until
/// this value is dropped.
#[derive(Debug)]
pub struct OtherHost {
    namespace: File,
}

impl OtherHost {
    /// The interface of this host at the wire, and its address.
    pub const NEAR: (&str, &str) = ("near", "10.77.0.1");
    const FAR: (&str, &str) = ("far", "10.77.0.2");

    /// Makes the other host. The near interface is put into the network namespace of this process's first thread, which
    /// should have a namespace of its own.
    ///
    /// # Errors
    /// The errors of [`run_in_new_namespace`] and [`run_ip_commands`].
    pub fn connect() -> Result<Self> {
        let ((near, near_ip), (far, far_ip), pid) = (Self::NEAR, Self::FAR, std::process::id());
        let far_end = format!(
            "link add {far} type veth peer name {near} netns {pid}\naddress add {far_ip}/24 dev {far}\nlink set {far} up\n"
        );
        let ((), namespace) = run_in_new_namespace(|| run_ip_commands(&far_end))?;
        run_ip_commands(&format!("address add {near_ip}/24 dev {near}\nlink set {near} up\n"))?;
        Ok(Self { namespace })
    }

    /// Moves this thread to the other host, permanently.
    ///
    /// # Errors
    /// An error where the thread may not enter (root may).
    pub fn enter(&self) -> Result<()> {
        let refused = |e| Error::from_case_errno("setns to another network namespace (root may)", e);
        setns(&self.namespace, CloneFlags::CLONE_NEWNET).map_err(refused)
    }

    /// The path of the namespace's file, for another program (`nsenter --net=FILE`).
    pub fn namespace_path(&self) -> PathBuf {
        format!("/proc/{}/fd/{}", std::process::id(), self.namespace.as_raw_fd()).into()
    }
}
