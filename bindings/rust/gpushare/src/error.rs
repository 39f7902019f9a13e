//! The one error type: a status and the library's sentence.

use crate::words::{static_text, Status};
use gpushare_sys as sys;
use std::fmt;

/// Why a call failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    status: Status,
    message: String,
}

impl Error {
    pub(crate) fn new(status: Status, message: impl Into<String>) -> Self {
        Error { status, message: message.into() }
    }

    pub fn status(&self) -> Status {
        self.status
    }

    /// One sentence that says what is wrong, with the value and the limit.
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.status, self.message)
    }
}

impl std::error::Error for Error {}

/// The result of a C function that has just returned `code` on this thread.
pub(crate) fn check(code: sys::gpushare_status) -> Result<(), Error> {
    if code == sys::GPUSHARE_OK {
        return Ok(());
    }
    // SAFETY: the message is a string of this thread, valid until its next call that fails.
    let message = static_text(unsafe { sys::gpushare_last_error_message() }).to_owned();
    Err(Error::new(Status(code), message))
}
