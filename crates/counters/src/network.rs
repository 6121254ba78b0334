//! Counters of the network interfaces of this network namespace.

use super::kernel_file;
use super::text::parse_number;
use super::{Fault, Method, Reading};
use std::fs::File;

/// Counters of one interface. It holds four descriptors. After the interface was removed every reading is [`Fault::Gone`],
/// even if another interface gets its name.
///
/// A datagram of 32 bytes counts as 74 bytes on an Ethernet device and as 60 on `lo`, which does not count the Ethernet
/// header.
#[derive(Debug)]
pub struct Interface {
    name: String,
    files: [File; 4],
}

/// Space for a 64-bit number and the end of its line, bytes.
const DIGITS: usize = 24;

/// Names of the counters' files, in the order of [`Counter`].
const COUNTED: [&str; 4] = ["tx_bytes", "tx_packets", "rx_bytes", "rx_packets"];

/// The counters of an interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Link {
    /// Bytes sent, headers included.
    pub bytes_sent: u64,
    /// Packets sent.
    pub packets_sent: u64,
    /// Bytes received, headers included.
    pub bytes_received: u64,
    /// Packets received.
    pub packets_received: u64,
}

impl Interface {
    /// Opens the interface that has this name now.
    ///
    /// # Errors
    /// [`Fault::Gone`] where there is no such interface.
    pub fn open(name: &str) -> Result<Self, Fault> {
        let gone = |fault: Fault| match fault {
            Fault::Gone(_) => Fault::Gone(interface_label(name)),
            other => other,
        };
        let open = |counter: &str| open_counter_file(name, counter).map_err(gone);
        let [sent, packets_sent, received, packets_received] = COUNTED.map(open);
        let files = [sent?, packets_sent?, received?, packets_received?];
        Ok(Self { name: name.into(), files })
    }

    /// The name by which it was opened.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Bytes sent, headers included.
    ///
    /// # Errors
    /// [`Fault::Gone`] once the interface was removed.
    #[inline]
    pub fn bytes_sent(&self) -> Result<Reading<u64>, Fault> {
        self.read_counter(Counter::BytesSent)
    }

    /// The number of packets sent.
    ///
    /// # Errors
    /// [`Fault::Gone`] once the interface was removed.
    #[inline]
    pub fn packets_sent(&self) -> Result<Reading<u64>, Fault> {
        self.read_counter(Counter::PacketsSent)
    }

    /// Bytes received, headers included.
    ///
    /// # Errors
    /// [`Fault::Gone`] once the interface was removed.
    #[inline]
    pub fn bytes_received(&self) -> Result<Reading<u64>, Fault> {
        self.read_counter(Counter::BytesReceived)
    }

    /// The number of packets received.
    ///
    /// # Errors
    /// [`Fault::Gone`] once the interface was removed.
    #[inline]
    pub fn packets_received(&self) -> Result<Reading<u64>, Fault> {
        self.read_counter(Counter::PacketsReceived)
    }

    /// All counters, read one after another.
    ///
    /// # Errors
    /// [`Fault::Gone`] once the interface was removed.
    pub fn all_counters(&self) -> Result<Reading<Link>, Fault> {
        let link = Link {
            bytes_sent: self.counter_value(Counter::BytesSent)?,
            packets_sent: self.counter_value(Counter::PacketsSent)?,
            bytes_received: self.counter_value(Counter::BytesReceived)?,
            packets_received: self.counter_value(Counter::PacketsReceived)?,
        };
        let step = Link { bytes_sent: 1, packets_sent: 1, bytes_received: 1, packets_received: 1 };
        Ok(Reading::now(link, step, Method::InterfaceStatistics))
    }

    #[inline]
    fn read_counter(&self, counter: Counter) -> Result<Reading<u64>, Fault> {
        Ok(Reading::now(self.counter_value(counter)?, 1, Method::InterfaceStatistics))
    }

    /// The value of one counter without a time stamp, for a caller that adds the time stamp itself.
    #[inline]
    pub(super) fn counter_value(&self, counter: Counter) -> Result<u64, Fault> {
        read(&self.files[counter as usize], &self.name)
    }
}

fn open_counter_file(name: &str, counter: &str) -> Result<File, Fault> {
    let name = kernel_file::checked_name("interface", name)?;
    kernel_file::open(format_args!("/sys/class/net/{name}/statistics/{counter}"))
}

/// One counter, read without a handle.
pub(super) fn read_counter_once(name: &str, counter: Counter) -> Result<Reading<u64>, Fault> {
    let value = read(&open_counter_file(name, COUNTED[counter as usize])?, name)?;
    Ok(Reading::now(value, 1, Method::InterfaceStatistics))
}

#[derive(Clone, Copy)]
pub(super) enum Counter {
    BytesSent,
    PacketsSent,
    BytesReceived,
    PacketsReceived,
}

#[inline]
fn read(file: &File, name: &str) -> Result<u64, Fault> {
    let mut buffer = [0; DIGITS];
    let text = kernel_file::read(file, &mut buffer, || interface_label(name))?;
    let (value, _) =
        parse_number(text).ok_or_else(|| Fault::parse_error(interface_label(name), "a number", text))?;
    Ok(value)
}

fn interface_label(name: &str) -> String {
    format!("interface {name}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;

    #[test]
    fn datagrams_are_counted_on_lo_without_their_ethernet_header() {
        let lo = Interface::open("lo").expect("every namespace has it");
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        let before = (lo.packets_sent().expect("read").value, lo.bytes_sent().expect("read").value);
        for _ in 0..100 {
            socket.send_to(&[0; 32], socket.local_addr().expect("its address")).expect("sent");
        }
        let after = (lo.packets_sent().expect("read").value, lo.bytes_sent().expect("read").value);
        // Other tests send datagrams too.
        assert!(after.0 >= before.0 + 100 && after.1 >= before.1 + 6000, "{before:?} {after:?}");
        let stateless = read_counter_once("lo", Counter::PacketsSent).expect("read").value;
        assert!(stateless >= after.0);
    }

    #[test]
    fn a_missing_interface_is_gone() {
        assert!(matches!(Interface::open("no-such-0"), Err(Fault::Gone(what)) if what.contains("no-such-0")));
        assert!(Interface::open("../../block").is_err());
    }
}
