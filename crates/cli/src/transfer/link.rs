//! Options of every command that moves data, about this end.

use std::net::IpAddr;
use std::ops::RangeInclusive;

use clap::ValueEnum;
use fairwave_host::{
    Capacity, CapacityOrigin, Carrier, Carriers, Endpoint, EndpointConfig, IntervalRule, Listen, ListenError,
    MAX_MINIMA, NodeChoice, NodeOrigin, PathControl, PathKind, Terms,
};
use fairwave_schemes::node::host_rule;
use fairwave_units::{Duration, Rate};
use serde::{Deserialize, Serialize};

use crate::common::failure::CommandFailure;
use crate::common::quantity::{positive_rate, quantity, weight};
use crate::common::terminal;

/// Control intervals are within these.
const INTERVALS: RangeInclusive<Duration> = Duration::from_millis(1)..=Duration::from_millis(1000);

/// Options of this end of a transfer.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Path and rate")]
pub(crate) struct LinkArgs {
    /// Rate that this machine may send and receive, such as "1 Gb/s" [default: 95 % of the network card's speed]
    #[arg(long, value_name = "RATE", value_parser = positive_rate)]
    pub(crate) capacity: Option<Rate>,
    /// Whether other traffic uses the path
    #[arg(long, value_enum, value_name = "KIND", default_value = "shared", hide_short_help = true)]
    pub(crate) path: PathUse,
    /// Data carrier: udp, tcp, ssh or sftp (cp only), or auto
    ///
    /// TCP and ssh are slower on long or lossy paths; sftp needs no fairwave there. `auto` uses UDP, and if the peer does
    /// not answer over UDP, ssh for cp and TCP for the other commands.
    #[arg(long, value_name = "CARRIER", default_value = "auto")]
    pub(crate) carrier: Carriers,
    /// Congestion control on a shared path
    #[arg(long, value_enum, value_name = "NAME", default_value = "bbr", hide_short_help = true)]
    pub(crate) path_control: PathControlName,
    /// Node rule that shares this end's capacity; see `fairwave schemes` [default: gtp]
    #[arg(long, value_name = "NAME", value_parser = rule, hide_short_help = true)]
    pub(crate) rule: Option<String>,
    /// Control interval of the end node, such as "20 ms", from 1 ms to 1 s
    #[arg(long, value_name = "T", value_parser = interval, hide_short_help = true)]
    pub(crate) interval: Option<Duration>,
    /// GTP's alpha: share of the gap to its target rate that a session closes per interval, 0 < A < 1 [default: 0.1]
    #[arg(long, value_name = "A", value_parser = share, hide_short_help = true)]
    pub(crate) alpha: Option<f64>,
    /// GTP's beta: minimum step of a session, as a share of alpha x target rate, 0 < B <= 1 [default: 0.2]
    #[arg(long, value_name = "B", value_parser = closed_share, hide_short_help = true)]
    pub(crate) beta: Option<f64>,
    /// Weight of this end's sessions relative to others of the end node; a daemon caps it at 1 for unprivileged users
    /// [default: 1]
    #[arg(long, value_name = "W", value_parser = weight, hide_short_help = true)]
    pub(crate) weight: Option<f64>,
    /// Minimum rate of a session, such as "50 Mb/s": at most 90 % of the capacity; a daemon grants it to root only
    /// [default: none]
    #[arg(long, value_name = "RATE", value_parser = positive_rate, hide_short_help = true)]
    pub(crate) minimum: Option<Rate>,
    /// End node that this end's sessions share: the machine's if a daemon runs (auto), this process's (own), or that of
    /// the daemon at this socket
    #[arg(long, value_name = "auto|own|PATH", value_parser = node, default_value = "auto", hide_short_help = true)]
    pub(crate) node: NodeArg,
    /// Do not encrypt data, for speed; corruption is still detected. Both ends must set this
    #[arg(long, hide_short_help = true)]
    pub(crate) plain: bool,
}

/// Whose end node a process has: the machine's, where none is said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NodeArg(pub(crate) NodeChoice);

impl Default for NodeArg {
    fn default() -> Self {
        Self(NodeChoice::Auto)
    }
}

/// Who else uses a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum PathUse {
    /// Other traffic uses the path
    #[default]
    Shared,
    /// No other traffic uses the path; both ends must set this and know their capacity
    Dedicated,
}

/// By what a source sends on a path that others use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum PathControlName {
    /// Model of the path: its delivery rate and minimum round-trip time
    #[default]
    Bbr,
    /// Loss, as TCP CUBIC (RFC 9438)
    Cubic,
}

/// An endpoint, and the capacity that it has.
pub(crate) struct Bound {
    pub(crate) endpoint: Endpoint,
    pub(crate) capacity: Capacity,
}

