use super::*;
use std::sync::atomic::{AtomicBool, Ordering};
use syscost_platform::testing::run_random_trials;

/// Runs `client` while the server serves a page of this length, and returns its result.
fn serve_client<T: Send>(length: usize, client: impl FnOnce(SocketAddr) -> T + Send) -> T {
    let server = Server::bind(SocketAddr::from(([127, 0, 0, 1], 0)), false).expect("a loop");
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let page = |_: &str, accept: &str| {
            Ok(Page { content_type: PLAIN, body: format!("{accept}{}", "x".repeat(length)) })
        };
        let (server, over) = (&server, &over);
        let serving = scope.spawn(move || server.serve(|| over.load(Ordering::SeqCst), page));
        let heard = scope.spawn(move || client(server.address())).join();
        over.store(true, Ordering::SeqCst);
        serving.join().expect("it serves whatever comes");
        heard.expect("heard")
    })
}

fn connect(to: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(to).expect("connected");
    stream.set_read_timeout(Some(2 * PATIENCE)).expect("set");
    stream
}

fn ask(to: SocketAddr, request: &[u8]) -> String {
    let mut stream = connect(to);
    let _ = stream.write_all(request);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

const GET: &[u8] = b"GET /metrics HTTP/1.1\r\nHost: a\r\nAccept: text/plain\r\n\r\n";

#[test]
fn the_page_is_complete_and_has_its_length() {
    let length = 3 << 20;
    let answer = serve_client(length, |to| ask(to, GET));
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n") && body.starts_with("text/plainx"), "{head}");
    assert!(head.contains(&format!("Content-Length: {}\r\n", length + 10)), "{head}");
    assert_eq!(body.len(), length + 10);
}

#[test]
fn a_request_may_come_in_pieces() {
    let answer = serve_client(1, |to| {
        let mut stream = connect(to);
        for piece in GET.chunks(7) {
            stream.write_all(piece).expect("sent");
            std::thread::sleep(Duration::from_millis(2));
        }
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("answered");
        answer
    });
    assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
}

#[test]
fn an_invalid_request_is_answered_and_its_connection_closed() {
    let long = [b"GET /metrics HTTP/1.1\r\nX: ".to_vec(), vec![b'a'; 4 * LONGEST]].concat();
    let many =
        [b"GET /metrics HTTP/1.1\r\n".to_vec(), b"A: b\r\n".repeat(HEADERS + 1), b"\r\n".to_vec()].concat();
    let cases: [(&[u8], &str); 7] = [
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", "400"),
        (b"\0\0\0\0\r\n\r\n", "400"),
        (b"DELETE /metrics HTTP/1.1\r\n\r\n", "405"),
        (b"GET /etc/passwd HTTP/1.1\r\n\r\n", "404"),
        (b"GET /metrics?x=1 HTTP/1.0\r\n\r\n", "200"),
        (&long, "431"),
        (&many, "431"),
    ];
    serve_client(1, |to| {
        for (request, status) in cases {
            let answer = ask(to, request);
            assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{status}: {answer}");
        }
    });
    let head = serve_client(5, |to| ask(to, b"HEAD /metrics HTTP/1.1\r\n\r\n"));
    assert!(head.contains("Content-Length: 5\r\n") && head.ends_with("\r\n\r\n"), "{head}");
}

#[test]
fn a_silent_client_blocks_no_other_and_is_disconnected() {
    serve_client(1, |to| {
        let mut silent: Vec<_> = (0..3 * MOST).map(|_| connect(to)).collect();
        assert!(ask(to, GET).starts_with("HTTP/1.1 200 OK"));
        let begun = Instant::now();
        let mut last = silent.pop().expect("one");
        last.write_all(b"GET /met").expect("sent");
        assert!(matches!(last.read(&mut [0; 16]), Ok(0) | Err(_)), "no answer");
        assert!(begun.elapsed() < PATIENCE + Duration::from_secs(2), "{:?}", begun.elapsed());
        assert!(ask(to, GET).starts_with("HTTP/1.1 200 OK"));
    });
}

#[test]
fn the_server_survives_arbitrary_bytes() {
    let mut random = syscost_statistic::Random::new(7);
    serve_client(1, |to| {
        for length in 0..60usize {
            let noise: Vec<u8> = (0..length * 7).map(|_| random.next_bits() as u8).collect();
            let mut stream = connect(to);
            let _ = stream.write_all(&noise);
            let _ = stream.shutdown(Shutdown::Write);
        }
        assert!(ask(to, GET).starts_with("HTTP/1.1 200 OK"));
    });
}

#[test]
fn a_public_address_requires_the_option() {
    let everywhere = SocketAddr::from(([0, 0, 0, 0], 0));
    let refused = Server::bind(everywhere, false).map(|_| ()).expect_err("refused");
    assert!(refused.to_string().contains("--public"), "{refused}");
    assert!(Server::bind("[::ffff:10.0.0.1]:0".parse().expect("an address"), false).is_err());
    assert!(Server::bind(everywhere, true).is_ok());
}

/// The minimum number of request heads that are tried.
const FEWEST: u64 = 5_000;

/// Random request heads from fixed seeds: valid ones with bytes changed, removed or doubled, and arbitrary bytes.
/// `SYSCOST_FUZZ_SECONDS` sets the duration. Each head gets one of the known statuses, or more input is awaited, and only
/// while the head is short.
#[test]
fn a_random_request_head_is_answered_or_awaited() {
    let mut random = syscost_statistic::Random::new(8);
    run_random_trials("heads", FEWEST, || {
        let head = spoilt(&mut random);
        let told =
            answer_request(&head, &mut |_, accept| Ok(Page { content_type: PLAIN, body: accept.into() }));
        let Some(told) = told else {
            assert!(head.len() < LONGEST, "{} bytes are waited for", head.len());
            return;
        };
        let text = String::from_utf8_lossy(&told);
        let known = ["200 OK", "400 Bad", "404 Not", "405 Method", "431 Request"];
        assert!(known.iter().any(|status| text.starts_with(&format!("HTTP/1.1 {status}"))), "{text:?}");
        assert!(told.len() < 4 * LONGEST && text.split_once("\r\n\r\n").is_some(), "{text:?}");
    });
}

/// A request with one part replaced by something else.
fn spoilt(random: &mut syscost_statistic::Random) -> Vec<u8> {
    let mut head = match random.number_below(4) {
        0 => [
            b"GET /metrics HTTP/1.1\r\n".to_vec(),
            b"A: b\r\n".repeat(random.number_below(200)),
            b"\r\n".to_vec(),
        ]
        .concat(),
        1 => [b"GET /".to_vec(), vec![b'a'; random.number_below(2 * LONGEST)]].concat(),
        2 => (0..random.number_below(500)).map(|_| random.next_bits() as u8).collect(),
        _ => GET.to_vec(),
    };
    for _ in 0..random.number_below(5) {
        let at = random.number_below(head.len().max(1));
        match random.number_below(4) {
            _ if head.is_empty() => break,
            0 => head[at] = random.next_bits() as u8,
            1 => drop(head.remove(at)),
            2 => head.truncate(at),
            _ => head.extend_from_within(at..),
        }
    }
    head
}
