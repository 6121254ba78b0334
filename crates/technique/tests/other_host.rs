//! In the example of the web server, the clients run on another host.

#[allow(dead_code, reason = "the example uses the rest")]
#[allow(unreachable_pub, reason = "`pub` marks what a module of the example offers")]
#[path = "../examples/web_server/other_host.rs"]
mod other_host;

use other_host::OtherHost;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;
use syscost_platform::namespace::{enter_new_namespace, run_ip_commands};
use syscost_platform::testing::{print_skipped, run_in_child_process, value_or_skip};

/// Whether a thread of the other host, or of this host if there is none, reaches this address of this host.
fn reaches(host: Option<&OtherHost>, address: SocketAddr) -> bool {
    let connect = || {
        host.map(OtherHost::enter).transpose().expect("entered");
        TcpStream::connect_timeout(&address, Duration::from_secs(2)).is_ok()
    };
    std::thread::scope(|scope| scope.spawn(connect).join().expect("no panic"))
}

#[test]
fn the_other_host_reaches_this_host_only_by_the_wire() {
    run_in_child_process(|| {
        if let Err(error) = enter_new_namespace() {
            return print_skipped(&error.to_string());
        }
        let Some(host) = value_or_skip(OtherHost::connect()) else { return };
        run_ip_commands("link set lo up").expect("brought up");
        let listen = |ip: &str| TcpListener::bind((ip, 0)).expect("a port");
        let (wire, loopback) = (listen(OtherHost::NEAR.1), listen("127.0.0.1"));
        let [wire, loopback] = [wire, loopback].map(|socket| (socket.local_addr().expect("bound"), socket));
        assert!(reaches(Some(&host), wire.0), "over the wire");
        assert!(!reaches(Some(&host), loopback.0), "127.0.0.1 is the other host itself");
        assert!(reaches(None, loopback.0));
        let moved =
            std::fs::read_to_string("/sys/class/net/near/statistics/rx_packets").expect("an interface");
        assert!(moved.trim().parse::<u64>().expect("a count") >= 2, "{moved}");
    });
}
