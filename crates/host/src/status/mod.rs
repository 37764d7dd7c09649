//! The state of a process's sessions and the limit of each: as values, and as the JSON that processes exchange.

mod advice;
mod carried;
mod explain;
mod here;
mod limited_by;
mod one_sided;
mod path_status;
mod process;
mod sample;
mod session;
mod status_socket;
mod transfer;

pub use carried::{Carried, WaitsFor};
pub use here::Here;
pub use limited_by::LimitedBy;
pub use path_status::PathStatus;
pub use process::ProcessStatus;
pub use sample::StatusSample;
pub use session::SessionStatus;
pub use status_socket::{Leave, StatusSocket, ask_to_leave, runtime_dir, statuses};
pub use transfer::TransferStatus;
