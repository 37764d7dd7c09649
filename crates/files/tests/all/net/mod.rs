//! Transfers of files between namespaces of the network, with faults on the path. Root is needed; without it these
//! tests print that and do nothing. The network between them is that of the tests of `fairwave-host`.

#![allow(non_snake_case)]

mod both_directions;
mod counters;
mod kills;
mod lost_networks;
mod parts;

#[allow(dead_code, reason = "the tests of fairwave-host use it, too, each a part")]
#[path = "../../../../host/tests/all/net/actor.rs"]
mod actor;
#[allow(dead_code, reason = "the tests of fairwave-host use it, too, each a part")]
#[path = "../../../../host/tests/all/net/hosts.rs"]
mod hosts;
#[allow(dead_code, reason = "the tests of fairwave-host use it, too, each a part")]
#[path = "../../../../host/tests/all/net/memory_content.rs"]
mod memory_content;

use fairwave_wan::world;
