//! The executor with which the examples run their futures.

use std::pin::pin;
use std::task::{Context, Poll, Waker};
use syscost_criterion::async_executor::AsyncExecutor;

/// An executor that polls a future repeatedly until the future has ended.
pub struct Polling;

impl AsyncExecutor for Polling {
    fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        let (mut future, mut context) = (pin!(future), Context::from_waker(Waker::noop()));
        loop {
            if let Poll::Ready(value) = future.as_mut().poll(&mut context) {
                return value;
            }
        }
    }
}
