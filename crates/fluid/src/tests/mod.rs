//! Tests of the simulator as a whole.

mod aecp;
mod by_hand;
mod figures;
mod oracle;
mod random_networks;
mod reference;
