//! Rules of the caller's own: Python objects in the place of a session's or a node's rule.
//!
//! A run with such rules stays on the thread that called, and keeps the interpreter's lock: handing it over at each
//! acknowledgement would take longer than the rule, and Ctrl-C reaches a rule that never returns.

use std::cell::RefCell;
use std::collections::HashMap;
use std::panic::resume_unwind;
use std::rc::Rc;
use std::sync::{LazyLock, Mutex, PoisonError};

use fairwave_schemes::header::EcnCode;
use fairwave_schemes::node::DRIVER_OPTIONS;
use fairwave_schemes::scheme::{
    Domain, NodeRule, OptionSpec, OptionValue, Options, Scheme, own_node, own_session, with_own,
};
use fairwave_schemes::session::{
    Ack, Allowance, CongestionController, CongestionWindow, Loss, MakeController, MarkResponse, RuleError,
    SENDER_OPTIONS, WindowConfig,
};
use fairwave_schemes::{Grant, Interval, RateAllocator, Row};
use fairwave_units::Rate;
use numpy::{AllowTypeChange, PyArray1, PyArrayLike1};
use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::interrupt::{Stop, Stopped};

/// Rules that one call may bring.
const MOST: usize = 16;
/// A window that limits nothing, packets: of rules that only have a rate.
const NO_LIMIT_PACKETS: f64 = 1e9;

/// A rule as the caller gave it: its name, whether it is a node's, what makes one, and its options with their defaults.
pub(crate) type GivenRule = (String, bool, Py<PyAny>, Vec<(String, f64)>);

/// Entries live as long as the process: equal calls share them.
static KNOWN: LazyLock<Mutex<HashMap<String, &'static [&'static Scheme]>>> = LazyLock::new(Mutex::default);

/// The rules of a call.
pub(crate) struct OwnRules {
    schemes: &'static [&'static Scheme],
    makers: Vec<Py<PyAny>>,
}

/// Shared state of the rules of a run.
struct OwnRun {
    makers: Vec<Py<PyAny>>,
    failure: RefCell<Option<PyErr>>,
}

thread_local! {
    static RUN: RefCell<Option<Rc<OwnRun>>> = const { RefCell::new(None) };
}

impl OwnRules {
    /// The rules of a call; `None` where it brings none.
    pub(crate) fn read(given: Vec<GivenRule>) -> PyResult<Option<Self>> {
        if given.is_empty() {
            return Ok(None);
        }
        if given.len() > MOST {
            return Err(PyValueError::new_err(format!("schemes: {} rules, the limit is {MOST}", given.len())));
        }
        for (name, _, _, options) in &given {
            if let Some((option, _)) = options.iter().find(|(option, _)| is_drivers(option)) {
                return Err(PyValueError::new_err(format!(
                    "schemes: \"{name}\" has an option \"{option}\", which is reserved\nhint: choose another name, \
                     such as \"my_{option}\""
                )));
            }
        }
        let texts = given.iter().map(|(name, is_node, _, options)| format!("{name:?} {is_node} {options:?}"));
        let key = texts.collect::<Vec<_>>().join(";");
        let schemes = *KNOWN.lock().unwrap_or_else(PoisonError::into_inner).entry(key).or_insert_with(|| {
            let all = given.iter().enumerate().map(|(slot, (name, is_node, _, options))| {
                &*Box::leak(Box::new(entry(slot, name.clone().leak(), *is_node, options)))
            });
            all.collect::<Vec<_>>().leak()
        });
        Ok(Some(Self { schemes, makers: given.into_iter().map(|(_, _, make, _)| make).collect() }))
    }

