//! The network interfaces of this machine: their addresses and their properties.
//!
//! Properties are read by `ioctl` and not from `/sys`, which shows the interfaces of the network namespace
//! that mounted it and not those of the caller's.
//!
//! # Invariants
//!
//! * **LIST**: `getifaddrs` hands over a list of valid entries, which is read before it is freed, once. An
//!   address is as long as its family says.
//! * **REQUEST**: the kernel reads and writes the request and what it points to, both of them locals as large as
//!   the call is documented to need.
#![allow(unsafe_code)]

use std::ffi::CStr;
use std::mem::zeroed;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};
use std::os::fd::AsRawFd;
use std::ptr::null_mut;

/// `ETHTOOL_GSET`: the settings of the link.
const LINK: u32 = 0x01;
/// `ETHTOOL_GDRVINFO`: the driver.
const DRIVER: u32 = 0x03;
/// `ETHTOOL_GFLAGS`: offloads that have no call of their own.
const FLAGS: u32 = 0x25;
/// In those flags: large receive offload.
const LARGE_RECEIVE: u32 = 1 << 15;
/// Offloads and the calls that return whether they are on (`linux/ethtool.h`).
const OFFLOADS: [(&str, u32); 6] = [
    ("rx-checksum", 0x14),
    ("tx-checksum", 0x16),
    ("scatter-gather", 0x18),
    ("tcp-segmentation", 0x1e),
    ("generic-segmentation", 0x23),
    ("generic-receive", 0x2b),
];

/// Names and addresses of all interfaces that have an address; empty if the kernel refuses the list.
pub fn addresses() -> Vec<(String, IpAddr)> {
    let mut first: *mut libc::ifaddrs = null_mut();
    // SAFETY: LIST.
    if unsafe { libc::getifaddrs(&raw mut first) } != 0 {
        return Vec::new();
    }
    let mut found = Vec::new();
    let mut entry = first;
    while !entry.is_null() {
        // SAFETY: LIST.
        let (name, address, next) = unsafe {
            let entry = &*entry;
            (CStr::from_ptr(entry.ifa_name), parse_sockaddr(entry.ifa_addr), entry.ifa_next)
        };
        found.extend(address.map(|address| (name.to_string_lossy().into_owned(), address)));
        entry = next;
    }
    // SAFETY: LIST.
    unsafe { libc::freeifaddrs(first) };
    found
}

fn parse_sockaddr(of: *const libc::sockaddr) -> Option<IpAddr> {
    if of.is_null() {
        return None;
    }
    // SAFETY: LIST.
    unsafe {
        match i32::from((*of).sa_family) {
            libc::AF_INET => {
                let address = (*of.cast::<libc::sockaddr_in>()).sin_addr.s_addr;
                Some(IpAddr::V4(Ipv4Addr::from(u32::from_be(address))))
            }
            libc::AF_INET6 => {
                let address = (*of.cast::<libc::sockaddr_in6>()).sin6_addr.s6_addr;
                Some(IpAddr::V6(Ipv6Addr::from(address)))
            }
            _ => None,
        }
    }
}

/// Makes an interface carry packets, such as `lo` after boot.
///
/// # Errors
/// No interface has this name, or the kernel refuses (CAP_NET_ADMIN).
pub fn bring_up(name: &str) -> std::io::Result<()> {
    let query = InterfaceQuery::new()?;
    let mut request = interface_request(name).ok_or(std::io::ErrorKind::InvalidInput)?;
    request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as i16;
    query.run_ioctl(libc::SIOCSIFFLAGS, &mut request).ok_or_else(std::io::Error::last_os_error)
}

/// Reads properties of interfaces by their names.
pub struct InterfaceQuery(UdpSocket);

