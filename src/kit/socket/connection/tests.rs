use super::*;

fn connected(listeners: &Listeners) -> [End; 2] {
    let client = open_stream_socket(listeners.address()).expect("a socket");
    assert_eq!(client.connect(listeners.address()), 0);
    let at = listeners.find_waiting().expect("asked").expect("one waits");
    [client, accept(at).expect("accepted")]
}

#[test]
fn the_accepted_end_belongs_to_the_client() {
    for listeners in [Listeners::open_one(Family::Tcp, 8), Listeners::open_sharing(16, 8)] {
        let listeners = listeners.expect("listening");
        for _ in 0..20 {
            let [client, server] = connected(&listeners);
            let [ours, theirs] = client.own_and_peer_addresses().expect("of IPv4");
            assert_eq!(server.own_and_peer_addresses(), Some([theirs, ours]));
            assert!(client.is_established() && server.is_established());
            assert_eq!((client.reset_on_close(), client.close(), server.close()), (0, 0, 0));
        }
    }
}

#[test]
fn a_unix_listener_has_an_abstract_name_and_knows_its_client() {
    let listeners = Listeners::open_one(Family::Unix, 8).expect("listening");
    let [client, server] = connected(&listeners);
    let own = Some(std::process::id());
    assert_eq!((client.peer_process_id(), server.peer_process_id()), (own, own));
    assert_eq!((client.close(), server.close()), (0, 0));
}

#[test]
fn an_end_uses_the_address_that_it_is_bound_to() {
    let listeners = Listeners::open_one(Family::Tcp, 8).expect("listening");
    let client = open_stream_socket(listeners.address()).expect("a socket");
    let from = Ipv4Addr::new(127, 0, 0, 9);
    assert_eq!((client.bind_to(from), client.connect(listeners.address())), (0, 0));
    let own = client.own_and_peer_addresses().expect("of IPv4")[0];
    assert_eq!(own.ip(), from);
}

#[test]
fn the_kernels_count_of_time_wait_connections_is_parsed() {
    let text = "sockets: used 20\nTCP: inuse 4 orphan 0 tw 1234 alloc 5 mem 0\nUDP: inuse 1 mem 0\n";
    assert_eq!(parse_time_wait(text), Some(1234));
    assert_eq!(parse_time_wait("TCP: inuse 4\n"), None);
}
