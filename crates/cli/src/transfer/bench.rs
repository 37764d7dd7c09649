//! `fairwave bench`.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration as StdDuration;

use clap::Subcommand;
use fairwave_host::{
    BenchDirection, BenchError, BenchOptions, BenchReport, Carrier, Carriers, ShareId, bench, bench_accept, bench_judge,
};
use fairwave_units::{Duration, Rate};
use serde::Serialize;

use crate::common::failure::{CommandFailure, Done};
use crate::common::interrupt;
use crate::common::output::print_json;
use crate::common::output_args::OutputArgs;
use crate::common::quantity::{positive_rate, positive_time, rate};
use crate::common::screen::Screen;
use crate::common::table::TextTable;
use crate::common::terminal::{self, print};
use crate::transfer::connecting;
use crate::transfer::follow;
use crate::transfer::link::{LinkArgs, NO_SSH, OF_TICKETS};
use crate::transfer::monitor::monitor;
use crate::transfer::offer::ListenArgs;
use crate::transfer::ticket;

/// Max sessions: more measure only overhead.
const MAX_SESSIONS: u64 = 5000;
const EVERY: StdDuration = StdDuration::from_secs(1);

/// Measure the throughput between this machine and another, from memory to memory.
///
/// Run `fairwave bench serve` at one end, which prints a ticket, and `fairwave bench TICKET` at one or more others.
/// With several sessions the result includes Jain's fairness index of their goodputs.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
#[command(after_help = "\
Examples:
  fairwave bench serve > bench.ticket
  fairwave bench @bench.ticket --time \"10 s\" --sessions 4
  fairwave bench @bench.ticket --direction both --json")]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Option<BenchCommand>,
    /// Ticket: @FILE, - for stdin, or its text [default: $FAIRWAVE_TICKET]
    ticket: Option<OsString>,
    /// Duration of the measurement
    #[arg(long, value_name = "T", value_parser = positive_time, default_value = "10 s")]
    time: Duration,
    /// Number of parallel sessions
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=MAX_SESSIONS))]
    sessions: u64,
    /// Direction of the data, seen from this end
    #[arg(long, value_enum, value_name = "WAY", default_value = "send")]
    direction: DirectionArg,
    /// Limit the rate of each session, such as "200 Mb/s"
    #[arg(long, value_name = "RATE", value_parser = positive_rate)]
    limit: Option<Rate>,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    link: LinkArgs,
}

#[derive(Debug, Subcommand)]
enum BenchCommand {
    Serve(ServeArgs),
}

/// Wait for the other end of a measurement, and print the ticket.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  fairwave bench serve > bench.ticket
  fairwave bench serve --listen 192.0.2.7:5000 --capacity \"10 Gb/s\"")]