    /// Their entries next to the list of schemes.
    pub(crate) fn schemes(&self) -> &'static [&'static Scheme] {
        self.schemes
    }

    /// Does `work`, which builds and runs a scenario, with these rules. The error is that of a rule, or an interrupt.
    pub(crate) fn during<T>(&self, py: Python<'_>, work: impl FnOnce() -> T) -> PyResult<T> {
        let makers = self.makers.iter().map(|make| make.clone_ref(py)).collect();
        let run = Rc::new(OwnRun { makers, failure: RefCell::new(None) });
        let before = RUN.replace(Some(Rc::clone(&run)));
        let done = Stop::part(|| with_own(self.schemes, work));
        RUN.set(before);
        match (done, run.failure.borrow_mut().take()) {
            (_, Some(error)) => Err(error),
            (Some(done), None) => Ok(done),
            (None, None) => Err(PyValueError::new_err("a run was stopped without a reason")),
        }
    }
}

/// To be called periodically from a run with custom rules: Ctrl-C ends it here, and other threads get their turn.
pub(crate) fn check_signals() {
    let checked = Python::attach(|py| {
        py.detach(|| ());
        py.check_signals()
    });
    if let (Err(error), Some(run)) = (checked, RUN.with_borrow(Clone::clone)) {
        run.fail(error);
    }
}

/// Whether senders or nodes have an option of that name: rules do not receive those.
fn is_drivers(name: &str) -> bool {
    SENDER_OPTIONS.iter().chain(&DRIVER_OPTIONS).any(|option| option.name == name)
}

/// The entry in the list of schemes.
fn entry(slot: usize, name: &'static str, is_node: bool, options: &[(String, f64)]) -> Scheme {
    const NUMBER: Domain = Domain::Number { least: f64::MIN, most: f64::MAX, open: false };
    let own = options.iter().map(|(name, default)| OptionSpec {
        name: name.clone().leak(),
        domain: NUMBER,
        default: default.to_string().leak(),
        help: "an option of the caller's rule",
    });
    let drivers = if is_node { &DRIVER_OPTIONS[..] } else { SENDER_OPTIONS };
    let options: &'static [OptionSpec] = drivers.iter().copied().chain(own).collect::<Vec<_>>().leak();
    if is_node {
        own_node(name, "the caller's rule", options, NodeRule::new(NODES[slot]))
    } else {
        own_session(name, "the caller's rule", options, SESSIONS[slot])
    }
}

/// The list of schemes has functions: each knows its slot.
macro_rules! slots {
    ($make:ident) => {
        [
            $make::<0>,
            $make::<1>,
            $make::<2>,
            $make::<3>,
            $make::<4>,
            $make::<5>,
            $make::<6>,
            $make::<7>,
            $make::<8>,
            $make::<9>,
            $make::<10>,
            $make::<11>,
            $make::<12>,
            $make::<13>,
            $make::<14>,
            $make::<15>,
        ]
    };
}
static SESSIONS: [MakeController; MOST] = slots!(make_session);
static NODES: [MakeNode; MOST] = slots!(make_node);

type MakeNode = fn(&Options) -> Box<dyn RateAllocator>;

#[expect(clippy::unnecessary_wraps, reason = "the list's type of function")]
fn make_session<const SLOT: usize>(
    options: &Options,
    window: WindowConfig,
) -> Result<Box<dyn CongestionController>, RuleError> {
    let run = OwnRun::current();
    let made = Python::attach(|py| SessionRule::new(py, run.make(py, SLOT, options)?, window));
    Ok(Box::new(run.or_end(made)))
}

fn make_node<const SLOT: usize>(options: &Options) -> Box<dyn RateAllocator> {
    let run = OwnRun::current();
    let made = Python::attach(|py| {
        let allocate = run.make(py, SLOT, options)?.getattr(intern!(py, "allocate"))?.unbind();
        PyResult::Ok(NodeOfOne { allocate })
    });
    Box::new(run.or_end(made))
}

impl OwnRun {
    fn current() -> Rc<Self> {
        let run = RUN.with_borrow(Clone::clone);
        run.expect("entries of one's own are found during a run with them alone")
    }

