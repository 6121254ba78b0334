use super::*;
use std::sync::mpsc::{Receiver, Sender, channel};
use syscost_statistic::Random;

/// The change of an account's balance: a sent amount is subtracted, a received one is added.
type Change = i64;
/// The stamp of the sending, and the amount.
type Message = (Stamp, Change);
const ACCOUNTS: usize = 4;
const BALANCE: i64 = 1000;

/// Threads that send each other amounts of money, each with a stream of its own.
fn run_bank(transfers: usize) -> Vec<Stream<Change>> {
    let (senders, receivers): (Vec<Sender<Message>>, Vec<Receiver<_>>) =
        (0..ACCOUNTS).map(|_| channel()).unzip();
    let account = |(number, mailbox): (usize, Receiver<Message>)| {
        let others = senders.clone();
        move || {
            let (mut stream, mut random) = (Stream::new(number, Detail::Machine), Random::new(number as u64));
            for _ in 0..transfers {
                let to = (number + 1 + random.number_below(ACCOUNTS - 1)) % ACCOUNTS;
                let amount = 1 + random.number_below(9) as i64;
                stream.record(Detail::Application, 0);
                let sent = stream.send(-amount);
                others[to].send((sent, amount)).expect("its mailbox is open until all have ended");
                mailbox.try_iter().for_each(|(sent, amount)| stream.receive(sent, amount));
            }
            drop(others);
            // Messages that are left in the mailbox stay in transit.
            (stream, mailbox)
        }
    };
    let threads: Vec<_> = receivers.into_iter().enumerate().map(account).map(std::thread::spawn).collect();
    let ended: Vec<_> = threads.into_iter().map(|thread| thread.join().expect("it ends")).collect();
    ended.into_iter().map(|(stream, _)| stream).collect()
}

/// The sum of the balances of all accounts in a cut.
fn money(streams: &[Stream<Change>], events: &[usize]) -> i64 {
    ACCOUNTS as i64 * BALANCE + events_in(streams, events).map(|event| event.what).sum::<i64>()
}

#[test]
fn no_snapshot_of_live_threads_loses_or_makes_money() {
    let streams = run_bank(200);
    let last = merge(&streams).last().expect("events").stamp.time;
    let mut were_in_transit = 0;
    for time in 0..=last {
        let snapshot = snapshot_at(&streams, time).expect("messages are there");
        assert!(is_consistent(&streams, &snapshot.events), "{time}");
        let under_way: i64 = snapshot.in_transit.iter().map(|event| -event.what).sum();
        assert_eq!(money(&streams, &snapshot.events) + under_way, ACCOUNTS as i64 * BALANCE, "{time}");
        were_in_transit += snapshot.in_transit.len();
    }
    assert!(were_in_transit > 0, "no message was ever under way");
}

#[test]
fn a_cause_comes_before_its_effect_and_a_stream_keeps_its_order() {
    let streams = run_bank(200);
    let order = merge(&streams);
    assert_eq!(order.len(), streams.iter().map(|stream| stream.events().len()).sum::<usize>());
    let mut sent = BTreeSet::new();
    for event in &order {
        match event.link {
            Link::Sent => _ = sent.insert(event.stamp),
            Link::Received(message) => assert!(sent.contains(&message), "{event:?} before its cause"),
            Link::Local => {}
        }
    }
    for (number, stream) in streams.iter().enumerate() {
        let own: Vec<_> = order.iter().filter(|event| event.stamp.stream == number).copied().collect();
        assert_eq!(own, stream.events().iter().collect::<Vec<_>>());
    }
}

/// Two streams, of which the second is idle until the message. A cut after two events of each holds the reception of the
/// message and not its sending.
#[test]
fn a_cut_at_equal_numbers_of_events_makes_money() {
    let (mut payer, mut payee) = (Stream::new(0, Detail::Machine), Stream::new(1, Detail::Machine));
    for _ in 0..2 {
        payer.record(Detail::Machine, 0);
    }
    let sent = payer.send(-5);
    payee.receive(sent, 5);
    payee.record(Detail::Machine, 0);
    let streams = [payer, payee];
    assert!(!is_consistent(&streams, &[2, 2]));
    assert_eq!(money(&streams, &[2, 2]), ACCOUNTS as i64 * BALANCE + 5);
    assert!(is_consistent(&streams, &[3, 0]) && is_consistent(&streams, &[3, 2]));
    let snapshot = snapshot_at(&streams, 3).expect("messages are there");
    assert_eq!((snapshot.events, snapshot.in_transit[0].what), (vec![3, 0], -5));
}

