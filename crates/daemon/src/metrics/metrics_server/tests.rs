use std::sync::mpsc::{Sender, channel};

use fairwave_testing::{LIMIT, wait_for, wait_until_asleep};

use super::*;
use fairwave_host::machine::{NodeSnapshot, RowSnapshot};

const ANY: &str = "127.0.0.1:0";

fn server() -> MetricsServer {
    let begun = Instant::now();
    serve(ANY.parse().unwrap(), move || {
        let row = RowSnapshot { command: "get".into(), peer: "192.0.2.7".parse().ok(), ..RowSnapshot::default() };
        let nodes = vec![NodeSnapshot { capacity_bps: 7e8, ..NodeSnapshot::default() }];
        let uptime_s = begun.elapsed().as_secs_f64();
        Arc::new(MachineSnapshot { uptime_s, nodes, sessions: vec![row], ..MachineSnapshot::default() })
    })
    .unwrap()
}

fn open(server: &MetricsServer, request: &str) -> TcpStream {
    let mut stream = TcpStream::connect(server.address()).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    stream
}

/// The whole answer to a request.
fn ask(server: &MetricsServer, request: &str) -> String {
    let mut text = String::new();
    open(server, request).read_to_string(&mut text).unwrap();
    text
}

fn get(server: &MetricsServer, path: &str) -> String {
    ask(server, &format!("GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", server.address()))
}

#[test]
fn serve__answers_its_pages_and_no_others() {
    let server = server();
    for (path, says) in [
        ("/", "<!doctype html>"),
        ("/page.js", "EventSource"),
        ("/page.css", "font"),
        ("/metrics", "\nfairwave_node_capacity_bps{card=\"all\",direction=\"send\"} 700000000\n"),
        ("/status.json", "\"capacity_bps\":700000000.0"),
    ] {
        let answer = get(&server, path);
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{path}: {answer}");
        assert!(answer.contains(says), "{path}: {answer}");
        assert!(answer.contains("Content-Security-Policy: default-src 'none'"), "{path}");
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(&format!("Content-Length: {}\r\n", body.len())), "{path}: {head}");
    }
    assert!(get(&server, "/../etc/passwd").starts_with("HTTP/1.1 404 Not Found\r\n"));
    let only_head = ask(&server, "HEAD / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert!(only_head.ends_with("\r\n\r\n") && only_head.contains("Content-Length: "), "{only_head}");
    // Any client that reaches the port may terms: peers are not shown.
    assert!(!get(&server, "/status.json").contains("192.0.2.7"));
}

#[test]
fn serve__refuses_other_hosts_and_other_methods() {
    let server = server();
    let refused = |request: &str| ask(&server, request).lines().next().unwrap().to_owned();
    assert_eq!(refused("GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n"), "HTTP/1.1 421 Misdirected Request");
    assert_eq!(refused("POST / HTTP/1.1\r\nHost: localhost\r\n\r\n"), "HTTP/1.1 405 Method Not Allowed");
    assert_eq!(refused("\r\n\r\n"), "HTTP/1.1 400 Bad Request");
}

#[test]
fn serve__half_a_request_is_waited_for_no_longer_than_five_seconds() {
    assert_eq!(LONGEST, Duration::from_secs(5));
    let server = server();
    let begun = Instant::now();
    let mut half = open(&server, "GET / HTTP/1.1\r\nHost: loc");
    let mut text = String::new();
    // Its answer does not matter: it does not keep its slot.
    let _ = half.read_to_string(&mut text);
    assert!(begun.elapsed() >= LONGEST && !text.starts_with("HTTP/1.1 200"), "{text}");
    wait_for("its place is free", || server.shared.open.load(Ordering::SeqCst) == 0);
}

#[test]
fn serve__a_head_without_end_is_refused() {
    let server = server();
    let mut stream = open(&server, "GET / HTTP/1.1\r\n");
    let mut answer = [0; 64];
    let line = format!("X: {}\r\n", "x".repeat(1000));
    // It may be gone while the rest is still sent.
    let _ = (0..9).try_for_each(|_| stream.write_all(line.as_bytes()));
    if let Ok(read) = stream.read(&mut answer) {
        let text = String::from_utf8_lossy(&answer[..read]);
        assert!(read == 0 || text.starts_with("HTTP/1.1 431"), "{text}");
    }
    assert!(get(&server, "/").starts_with("HTTP/1.1 200"));
}

/// Reads a stream of events up to the n-th that has data: the data.
fn event(stream: &mut TcpStream, n: usize) -> serde_json::Value {
    let (mut text, mut room) = (String::new(), [0; 4096]);
    loop {
        let whole: Vec<&str> = text.split("\n\n").collect();
        let events: Vec<&str> = whole[..whole.len() - 1].iter().filter_map(|one| one.strip_prefix("data: ")).collect();
        if let Some(event) = events.get(n) {
            return serde_json::from_str(event).unwrap();
        }
        let read = stream.read(&mut room).unwrap();
        assert!(read > 0, "the stream ended: {text}");
        text.push_str(std::str::from_utf8(&room[..read]).unwrap());
    }
}

#[test]
fn events__tell_again_and_again_what_there_is() {
    let server = server();
    let mut stream = open(&server, "GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let second = event(&mut stream, 1);
    assert_eq!(second["nodes"][0]["capacity_bps"], 7e8);
    assert_eq!((second["left_out"].as_u64(), second["sessions"][0]["command"].as_str()), (Some(0), Some("get")));
    assert!(second["uptime_s"].as_f64().unwrap() >= 0.9, "{second}");
    // A server that stops ends its watchers.
    drop(server);
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).unwrap();
}