    /// A new rule with its options by name.
    fn make<'py>(&self, py: Python<'py>, slot: usize, options: &Options) -> PyResult<Bound<'py, PyAny>> {
        let named = PyDict::new(py);
        for (name, value) in options.iter().filter(|(name, _)| !is_drivers(name)) {
            if let OptionValue::Number(number) = value {
                named.set_item(name, number)?;
            }
        }
        self.makers[slot].bind(py).call((), Some(&named))
    }

    /// Ends the run with an error of a rule.
    fn fail(&self, error: PyErr) -> ! {
        *self.failure.borrow_mut() = Some(error);
        resume_unwind(Box::new(Stopped));
    }

    fn or_end<T>(&self, outcome: PyResult<T>) -> T {
        outcome.unwrap_or_else(|error| self.fail(error))
    }
}

/// A session's rule.
struct SessionRule {
    object: Py<PyAny>,
    on_ack: Py<PyAny>,
    on_loss: Option<Py<PyAny>>,
    on_timeout: Option<Py<PyAny>>,
    on_mark: Option<Py<PyAny>>,
    /// Whether it also receives acknowledgements in recovery, and those while the application limits.
    hears_all: bool,
    has_window: bool,
    has_rate: bool,
    window: CongestionWindow,
    pacing: Option<Rate>,
}

impl SessionRule {
    fn new(py: Python<'_>, object: Bound<'_, PyAny>, config: WindowConfig) -> PyResult<Self> {
        let method = |name: &str| PyResult::Ok(object.getattr_opt(name)?.map(Bound::unbind));
        let (has_window, has_rate) = (object.hasattr("window_packets")?, object.hasattr("rate_bps")?);
        if !has_window && !has_rate {
            let kind = object.get_type().name()?;
            return Err(PyValueError::new_err(format!(
                "schemes: a {kind} has neither window_packets nor rate_bps\nhint: set one of them in __init__"
            )));
        }
        let hears_all = object.getattr_opt("hears_all")?.map_or(Ok(false), |flag| flag.is_truthy())?;
        let mut rule = Self {
            on_ack: object.getattr("on_ack")?.unbind(),
            on_loss: method("on_loss")?,
            on_timeout: method("on_timeout")?,
            on_mark: method("on_mark")?,
            hears_all,
            has_window,
            has_rate,
            window: CongestionWindow::new(&config),
            pacing: None,
            object: object.unbind(),
        };
        rule.look(py)?;
        Ok(rule)
    }

    /// Takes window and rate as the rule has them now.
    fn look(&mut self, py: Python<'_>) -> PyResult<()> {
        let object = self.object.bind(py);
        if self.has_window {
            let packets: f64 = object.getattr(intern!(py, "window_packets"))?.extract()?;
            if packets.is_nan() {
                return Err(PyValueError::new_err("window_packets: nan is not a window"));
            }
            self.window.set(packets.min(NO_LIMIT_PACKETS));
        } else {
            self.window.set(NO_LIMIT_PACKETS);
        }
        if self.has_rate {
            let bps: Option<f64> = object.getattr(intern!(py, "rate_bps"))?.extract()?;
            let rate = bps.filter(|bps| *bps != f64::INFINITY).map(Rate::from_bps).transpose();
            let rate = rate.map_err(|error| PyValueError::new_err(format!("rate_bps: {error}")))?;
            if rate == Some(Rate::ZERO) {
                return Err(PyValueError::new_err("rate_bps: 0 must be above zero"));
            }
            self.pacing = rate;
        }
        Ok(())
    }

    /// Calls one of its methods and looks what it did.
    fn tell(&mut self, call: impl FnOnce(&mut Self, Python<'_>) -> PyResult<()>) {
        let outcome = Python::attach(|py| {
            call(self, py)?;
            self.look(py)
        });
        if let Err(error) = outcome {
            OwnRun::current().fail(error);
        }
    }

    /// TCP's answer for a rule without its own.
    fn set(&self, py: Python<'_>) -> PyResult<()> {
        if self.has_window { self.object.bind(py).setattr("window_packets", self.window.packets()) } else { Ok(()) }
    }
}

impl CongestionController for SessionRule {
    fn window(&self) -> &CongestionWindow {
        &self.window
    }

