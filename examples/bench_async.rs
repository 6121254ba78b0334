//! A bench of asynchronous code, run by an executor of one's own choice. This one polls until the batch is done; with tokio the
//! closure is `move |batch: Batch| runtime.block_on(batch)`.

use std::task::{Context, Poll, Waker};
use syscost::{Batch, Case, Group};

/// Polls the batch again as long as it waits.
fn poll_to_end(mut batch: Batch) {
    while batch.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending() {}
}

/// A future that is ready when it is polled for the second time.
async fn give_way() {
    let mut is_polled = false;
    std::future::poll_fn(|_| {
        if std::mem::replace(&mut is_polled, true) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}

fn cases() -> Vec<Case> {
    vec![Case::asynchronous("give-way", "a task that gives way once", |_| (poll_to_end, give_way))]
}

fn main() -> std::process::ExitCode {
    syscost::harness::main(&[Group::new("bench_async", include_str!("bench_async.rs"), cases)])
}