struct ServeArgs {
    #[command(flatten)]
    listen: ListenArgs,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum DirectionArg {
    /// To the other end
    Send,
    /// From the other end
    Receive,
    /// Both at once
    Both,
}

#[derive(Serialize)]
struct BenchProgressEvent {
    event: &'static str,
    elapsed_s: f64,
    receive_goodput_bps: f64,
    send_wire_bps: f64,
    carrier: Carrier,
}

#[derive(Serialize)]
struct DoneEvent {
    event: &'static str,
    wall_s: f64,
    goodput_bps: f64,
    wire_bps: f64,
    #[serde(rename = "cpu_s_per_GB")]
    cpu_s_per_gb: Cpu,
    lost_packets: u64,
    jain: f64,
    /// Something else than UDP where that carried any of its sessions.
    carrier: Carrier,
    sessions: Vec<FlowReport>,
}

/// CPU time of the two processes.
#[derive(Serialize)]
struct Cpu {
    client: f64,
    server: f64,
}

#[derive(Serialize)]
struct FlowReport {
    session: usize,
    direction: &'static str,
    bytes: u64,
    goodput_bps: f64,
    wire_bps: f64,
    lost_packets: u64,
}

pub(crate) fn run(args: &Args) -> Done {
    match &args.command {
        Some(BenchCommand::Serve(args)) => serve(args),
        None => measure(args),
    }
}

fn serve(args: &ServeArgs) -> Done {
    let screen = Screen::new(args.listen.output);
    let offered = args.listen.open(ShareId::of(["bench"], false), false)?;
    let session = args.listen.link.session();
    offered.bound.endpoint.listen_with(Arc::clone(&offered.keyring), bench_judge(session), bench_accept(session));
    let _socket = monitor(&screen, "bench serve", &offered.bound, Vec::new);
    interrupt::be_gentle();
    offered.print_ticket(&screen, "fairwave bench @FILE")?;
    while !interrupt::is_asked() {
        std::thread::sleep(StdDuration::from_millis(50));
    }
    offered.bound.endpoint.close();
    Ok(())
}

fn measure(args: &Args) -> Done {
    let screen = Screen::new(args.output);
    let ticket = match &args.ticket {
        Some(word) => ticket::read(word)?,
        None => ticket::from_environment().unwrap_or_else(|| {
            Err(CommandFailure::usage(
                "bench: missing ticket",
                "run `fairwave bench serve` on the other machine to get one",
            ))
        })?,
    };
    args.link.check_carrier("bench", &OF_TICKETS, NO_SSH)?;
    let bound = args.link.bind(ticket.addresses.first().map(SocketAddr::ip))?;
    let _socket = monitor(&screen, "bench", &bound, Vec::new);
    let options = BenchOptions {
        time: StdDuration::from_nanos(args.time.as_nanos()),
        sessions: args.sessions as usize,
        direction: match args.direction {
            DirectionArg::Send => BenchDirection::Send,
            DirectionArg::Receive => BenchDirection::Receive,
            DirectionArg::Both => BenchDirection::Both,
        },
        limit: args.limit,
        session: args.link.session(),
        every: EVERY,
    };
    screen.note(&format!("capacity {}", bound.capacity));
    let mut reported = Ok(());
    let mut is_priced = args.link.carrier != Carriers::Any;
    let mut tell_price = |carrier| {
        if let Some(price) = follow::price(&connecting::places(&ticket), carrier, None).filter(|_| !is_priced) {
            is_priced = true;
            screen.note(&price);
        }
    };
    let report = connecting::patiently(&screen, &ticket, |answered| {
        bench(&bound.endpoint, &ticket, &options, &mut |progress| {
            answered();
            tell_price(progress.carrier);
            let (elapsed_s, receive_bps, send_bps) =
                (progress.elapsed.as_secs_f64(), progress.receive_bps, progress.send_wire_bps);
            if args.output.json {
                let event = BenchProgressEvent {
                    event: "progress",
                    elapsed_s,
                    receive_goodput_bps: receive_bps,
                    send_wire_bps: send_bps,
                    carrier: progress.carrier,
                };
                if reported.is_ok() {
                    reported = print_json(&event).and_then(|()| terminal::flush());
                }
            } else {
                let line =
                    format!("{elapsed_s:5.1} s  sent {:>12}  received {:>12}", rate(send_bps), rate(receive_bps));
                screen.say(&line);
            }
        })
    });
    bound.endpoint.close();
    reported?;
    let report = report.map_err(|error| match error {
        BenchError::Connect(error) => connecting::failure(&error, &ticket),
        error => CommandFailure::Run(error.to_string()),
    })?;
    tell_price(report.carrier);
    if args.output.json { print_json(&event(&report)) } else { print(&text(&report)) }
}

fn event(report: &BenchReport) -> DoneEvent {
    let sessions = report.flows.iter().map(|flow| FlowReport {
        session: flow.session,
        direction: if flow.is_sent { "send" } else { "receive" },
        bytes: flow.bytes,
        goodput_bps: flow.goodput_bps,
        wire_bps: flow.wire_bps,
        lost_packets: flow.lost_packets,
    });
    let [client, server] = report.cpu_s_per_gb;
    DoneEvent {
        event: "done",
        wall_s: report.wall_s,
        goodput_bps: report.goodput_bps,
        wire_bps: report.wire_bps,
        cpu_s_per_gb: Cpu { client, server },
        lost_packets: report.lost_packets,
        jain: report.jain,
        carrier: report.carrier,
        sessions: sessions.collect(),
    }
}

fn text(report: &BenchReport) -> String {
    let mut table = TextTable::new(&[">session", "direction", ">goodput", ">wire", ">lost packets"]);
    for flow in &report.flows {
        table.row([
            flow.session.to_string(),
            if flow.is_sent { "send".into() } else { "receive".into() },
            rate(flow.goodput_bps),
            rate(flow.wire_bps),
            flow.lost_packets.to_string(),
        ]);
    }
    let [client, server] = report.cpu_s_per_gb;
    format!(
        "{}\n  goodput {}, wire {}, {} packets lost in {:.1} s; Jain {:.4}\n  CPU seconds per GB: {client:.2} here, {server:.2} there\n",
        table.render(2),
        rate(report.goodput_bps),
        rate(report.wire_bps),
        report.lost_packets,
        report.wall_s,
        report.jain
    )
}
