//! The address of a peer as people write it: `HOST`, `HOST:PORT`, `192.0.2.7`, `::1`, `[::1]`, `[::1]:7470`,
//! `fe80::1%eth0`.

use crate::inert;
use crate::kernel_files::KernelFiles;
use std::net::{Ipv6Addr, SocketAddr, SocketAddrV6, ToSocketAddrs};

/// The port of `syscost peer`, where none is given.
pub const PORT: u16 = 7470;

/// What a text says before names are looked up.
#[derive(Debug, PartialEq)]
pub enum HostPort<'a> {
    /// An address of IPv6.
    Address(SocketAddr),
    /// A name or an address of IPv4, and the port.
    Host(&'a str, u16),
}

/// Reads an address without looking a name up.
///
/// # Errors
/// What is wrong with it, and what to write instead.
pub fn read(text: &str) -> Result<HostPort<'_>, String> {
    if let Some(rest) = text.strip_prefix('[') {
        return parse_bracketed(rest).map(HostPort::Address);
    }
    // More than one colon: an address of IPv6, whose last number is no port.
    if text.matches(':').count() > 1 {
        return parse_ipv6(text, PORT).map(HostPort::Address);
    }
    match text.split_once(':').unwrap_or((text, "")) {
        ("", _) => Err("the host is missing: write HOST:PORT".into()),
        (host, "") if host.len() == text.len() => Ok(HostPort::Host(host, PORT)),
        (host, port) => parse_port(port).map(|port| HostPort::Host(host, port)),
    }
}

/// The addresses that a text names, at least one; without a port that of the protocol.
///
/// # Errors
/// Why it names none, and what to write instead.
pub fn resolve_addresses(text: &str) -> Result<Vec<SocketAddr>, String> {
    let (host, port) = match read(text)? {
        HostPort::Address(address) => return Ok(vec![address]),
        HostPort::Host(host, port) => (host, port),
    };
    let found = (host, port).to_socket_addrs();
    let found: Vec<_> =
        found.map_err(|cause| format!("it cannot be found: {cause}; give HOST:PORT"))?.collect();
    if found.is_empty() { Err("it has no address; give HOST:PORT".into()) } else { Ok(found) }
}

/// What follows the opening bracket.
fn parse_bracketed(rest: &str) -> Result<SocketAddr, String> {
    let (inside, behind) =
        rest.split_once(']').ok_or("the bracket is not closed: write [ADDRESS]:PORT".to_owned())?;
    let port = match behind.strip_prefix(':') {
        Some(port) => parse_port(port)?,
        None if behind.is_empty() => PORT,
        None => return Err("behind the bracket comes nothing or :PORT: write [ADDRESS]:PORT".into()),
    };
    parse_ipv6(inside, port)
}

fn parse_ipv6(text: &str, port: u16) -> Result<SocketAddr, String> {
    let (address, zone) = text.split_once('%').map_or((text, None), |(address, zone)| (address, Some(zone)));
    let wrong = || {
        let shown = inert::neutralize_line(address, 60);
        format!("`{shown}` is no address of IPv6: write [ADDRESS]:PORT, such as [::1]:{PORT}, or HOST:PORT")
    };
    let ip: Ipv6Addr = address.parse().map_err(|_| wrong())?;
    let scope = match zone {
        Some(zone) => zone_scope_id(zone)?,
        None if ip.is_unicast_link_local() => {
            return Err(format!(
                "it is the same on every link: write the interface behind it, [{ip}%eth0]:{port}"
            ));
        }
        None => 0,
    };
    Ok(SocketAddrV6::new(ip, port, 0, scope).into())
}

/// The number of the interface that a zone names or numbers.
fn zone_scope_id(zone: &str) -> Result<u32, String> {
    if let Ok(number) = zone.parse() {
        return Ok(number);
    }
    let is_name = !zone.is_empty() && !zone.contains(['/', '.']);
    let line = || KernelFiles::live().read_first_line(&format!("sys/class/net/{zone}/ifindex"))?.parse().ok();
    is_name.then(line).flatten().ok_or_else(|| {
        let shown = inert::neutralize_line(zone, 30);
        format!("there is no interface `{shown}` here: `ip link` lists them")
    })
}

fn parse_port(port: &str) -> Result<u16, String> {
    let shown = inert::neutralize_line(port, 20);
    let wrong = format!(
        "the port `{shown}` is no number from 0 to 65535: write HOST:PORT, or [ADDRESS]:PORT for IPv6"
    );
    if port.bytes().all(|byte| byte.is_ascii_digit()) { port.parse().map_err(|_| wrong) } else { Err(wrong) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(text: &str) -> String {
        resolve_addresses(text).unwrap_or_else(|why| panic!("{text}: {why}"))[0].to_string()
    }

    #[test]
    fn an_address_has_the_usual_port_unless_it_names_another() {
        for (text, expected) in [
            ("127.0.0.1", "127.0.0.1:7470"),
            ("127.0.0.1:80", "127.0.0.1:80"),
            ("::1", "[::1]:7470"),
            ("[::1]", "[::1]:7470"),
            ("[::1]:80", "[::1]:80"),
            ("[::]:0", "[::]:0"),
            ("fe80::1%1", "[fe80::1%1]:7470"),
            ("[fe80::1%lo]:80", "[fe80::1%1]:80"),
        ] {
            if text.contains("lo") && !std::path::Path::new("/sys/class/net/lo").exists() {
                continue;
            }
            assert_eq!(one(text), expected, "{text}");
        }
    }

    #[test]
    fn the_last_number_of_an_ipv6_address_is_no_port() {
        assert_eq!(one("fd00::7:80"), "[fd00::7:80]:7470");
        assert_eq!(one("fd00::1:2:7470"), "[fd00::1:2:7470]:7470");
    }

    #[test]
    fn what_names_no_address_is_refused_with_what_to_write() {
        for (text, expected) in [
            ("127.0.0.1:70000", "the port `70000` is no number"),
            ("127.0.0.1:", "the port `` is no number"),
            ("host:+80", "the port `+80` is no number"),
            (":80", "the host is missing"),
            ("", "the host is missing"),
            ("[::1", "the bracket is not closed"),
            ("[::1]80", "behind the bracket"),
            ("[::1]:x", "the port `x` is no number"),
            ("[127.0.0.1]:80", "`127.0.0.1` is no address of IPv6"),
            ("[localhost]:80", "`localhost` is no address of IPv6"),
            ("::1:7470:x", "is no address of IPv6: write [ADDRESS]:PORT"),
            ("fe80::1", "it is the same on every link: write the interface behind it, [fe80::1%eth0]:7470"),
            ("fe80::1%no/such", "there is no interface `no/such` here"),
            ("[fe80::1%]:80", "there is no interface `` here"),
        ] {
            let why = resolve_addresses(text).expect_err(text);
            assert!(why.contains(expected), "{text}: {why}");
        }
        let hostile = resolve_addresses("[\u{1b}[2J]:80").expect_err("no address");
        assert!(!hostile.contains('\u{1b}'), "{hostile}");
    }
}
