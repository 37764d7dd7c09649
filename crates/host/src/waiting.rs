//! Waiting without a runtime of one's own.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use crossbeam_channel::{Receiver, RecvError};

/// What comes out of a channel, for whoever awaits it; an error if nothing ever will. A thread waits for it, so that any
/// executor will do: for things that are rare.
pub(crate) fn received<T: Send + 'static>(from: Receiver<T>) -> impl Future<Output = Result<T, RecvError>> {
    let slot = Arc::new(Mutex::new(Slot { value: None, waker: None }));
    let filled = Arc::clone(&slot);
    let is_waited_for = std::thread::Builder::new().name("fairwave-wait".to_owned()).spawn(move || {
        let value = from.recv();
        let mut slot = filled.lock().unwrap_or_else(PoisonError::into_inner);
        slot.value = Some(value);
        if let Some(waker) = slot.waker.take() {
            waker.wake();
        }
    });
    if is_waited_for.is_err() {
        slot.lock().unwrap_or_else(PoisonError::into_inner).value = Some(Err(RecvError));
    }
    Received { slot }
}

struct Slot<T> {
    value: Option<Result<T, RecvError>>,
    waker: Option<Waker>,
}

struct Received<T> {
    slot: Arc<Mutex<Slot<T>>>,
}

impl<T> Future for Received<T> {
    type Output = Result<T, RecvError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut slot = self.slot.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(value) = slot.value.take() {
            return Poll::Ready(value);
        }
        slot.waker = Some(context.waker().clone());
        Poll::Pending
    }
}
