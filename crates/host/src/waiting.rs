//! Waiting without a separate runtime.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use crossbeam_channel::{Receiver, RecvError};

use crate::lock::Lock;

/// The next value of a channel, as a future; an error if the channel is closed. A thread waits for it, so that any
/// executor works: for rare events.
pub(crate) fn received<T: Send + 'static>(from: Receiver<T>) -> impl Future<Output = Result<T, RecvError>> {
    let slot = Arc::new(Lock::new(Slot { value: None, waker: None }));
    let filled = Arc::clone(&slot);
    let is_waited_for = std::thread::Builder::new().name("fairwave-wait".to_owned()).spawn(move || {
        let value = from.recv();
        let waker = {
            let mut slot = filled.lock();
            slot.value = Some(value);
            slot.waker.take()
        };
        // Some executors poll at once, on this thread.
        if let Some(waker) = waker {
            waker.wake();
        }
    });
    if is_waited_for.is_err() {
        slot.lock().value = Some(Err(RecvError));
    }
    Received { slot }
}

struct Slot<T> {
    value: Option<Result<T, RecvError>>,
    waker: Option<Waker>,
}

struct Received<T> {
    slot: Arc<Lock<Slot<T>>>,
}

impl<T> Future for Received<T> {
    type Output = Result<T, RecvError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut slot = self.slot.lock();
        if let Some(value) = slot.value.take() {
            return Poll::Ready(value);
        }
        slot.waker = Some(context.waker().clone());
        Poll::Pending
    }
}
