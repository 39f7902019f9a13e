//! The C ABI of gpushare, version 1. The crate `gpushare` is the safe API over it.
//!
//! Every struct has a `Default` that does what its `_INIT` macro does in C: `struct_size` is set, and the rest is zero,
//! which means default. Values of enums are plain integers, because a newer library may return new ones.
#![allow(non_camel_case_types)]

#[rustfmt::skip]
mod abi;

pub use abi::*;