fn watcher(server: &MetricsServer) -> TcpStream {
    let mut stream = open(server, "GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n");
    event(&mut stream, 0);
    stream
}

/// They stay as long as they like: a tab of a browser may open as many as it can.
#[test]
fn events__watchers_leave_room_for_scrapes() {
    let server = server();
    let watchers: Vec<TcpStream> = (0..MAX_WATCHERS).map(|_| watcher(&server)).collect();
    for _ in MAX_WATCHERS..2 * MAX_CONNECTIONS {
        let mut more = open(&server, "GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n");
        let mut text = String::new();
        more.read_to_string(&mut text).unwrap();
        assert!(text.starts_with("HTTP/1.1 503"), "{text}");
    }
    assert!(get(&server, "/metrics").starts_with("HTTP/1.1 200"));
    drop(watchers);
}

#[test]
fn serve__one_too_many_takes_nothing_from_the_others() {
    let server = server();
    let mut watchers: Vec<TcpStream> = (0..MAX_WATCHERS).map(|_| watcher(&server)).collect();
    // Others have said the half of a request.
    watchers.extend((MAX_WATCHERS..MAX_CONNECTIONS).map(|_| open(&server, "GET / HTTP/1.1\r\n")));
    // The answer may be lost with the unread request.
    let mut more = open(&server, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let mut text = String::new();
    let came = more.read_to_string(&mut text);
    assert!(came.is_err() || text.starts_with("HTTP/1.1 503"), "{text}");
    drop(watchers);
    // Their slots are free after a period, when they are found to be gone.
    wait_for("a connection is free", || get_or_nothing(&server).starts_with("HTTP/1.1 200"));
}

#[test]
fn metrics__many_who_scrape_at_once_cost_one_look() {
    const SCRAPERS: usize = 16;
    let looks = Arc::new(AtomicUsize::new(0));
    let (counted, (tell, threads)) = (Arc::clone(&looks), channel());
    let threads = Mutex::new(threads);
    let look = move || {
        if counted.fetch_add(1, Ordering::SeqCst) == 0 {
            // This one takes as long as it takes all others to come.
            let own = rustix::thread::gettid();
            let threads = threads.lock().unwrap();
            threads.iter().take(SCRAPERS).filter(|thread| *thread != own).for_each(wait_until_asleep);
        }
        Arc::new(MachineSnapshot::default())
    };
    let shared = Shared::new(Box::new(look), true);
    let scrape = |tell: Sender<_>| {
        tell.send(rustix::thread::gettid()).unwrap();
        shared.prometheus()
    };
    thread::scope(|scope| {
        let spawn = |_| {
            let (tell, scrape) = (tell.clone(), &scrape);
            scope.spawn(move || scrape(tell))
        };
        let scrapers: Vec<_> = (0..SCRAPERS).map(spawn).collect();
        for scraper in scrapers {
            assert!(scraper.join().unwrap().contains("fairwave_daemon_ticks_total 0"));
        }
    });
    assert_eq!(looks.load(Ordering::SeqCst), 1);
}

#[test]
fn write_until__ends_in_time_for_who_takes_a_byte_now_and_then() {
    let listener = TcpListener::bind(ANY).unwrap();
    let mut reader = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (stream, _) = listener.accept().unwrap();
    let is_over = std::sync::atomic::AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            // Each read makes room for another write.
            let mut room = vec![0; 64 * 1024];
            while !is_over.load(Ordering::SeqCst) && reader.read(&mut room).is_ok_and(|read| read > 0) {
                thread::sleep(Duration::from_millis(20));
            }
        });
        // More than buffers hold, and than is taken in a minute.
        let (begin, bytes) = (Instant::now(), vec![0; 256 << 20]);
        let result = write_until(&stream, &bytes, begin + Duration::from_millis(500));
        is_over.store(true, Ordering::SeqCst);
        assert_eq!(result.unwrap_err().kind(), io::ErrorKind::TimedOut);
        drop(stream);
    });
}

fn get_or_nothing(server: &MetricsServer) -> String {
    let mut text = String::new();
    let _ = open(server, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").read_to_string(&mut text);
    text
}

/// Names of browsers of the family that can print the DOM they have drawn.
const BROWSERS: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];

#[test]
fn page__is_drawn_by_a_browser() {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let found = BROWSERS.iter().flat_map(|name| std::env::split_paths(&paths).map(move |place| place.join(name)));
    let Some(browser) = found.into_iter().find(|path| path.is_file()) else {
        println!("skipped: there is no chromium here");
        return;
    };
    let server = serve(ANY.parse().unwrap(), || Arc::new(super::super::text::tests::machine())).unwrap();
    let profile = tempfile::tempdir().unwrap();
    let output = std::process::Command::new(&browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=5000", "--dump-dom"])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .arg(format!("http://{}/?once", server.address()))
        .output()
        .unwrap();
    let (drawn, said) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    for there in [
        // The node's curve, its words, a bar of a quarter of its capacity or so, and what limits the session.
        "<polyline class=\"trace measured\"",
        "250.00 Mb/s of 700.00 Mb/s, 1 sessions, gap to max-min 25.0 %, other traffic 100.00 Mb/s",
        "<rect class=\"measured\" x=\"0\" y=\"0\" width=\"107.1\"",
        "<td>get (77)</td>",
        "<td>peer node</td>",
        "<td>ann</td>",
    ] {
        assert!(drawn.contains(there), "{there} is not in\n{drawn}\n{said}");
    }
}