impl InterfaceQuery {
    /// Opens a socket for the `ioctl` calls; it sends and receives nothing.
    ///
    /// # Errors
    /// The kernel refuses a socket.
    pub fn new() -> std::io::Result<Self> {
        UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).map(Self)
    }

    /// The longest packet that the interface sends, bytes.
    pub fn mtu(&self, name: &str) -> Option<u32> {
        let mut request = interface_request(name)?;
        self.run_ioctl(libc::SIOCGIFMTU, &mut request)?;
        // SAFETY: REQUEST: the answer to this call is that member.
        u32::try_from(unsafe { request.ifr_ifru.ifru_mtu }).ok()
    }

    /// Speed of the link, Mb/s; `None` without a link, or without a speed.
    pub fn speed_mbps(&self, name: &str) -> Option<u32> {
        // struct ethtool_cmd: the low half of the speed is in the first two bytes of word 3, the high half in those of word 7.
        let mut settings = [0_u32; 11];
        settings[0] = LINK;
        self.query_ethtool(name, &mut settings)?;
        let [bytes_12, bytes_28] = [settings[3], settings[7]].map(u32::to_ne_bytes);
        let low = u16::from_ne_bytes([bytes_12[0], bytes_12[1]]);
        let high = u16::from_ne_bytes([bytes_28[0], bytes_28[1]]);
        let speed = u32::from(high) << 16 | u32::from(low);
        (speed != 0 && speed != u32::MAX && speed != u32::from(u16::MAX)).then_some(speed)
    }

    /// Name of the interface's driver.
    pub fn driver_name(&self, name: &str) -> Option<String> {
        // struct ethtool_drvinfo: the name is the 32 bytes behind the first word.
        let mut information = [0_u32; 49];
        information[0] = DRIVER;
        self.query_ethtool(name, &mut information)?;
        let bytes: Vec<u8> = information[1..9].iter().flat_map(|word| word.to_ne_bytes()).collect();
        let text = CStr::from_bytes_until_nul(&bytes).ok()?.to_string_lossy().into_owned();
        (!text.is_empty()).then_some(text)
    }

    /// Names of offloads and whether they are on. Offloads that the driver does not report are left out.
    pub fn offload_states(&self, name: &str) -> Vec<(&'static str, bool)> {
        let value = |call| {
            let mut answer = [call, 0];
            self.query_ethtool(name, &mut answer).map(|()| answer[1])
        };
        let simple = OFFLOADS.iter().filter_map(|&(offload, call)| Some((offload, value(call)? != 0)));
        let large = value(FLAGS).map(|flags| ("large-receive", flags & LARGE_RECEIVE != 0));
        simple.chain(large).collect()
    }

    fn query_ethtool(&self, name: &str, words: &mut [u32]) -> Option<()> {
        let mut request = interface_request(name)?;
        request.ifr_ifru.ifru_data = words.as_mut_ptr().cast();
        self.run_ioctl(libc::SIOCETHTOOL, &mut request)
    }

    fn run_ioctl(&self, call: libc::c_ulong, request: &mut libc::ifreq) -> Option<()> {
        // SAFETY: REQUEST.
        let answer = unsafe { libc::ioctl(self.0.as_raw_fd(), call as _, &raw mut *request) };
        (answer == 0).then_some(())
    }
}

/// A request about the interface of this name; `None` if the name is too long for an interface.
fn interface_request(name: &str) -> Option<libc::ifreq> {
    // SAFETY: REQUEST: plain numbers and a union of such, for which zero is a value.
    let mut request: libc::ifreq = unsafe { zeroed() };
    if name.len() >= request.ifr_name.len() {
        return None;
    }
    request.ifr_name.iter_mut().zip(name.bytes()).for_each(|(place, byte)| *place = byte as libc::c_char);
    Some(request)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::print_skipped;

    #[test]
    fn the_loopback_interface_has_its_address_and_a_size() {
        let local = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let Some((name, _)) = addresses().into_iter().find(|(_, address)| *address == local) else {
            print_skipped("the loopback interface has no address here");
            return;
        };
        let query = InterfaceQuery::new().unwrap();
        assert!(query.mtu(&name).unwrap() >= 1280);
        assert_eq!(query.speed_mbps(&name), None, "a loop has no speed");
    }

    #[test]
    fn an_unknown_interface_has_no_properties() {
        let query = InterfaceQuery::new().unwrap();
        for name in ["", "no-such-0", "a-name-that-is-longer-than-any"] {
            assert_eq!((query.mtu(name), query.driver_name(name)), (None, None), "{name}");
            assert!(query.offload_states(name).is_empty(), "{name}");
        }
    }
}