#[test]
fn a_coarser_stream_keeps_the_order_of_its_events() {
    let run = |detail| {
        let (mut a, mut b) = (Stream::new(0, detail), Stream::new(1, detail));
        a.record(Detail::Machine, "a works");
        a.record(Detail::Application, "order");
        b.receive(a.send("to b"), "to b");
        b.record(Detail::Application, "delivery");
        [a, b]
    };
    let whats = |events: &[&Event<&'static str>]| events.iter().map(|event| event.what).collect::<Vec<_>>();
    let (fine, coarse) = (run(Detail::Machine), run(Detail::Application));
    assert_eq!(whats(&merge(&coarse)), ["order", "delivery"]);
    assert_eq!(coarse.iter().map(Stream::left_out).collect::<Vec<_>>(), [2, 1]);
    let fine_order = merge(&fine);
    assert_eq!(fine_order.len(), 5);
    assert_eq!(whats(&select_detail(&fine_order, Detail::Application)), whats(&merge(&coarse)));
    let stamps = |events: &[&Event<&str>]| events.iter().map(|event| event.stamp).collect::<Vec<_>>();
    assert_eq!(stamps(&select_detail(&fine_order, Detail::Application)), stamps(&merge(&coarse)));
    let error = snapshot_at(&coarse, 1).expect_err("no messages").to_string();
    assert!(error.contains("stream 0") && error.contains("Detail::Message"), "{error}");
}

/// A request and its answer between streams 0 and 1, and an effect of it on stream 2.
fn streams() -> [Vec<Event<&'static str>>; 3] {
    let new = |number| Stream::new(number, Detail::Machine);
    let (mut client, mut server, mut disk) = (new(0), new(1), new(2));
    server.receive(client.send("ask"), "asked");
    disk.receive(server.send("write"), "written");
    client.receive(server.send("answer"), "answered");
    [client, server, disk].map(|stream| stream.events().to_vec())
}

/// The events that are released after each of these arrivals.
fn released(arrivals: &[&[Event<&'static str>]]) -> Vec<Vec<&'static str>> {
    let mut order = CausalOrder::default();
    let arrive = |events: &&[Event<&'static str>]| {
        events.iter().for_each(|event| order.add(event.clone()));
        order.release().iter().map(|event| event.what).collect()
    };
    arrivals.iter().map(arrive).collect()
}

#[test]
fn an_effect_waits_for_its_cause_in_any_order_of_arrival() {
    let [client, server, disk] = streams();
    let whole = ["ask", "asked", "write", "answer", "written", "answered"];
    for arrivals in [[&client, &server, &disk], [&disk, &server, &client], [&server, &disk, &client]] {
        let order = released(&arrivals.map(Vec::as_slice));
        let order = order.concat();
        let place = |what| order.iter().position(|other| *other == what).expect("it is released");
        assert_eq!(order.len(), whole.len(), "{order:?}");
        for (cause, effect) in
            [("ask", "asked"), ("write", "written"), ("answer", "answered"), ("asked", "write")]
        {
            assert!(place(cause) < place(effect), "{order:?}");
        }
    }
    assert_eq!(released(&[&[client, server, disk].concat()]), [whole]);
}

#[test]
fn a_held_back_stream_is_listed_with_the_message_it_waits_for() {
    let [client, server, _] = streams();
    let mut order = CausalOrder::default();
    server.iter().for_each(|event| order.add(event.clone()));
    assert!(order.release().is_empty());
    assert_eq!(order.held_back(), [(1, client[0].stamp, 3)]);
}

#[test]
fn a_repetition_is_dropped_and_a_cause_before_the_beginning_is_not_waited_for() {
    let [client, server, _] = streams();
    assert_eq!(released(&[&client[..1], &client[..1]]), [vec!["ask"], vec![]]);
    // The client's log begins after its request.
    let mut later = Stream::new(0, Detail::Machine);
    later.last.time = client[0].stamp.time;
    later.record(Detail::Machine, "later");
    assert_eq!(released(&[&server, later.events()]).concat().len(), 4);
}