impl Bound {
    /// An endpoint with this configured capacity; its actual one is the machine's, if that has an end node.
    pub(crate) fn of(endpoint: Endpoint, own: &Capacity) -> Self {
        let [capacity, _] = own.at(&endpoint.node());
        Self { endpoint, capacity }
    }
}

impl LinkArgs {
    /// An endpoint at any port, for a session with a peer that is known, or will be.
    pub(crate) fn bind(&self, peer: Option<IpAddr>) -> Result<Bound, CommandFailure> {
        let (config, capacity) = self.config(peer);
        self.check_minimum(&capacity)?;
        let endpoint = Endpoint::bind(&config).map_err(|error| CommandFailure::Run(error.to_string()))?;
        self.note_withheld(&endpoint);
        Ok(Bound::of(endpoint, &capacity))
    }

    /// An endpoint that listens; `option` gave its address.
    pub(crate) fn bind_to(&self, option: &str, listen: &Listen) -> Result<Bound, CommandFailure> {
        let (config, capacity) = self.config(None);
        self.check_minimum(&capacity)?;
        let endpoint = listen.bind(None, &config).map_err(|error| not_bound(option, listen, &error))?;
        self.note_withheld(&endpoint);
        Ok(Bound::of(endpoint, &capacity))
    }

    fn note_withheld(&self, endpoint: &Endpoint) {
        if endpoint.node().origin == NodeOrigin::Daemon && !rustix::process::geteuid().is_root() {
            self.withheld().iter().for_each(|note| terminal::note(note));
        }
    }

    /// The options that a daemon does not grant to users other than root.
    fn withheld(&self) -> Vec<String> {
        let weight = self.weight.filter(|weight| *weight > 1.0);
        let weight = weight.map(|weight| format!("--weight {weight}: the daemon counts it as 1, except for root"));
        let minimum = self.minimum.map(|rate| format!("--minimum {rate}: the daemon ignores it, except for root"));
        weight.into_iter().chain(minimum).collect()
    }

    /// Whether a command supports the requested carrier: it supports `has`; `why` explains the others.
    pub(crate) fn check_carrier(&self, command: &str, has: &[Carrier], why: &str) -> Result<(), CommandFailure> {
        match self.carrier {
            Carriers::Only(only) if !has.contains(&only) => {
                Err(CommandFailure::usage(format!("{command}: --carrier {only}: {why}"), "omit --carrier to use auto"))
            }
            _ => Ok(()),
        }
    }

    /// Options of a session at this end node.
    pub(crate) fn session(&self) -> Terms {
        let options = Terms::default();
        Terms {
            alpha: self.alpha.unwrap_or(options.alpha),
            beta: self.beta.unwrap_or(options.beta),
            weight: self.weight.unwrap_or(options.weight),
            minimum: self.minimum.unwrap_or(options.minimum),
            ..options
        }
    }

    /// Whether a minimum rate can be kept: by the rule, and by a capacity that has more.
    pub(crate) fn check_minimum(&self, capacity: &Capacity) -> Result<(), CommandFailure> {
        let Some(minimum) = self.minimum else { return Ok(()) };
        let rule = self.rule.as_deref().unwrap_or("gtp");
        if !host_rule(rule).is_ok_and(|rule| rule.keeps_minimum) {
            let problem = format!("--minimum {minimum}: the rule {rule} does not support minimum rates");
            return Err(CommandFailure::usage(problem, "run `fairwave schemes NAME` to see what a rule supports"));
        }
        match capacity.rate.map(|capacity| capacity * MAX_MINIMA).filter(|most| minimum > *most) {
            None => Ok(()),
            Some(most) => Err(CommandFailure::usage(
                format!("--minimum {minimum} is more than 90 % of this end's capacity, {most}"),
                "the other sessions need capacity as well",
            )),
        }
    }

    /// The missing setting if a call declares the path dedicated and this end's capacity is unknown.
    pub(crate) fn without_capacity(&self, capacity: &Capacity) -> Option<String> {
        (self.path == PathUse::Dedicated && capacity.rate.is_none()).then(|| {
            let origin = &capacity.origin;
            format!(
                "--path dedicated has no effect because the capacity of this end is unknown ({origin}): add \
                 --capacity RATE"
            )
        })
    }

