//! The addresses of a peer, from what the user writes: `HOST`, `192.0.2.7`, `fd00::7`, `fe80::1%eth0`, and `USER@HOST` for ssh.

use crate::inert;
use std::net::{Ipv6Addr, SocketAddr, ToSocketAddrs};

/// The addresses of the host that a text names, at least one, with port 0. A part before an `@` is for ssh only.
///
/// # Errors
/// Why the text names no address, and what to write instead.
pub fn resolve_host(text: &str) -> Result<Vec<SocketAddr>, String> {
    let host = text.rsplit_once('@').map_or(text, |(_, host)| host);
    let shown = inert::neutralize_line(host, 60);
    match host.split('%').next().unwrap_or(host).parse::<Ipv6Addr>() {
        Err(_) if host.contains(':') => {
            return Err(format!(
                "`{shown}` is no address of IPv6: write HOST or ADDRESS, without brackets and port"
            ));
        }
        Ok(ip) if ip.is_unicast_link_local() && !host.contains('%') => {
            return Err(format!("it is the same on every link: write the interface behind it, {ip}%eth0"));
        }
        _ => {}
    }
    let found = (host, 0).to_socket_addrs().map_err(|cause| {
        format!(
            "no address of `{shown}` can be found ({cause}): give its name or its address; for an alias of ssh give both, by \
             `--peer ADDRESS --peer-command 'ssh ALIAS syscost peer'`"
        )
    })?;
    // getaddrinfo(3) finds at least one, or fails.
    Ok(found.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_an_address_or_a_name_and_may_have_a_user() {
        for (text, expected) in [
            ("127.0.0.1", "127.0.0.1:0"),
            ("me@127.0.0.1", "127.0.0.1:0"),
            ("::1", "[::1]:0"),
            ("me@fd00::1:2:7470", "[fd00::1:2:7470]:0"),
            ("fe80::1%1", "[fe80::1%1]:0"),
            ("fe80::1%lo", "[fe80::1%1]:0"),
        ] {
            if text.contains("lo") && !std::path::Path::new("/sys/class/net/lo").exists() {
                continue;
            }
            let found = resolve_host(text).unwrap_or_else(|why| panic!("{text}: {why}"));
            assert_eq!(found[0].to_string(), expected, "{text}");
        }
    }

    #[test]
    fn a_text_without_an_address_is_refused_with_the_right_form() {
        for (text, expected) in [
            ("127.0.0.1:7470", "`127.0.0.1:7470` is no address of IPv6: write HOST or ADDRESS, without"),
            ("[::1]", "without brackets and port"),
            ("::1:7470:x", "is no address of IPv6"),
            ("fe80::1", "it is the same on every link: write the interface behind it, fe80::1%eth0"),
            ("", "no address of `` can be found"),
            ("no-such-alias.invalid", "--peer ADDRESS --peer-command 'ssh ALIAS syscost peer'"),
        ] {
            let why = resolve_host(text).expect_err(text);
            assert!(why.contains(expected), "{text}: {why}");
        }
        let hostile = resolve_host("[\u{1b}[2J]:80").expect_err("no address");
        assert!(!hostile.contains('\u{1b}'), "{hostile}");
    }
}
