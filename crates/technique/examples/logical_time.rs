//! Four threads send each other money, and each records its events. Logical time correlates the streams, gives snapshots of
//! all of them, and orders levels of detail (Measurement Techniques, slides 41 and 98 to 102).
//!
//!     cargo run --release --example logical_time    # with --moved it fails at its end; --quick for a tenth of it
#![allow(clippy::print_stdout, reason = "an example talks")]

use std::sync::mpsc::{Receiver, Sender, channel};
use syscost_statistic::Random;
use syscost_technique::Interval;
use syscost_technique::known::Known;
use syscost_technique::logical_time::{
    Detail, Stamp, Stream, is_consistent, merge, select_detail, snapshot_at,
};

const ACCOUNTS: usize = 4;
const BALANCE: i64 = 1_000_000;

/// The stamp of the sending, and the amount.
type Message = (Stamp, i64);

fn main() -> syscost_technique::Result<()> {
    let transfers = if std::env::args().any(|argument| argument == "--quick") { 200 } else { 2_000 };
    let streams = run_bank(transfers);
    let order = merge(&streams);
    println!("{ACCOUNTS} threads, {} events in the order of cause and effect\n", order.len());
    println!("  level of detail   events");
    for detail in [Detail::Application, Detail::Message, Detail::Machine] {
        println!("  {:<15} {:>8}", format!("{detail:?}"), select_detail(&order, detail).len());
    }
    let last = order.last().map_or(0, |event| event.stamp.time);
    let (mut lowest, mut highest, mut most_in_transit) = (i64::MAX, i64::MIN, 0);
    let (mut snapshots, mut inconsistent) = (0, 0);
    for step in 0..=100 {
        let snapshot = snapshot_at(&streams, last * step / 100)?;
        let in_transit: i64 = snapshot.in_transit.iter().map(|event| -event.what).sum();
        let total = sum_of_balances(&streams, &snapshot.events) + in_transit;
        (lowest, highest) = (lowest.min(total), highest.max(total));
        most_in_transit = most_in_transit.max(snapshot.in_transit.len());
        snapshots += 1;
        // A cut with the same share of the events of each stream, without regard to messages.
        let shares: Vec<usize> =
            streams.iter().map(|stream| stream.events().len() * step as usize / 100).collect();
        inconsistent += u32::from(!is_consistent(&streams, &shares));
    }
    println!(
        "\nslide 41: global snapshots by logical time; ours: {snapshots} snapshots with up to {most_in_transit} messages under \
         way; of as many cuts at equal shares of the streams, {inconsistent} hold a message that was not sent"
    );
    let truth = (ACCOUNTS as i64 * BALANCE) as f64;
    for (name, total) in [("lowest", lowest), ("highest", highest)] {
        let what = format!("money of all accounts, {name} of {snapshots} snapshots");
        let found = Interval::exactly(total as f64);
        println!("{}", Known::from_arguments(std::env::args()).check_truth(&what, truth, found)?);
    }
    Ok(())
}

/// The sum of all balances after the given number of events of each stream; each event holds a change of a balance.
fn sum_of_balances(streams: &[Stream<i64>], events: &[usize]) -> i64 {
    let changes = streams.iter().zip(events).flat_map(|(stream, count)| &stream.events()[..*count]);
    ACCOUNTS as i64 * BALANCE + changes.map(|event| event.what).sum::<i64>()
}

fn run_bank(transfers: u64) -> Vec<Stream<i64>> {
    let (senders, mailboxes): (Vec<Sender<Message>>, Vec<Receiver<Message>>) =
        (0..ACCOUNTS).map(|_| channel()).unzip();
    let senders = &senders;
    std::thread::scope(|scope| {
        let run = |(number, mailbox)| {
            scope.spawn(move || (run_account(number, transfers, senders, &mailbox), mailbox))
        };
        let threads: Vec<_> = mailboxes.into_iter().enumerate().map(run).collect();
        // Mailboxes are dropped only when all threads have ended, so that every message finds its mailbox open.
        let ended: Vec<_> = threads.into_iter().flat_map(|thread| thread.join()).collect();
        ended.into_iter().map(|(stream, _mailbox)| stream).collect()
    })
}

/// Sends amounts to other accounts, and receives what has arrived meanwhile.
fn run_account(
    number: usize,
    transfers: u64,
    senders: &[Sender<Message>],
    mailbox: &Receiver<Message>,
) -> Stream<i64> {
    let (mut stream, mut random) = (Stream::new(number, Detail::Machine), Random::new(number as u64));
    for transfer in 0..transfers {
        if transfer % 10 == 0 {
            stream.record(Detail::Application, 0);
        }
        stream.record(Detail::Machine, 0);
        let to = (number + 1 + random.number_below(ACCOUNTS - 1)) % ACCOUNTS;
        let amount = 1 + random.number_below(9) as i64;
        let sent = stream.send(-amount);
        if senders[to].send((sent, amount)).is_err() {
            break;
        }
        mailbox.try_iter().for_each(|(sent, amount)| stream.receive(sent, amount));
    }
    stream
}