    /// The configuration of an endpoint, and its capacity.
    pub(crate) fn config(&self, peer: Option<IpAddr>) -> (EndpointConfig, Capacity) {
        let capacity = Capacity::find(self.capacity, peer);
        let mut config = EndpointConfig {
            send_capacity: capacity.rate,
            receive_capacity: capacity.rate,
            is_card_capacity: matches!(capacity.origin, CapacityOrigin::Card(_)),
            node: self.node.0.clone(),
            path: match self.path {
                PathUse::Shared => PathKind::Shared,
                PathUse::Dedicated => PathKind::Dedicated,
            },
            path_control: match self.path_control {
                PathControlName::Bbr => PathControl::Bbr,
                PathControlName::Cubic => PathControl::Cubic,
            },
            is_plain: self.plain,
            carriers: match self.carrier {
                // The session is within this process.
                Carriers::Only(Carrier::Sftp) => Carriers::Any,
                carriers => carriers,
            },
            ..EndpointConfig::default()
        };
        if let Some(rule) = &self.rule {
            config.rule.clone_from(rule);
        }
        if let Some(interval) = self.interval {
            config.interval = IntervalRule::Fixed(interval);
        }
        (config, capacity)
    }
}

/// The error of listening; `option` gave the address.
pub(crate) fn not_bound(option: &str, listen: &Listen, error: &ListenError) -> CommandFailure {
    match listen {
        Listen::At(address) => {
            let hint = "run `ss -lup` to see which process uses the port, or use port 0 for any free port";
            CommandFailure::usage(format!("{option} {address}: {error}"), hint)
        }
        Listen::Among(ports) => CommandFailure::usage(
            format!("--port {}: {error}", Ports(ports.clone())),
            "run `ss -lup` to see which processes use them",
        ),
        Listen::Usual => CommandFailure::Run(error.to_string()),
    }
}

/// The ports that a call allows: one, or some in a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ports(pub(crate) RangeInclusive<u16>);

impl std::fmt::Display for Ports {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.0.start() == self.0.end() {
            write!(f, "{}", self.0.start())
        } else {
            write!(f, "{}-{}", self.0.start(), self.0.end())
        }
    }
}

impl std::str::FromStr for Ports {
    type Err = String;

    /// "5000" or "5000-5010".
    fn from_str(text: &str) -> Result<Self, String> {
        let port = |text: &str| {
            text.parse::<u16>()
                .map_err(|_| format!("\"{}\" is not a port: use the form 5000 or 5000-5010", text.escape_debug()))
        };
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let (first, last) = (port(first)?, port(last)?);
        if last < first {
            return Err(format!("the last port, {last}, is below the first, {first}"));
        }
        Ok(Self(first..=last))
    }
}

/// Carriers without ssh.
pub(crate) const OF_TICKETS: [Carrier; 2] = [Carrier::Udp, Carrier::Tcp];
pub(crate) const NO_SSH: &str = "only `fairwave cp` supports ssh and sftp";

/// The name of a rule that hosts run.
pub(crate) fn rule(text: &str) -> Result<String, String> {
    host_rule(text).map(|_| text.to_owned()).map_err(|error| format!("{error}; {}", error.hint()))
}

/// Whose end node; a path has a slash, or is a socket of the directory that the call was made in.
fn node(text: &str) -> Result<NodeArg, String> {
    match text {
        "auto" => Ok(NodeArg(NodeChoice::Auto)),
        "own" => Ok(NodeArg(NodeChoice::Own)),
        "" => Err("expected auto, own, or the path of a daemon's socket".into()),
        path => std::path::absolute(path).map(|path| NodeArg(NodeChoice::At(path))).map_err(|error| error.to_string()),
    }
}

fn share(text: &str) -> Result<f64, String> {
    closed_share(text).and_then(|share| if share < 1.0 { Ok(share) } else { Err("must be below 1".into()) })
}

fn closed_share(text: &str) -> Result<f64, String> {
    let share: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    if share > 0.0 && share <= 1.0 { Ok(share) } else { Err("must be above 0 and at most 1".into()) }
}