    fn window_mut(&mut self) -> &mut CongestionWindow {
        &mut self.window
    }

    fn mark_response(&self) -> MarkResponse {
        if self.on_mark.is_some() { MarkResponse::Own(EcnCode::Capable) } else { MarkResponse::None }
    }

    fn on_ack(&mut self, ack: &Ack) {
        if ack.marked_packets > 0 {
            self.tell(|rule, py| {
                let Some(on_mark) = &rule.on_mark else { return Ok(()) };
                on_mark.bind(py).call1((ack.marked_packets, ack.now.as_secs_f64())).map(drop)
            });
        }
        if !self.hears_all && (ack.in_recovery || !ack.window_limited) {
            return;
        }
        // Of a packet that was sent twice nobody knows which one was acknowledged (Karn's rule).
        let rtt = ack.rtt.unwrap_or(ack.smoothed_rtt).max(ack.min_rtt);
        let arguments = (ack.acked_packets, rtt.as_secs_f64(), ack.now.as_secs_f64());
        self.tell(|rule, py| rule.on_ack.bind(py).call1(arguments).map(drop));
    }

    fn on_loss(&mut self, loss: &Loss) {
        self.tell(|rule, py| {
            if let Some(on_loss) = &rule.on_loss {
                return on_loss.bind(py).call1((loss.in_flight_packets, loss.now.as_secs_f64())).map(drop);
            }
            // RFC 5681, Eq. 4.
            rule.window.cut_to(f64::from(loss.in_flight_packets) / 2.0);
            rule.set(py)
        });
    }

    fn on_timeout(&mut self, loss: &Loss) {
        self.tell(|rule, py| {
            if let Some(on_timeout) = &rule.on_timeout {
                return on_timeout.bind(py).call0().map(drop);
            }
            rule.window.begin_again(f64::from(loss.in_flight_packets) / 2.0);
            rule.set(py)
        });
    }

    fn allowance(&self) -> Allowance {
        Allowance { window_packets: self.window.packets(), pacing: self.pacing }
    }
}

/// A node's rule.
struct NodeOfOne {
    allocate: Py<PyAny>,
}

impl NodeOfOne {
    fn call(&self, py: Python<'_>, interval: &Interval, rows: &[Row]) -> PyResult<Vec<Rate>> {
        let column = |of: fn(&Row) -> f64| PyArray1::from_vec(py, rows.iter().map(of).collect());
        let measured = column(|row| row.measured.as_bps());
        let named = PyDict::new(py);
        named.set_item("weights", column(|row| row.terms.weight))?;
        named.set_item("demand_bps", column(|row| row.terms.desired.map_or(f64::INFINITY, Rate::as_bps)))?;
        named.set_item("elapsed_s", interval.elapsed.as_secs_f64())?;
        let given = self.allocate.bind(py).call((interval.capacity.as_bps(), measured), Some(&named))?;
        let given: PyArrayLike1<'_, f64, AllowTypeChange> = given.extract()?;
        let rates: Vec<f64> = given.as_array().to_vec();
        if rates.len() != rows.len() {
            let what = format!("allocate: {} rates for {} sessions", rates.len(), rows.len());
            return Err(PyValueError::new_err(what));
        }
        let rate = |(at, bps): (usize, f64)| {
            Rate::from_bps(bps).map_err(|error| PyValueError::new_err(format!("allocate: rate {at}: {error}")))
        };
        rates.into_iter().enumerate().map(rate).collect()
    }
}

impl RateAllocator for NodeOfOne {
    fn allocate(&mut self, interval: &Interval, rows: &[Row], grants: &mut [Grant]) {
        assert_eq!(rows.len(), grants.len(), "a grant for each row");
        if rows.is_empty() {
            return;
        }
        match Python::attach(|py| self.call(py, interval, rows)) {
            Ok(rates) => {
                for (grant, rate) in grants.iter_mut().zip(rates) {
                    *grant = Grant { expected: rate, target: rate };
                }
            }
            Err(error) => OwnRun::current().fail(error),
        }
    }
}
