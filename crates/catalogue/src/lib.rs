//! The experiments of the papers, their verdicts and pictures.

#![cfg_attr(test, allow(non_snake_case))]

pub mod picture;