fn interval(text: &str) -> Result<Duration, String> {
    let interval = quantity::<Duration>(text)?;
    if INTERVALS.contains(&interval) {
        Ok(interval)
    } else {
        Err(format!("must be between {} and {}", INTERVALS.start(), INTERVALS.end()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::net::{Ipv6Addr, SocketAddr};

    #[test]
    fn ports__are_one_or_some_in_a_row() {
        let read = |text: &str| text.parse::<Ports>();
        assert_eq!(read("5000"), Ok(Ports(5000..=5000)));
        assert_eq!(read("5000-5010").unwrap().to_string(), "5000-5010");
        assert_eq!(read("5010-5000").unwrap_err(), "the last port, 5000, is below the first, 5010");
        assert!(read("70000").unwrap_err().contains("is not a port"));
        assert!(read("a-b").unwrap_err().contains("is not a port"));
    }

    #[test]
    fn session__takes_what_was_said() {
        let link = LinkArgs { alpha: Some(0.3), ..LinkArgs::default() };
        let expected = Terms { alpha: 0.3, ..Terms::default() };
        assert_eq!(link.session(), expected);
        assert_eq!((share("0.5"), closed_share("1")), (Ok(0.5), Ok(1.0)));
        for wrong in ["0", "-1", "1.5", "NaN", "x"] {
            assert!(share(wrong).is_err() && closed_share(wrong).is_err(), "{wrong}");
        }
        assert!(share("1").is_err());
    }

    #[test]
    fn session__has_the_weight_and_the_minimum_that_were_said() {
        let link = LinkArgs { weight: Some(2.0), minimum: Some(Rate::mbps(5.0)), ..LinkArgs::default() };
        assert_eq!((link.session().weight, link.session().minimum), (2.0, Rate::mbps(5.0)));
        assert_eq!((weight("0.5"), weight("1000000")), (Ok(0.5), Ok(1e6)));
        for wrong in ["0", "-1", "NaN", "inf", "2000000", "x"] {
            assert!(weight(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn check_minimum__refuses_what_cannot_be_kept() {
        let of = |minimum: f64, rule: Option<&str>, capacity: Option<f64>| {
            let link =
                LinkArgs { minimum: Some(Rate::mbps(minimum)), rule: rule.map(str::to_owned), ..LinkArgs::default() };
            let capacity = Capacity { rate: capacity.map(Rate::mbps), origin: CapacityOrigin::Said };
            link.check_minimum(&capacity).map_err(|failure| failure.message().unwrap().to_owned())
        };
        assert_eq!(of(90.0, None, Some(100.0)), Ok(()));
        assert!(of(91.0, None, Some(100.0)).unwrap_err().starts_with("--minimum 91 Mb/s is more than 90 %"));
        assert_eq!(of(91.0, None, None), Ok(()));
        assert!(of(1.0, Some("abr-charny"), None).unwrap_err().contains("does not support minimum rates"));
        assert_eq!(of(1.0, Some("abr-hou"), Some(100.0)), Ok(()));
    }

    #[test]
    fn withheld__is_what_a_daemon_does_not_grant() {
        let of = |weight, minimum| LinkArgs { weight, minimum, ..LinkArgs::default() }.withheld();
        assert_eq!([of(None, None), of(Some(1.0), None), of(Some(0.5), None)], [const { Vec::<String>::new() }; 3]);
        assert_eq!(of(Some(5.0), None), ["--weight 5: the daemon counts it as 1, except for root"]);
        let minimum = Some(Rate::mbps(50.0));
        assert_eq!(of(None, minimum), ["--minimum 50 Mb/s: the daemon ignores it, except for root"]);
    }

    #[test]
    fn without_capacity__is_said_of_a_dedicated_path_alone() {
        let unknown = Capacity { rate: None, origin: CapacityOrigin::NoSpeed("eth0".into()) };
        let known = Capacity { rate: Some(Rate::gbps(1.0)), origin: CapacityOrigin::Said };
        let dedicated = LinkArgs { path: PathUse::Dedicated, ..LinkArgs::default() };
        assert_eq!([dedicated.without_capacity(&known), LinkArgs::default().without_capacity(&unknown)], [None, None]);
        let says = dedicated.without_capacity(&unknown).unwrap();
        let expected = "--path dedicated has no effect because the capacity of this end is unknown (eth0 reports no speed): add --capacity RATE";
        assert_eq!(says, expected);
    }

    #[test]
    fn config__has_what_a_shared_path_is_used_by() {
        let control = |path_control| LinkArgs { path_control, ..LinkArgs::default() }.config(None).0.path_control;
        assert_eq!(control(PathControlName::Cubic), PathControl::Cubic);
        assert_eq!(LinkArgs::default().config(None).0.path_control, PathControl::Bbr);
    }

    #[test]
    fn rule__is_one_that_runs_on_hosts() {
        assert_eq!(rule("abr-hou").as_deref(), Ok("abr-hou"));
        let error = rule("cubic").unwrap_err();
        assert!(error.starts_with("\"cubic\" is not a node rule; use one of gtp, "), "{error}");
        let bound = LinkArgs { rule: Some("abr-charny".to_owned()), ..LinkArgs::default() }
            .bind_to("--listen", &Listen::Usual)
            .unwrap();
        assert!(bound.endpoint.local_addr().port() > 0);
    }

    #[test]
    fn bind_to__names_the_option_whose_port_is_taken() {
        let link = LinkArgs::default();
        let first = link.bind_to("--listen", &Listen::Usual).unwrap();
        let port = first.endpoint.local_addr().port();
        let error = link.bind_to("--listen", &Listen::Among(port..=port)).err().unwrap();
        assert!(error.message().unwrap().contains(&format!("--port {port}: no free port in the range")), "{error:?}");
        let address = SocketAddr::from((Ipv6Addr::UNSPECIFIED, port));
        let error = link.bind_to("--listen", &Listen::At(address)).err().unwrap();
        assert!(error.message().unwrap().contains(&format!("--listen {address}: cannot listen")), "{error:?}");
    }
}
