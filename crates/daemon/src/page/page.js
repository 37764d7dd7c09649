// The live page: what /events tells once a second, drawn. Words of processes are text, never markup.
"use strict";

const LOOKS = 120; // seconds that the curves show
const history = new Map(); // of a node's name: its looks, oldest first
const byId = (id) => document.getElementById(id);

function rate(bps) {
  if (bps === null || bps === undefined || !Number.isFinite(bps)) return "-";
  for (const [unit, size] of [["Tb/s", 1e12], ["Gb/s", 1e9], ["Mb/s", 1e6], ["kb/s", 1e3]]) {
    if (bps >= size) return `${(bps / size).toFixed(2)} ${unit}`;
  }
  return `${bps.toFixed(0)} b/s`;
}

function element(name, attributes = {}, ...inner) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...inner);
  return made;
}

function drawn(name, attributes = {}, text = "") {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text) made.textContent = text;
  return made;
}

const nameOf = (node) => `${node.card ?? "all cards"} ${node.receives ? "receives" : "sends"}`;

// Curves of one node over the last two minutes.
function chart(looks) {
  const [width, height, left, bottom] = [400, 120, 62, 16];
  const svg = drawn("svg", { viewBox: `0 0 ${width} ${height}`, role: "img" });
  const values = looks.flatMap((look) => [look.capacity_bps, look.measured_bps, look.expected_bps, look.other]);
  const top = 1.1 * Math.max(1, ...values.filter((value) => Number.isFinite(value)));
  const x = (at) => left + ((width - left) * (LOOKS - looks.length + at)) / (LOOKS - 1);
  const y = (bps) => (height - bottom) * (1 - bps / top);
  for (const share of [0, 0.25, 0.5, 0.75, 1]) {
    const at = y((share * top) / 1.1);
    svg.append(drawn("line", { class: "grid", x1: left, x2: width, y1: at, y2: at }));
    svg.append(drawn("text", { x: left - 4, y: at + 3, "text-anchor": "end" }, rate((share * top) / 1.1)));
  }
  for (const seconds of [120, 60, 0]) {
    const at = left + ((width - left) * (120 - seconds)) / 120;
    const anchor = seconds === 0 ? "end" : "start";
    svg.append(drawn("text", { x: at, y: height - 3, "text-anchor": anchor }, seconds === 0 ? "now" : `-${seconds} s`));
  }
  for (const [key, kind] of [["capacity_bps", "capacity"], ["other", "other"], ["expected_bps", "expected"], ["measured_bps", "measured"]]) {
    const points = looks.map((look, at) => [x(at), look[key]]).filter(([, bps]) => Number.isFinite(bps));
    const line = points.map(([at, bps]) => `${at.toFixed(1)},${y(bps).toFixed(1)}`).join(" ");
    if (points.length > 0) svg.append(drawn("polyline", { class: `trace ${kind}`, points: line }));
  }
  return svg;
}

function drawNodes(nodes) {
  const names = new Set(nodes.map(nameOf));
  for (const name of history.keys()) if (!names.has(name)) history.delete(name);
  const cards = nodes.map((node) => {
    const looks = history.get(nameOf(node)) ?? [];
    looks.push({ ...node, other: node.other?.measured_bps });
    if (looks.length > LOOKS) looks.shift();
    history.set(nameOf(node), looks);
    const gap = node.gap_to_max_min === null ? "" : `, gap to max-min ${(100 * node.gap_to_max_min).toFixed(1)} %`;
    const other = node.other ? `, other traffic ${rate(node.other.measured_bps)}` : "";
    const says = `${rate(node.measured_bps)} of ${rate(node.capacity_bps)}, ${node.sessions} sessions${gap}${other}`;
    return element("div", { class: "node" }, element("h3", {}, nameOf(node)), element("p", {}, says), chart(looks));
  });
  byId("nodes").replaceChildren(...cards);
}

// Three bars on top of each other, of the capacity of the node that the session crosses.
function bars(row, capacity) {
  const svg = drawn("svg", { class: "bar", viewBox: "0 0 300 15", height: 15, preserveAspectRatio: "none" });
  svg.append(drawn("rect", { class: "room", x: 0, y: 0, width: 300, height: 15 }));
  const share = (bps) => (300 * Math.min(1, Math.max(0, bps / capacity))).toFixed(1);
  const kinds = [["measured", row.measured_bps], ["expected", row.expected_bps], ["desired", row.desired_bps]];
  kinds.forEach(([kind, bps], at) => {
    if (Number.isFinite(bps) && capacity > 0) svg.append(drawn("rect", { class: kind, x: 0, y: 5 * at, width: share(bps), height: 4 }));
  });
  return svg;
}

function drawSessions(machine) {
  const capacities = new Map(machine.nodes.map((node) => [`${node.card} ${node.receives}`, node.capacity_bps]));
  const largest = Math.max(1, ...machine.sessions.map((row) => row.expected_bps));
  const lines = machine.sessions.map((row) => {
    const capacity = capacities.get(`${row.card} ${row.receives}`) ?? largest;
    const number = (bps) => element("td", { class: "number" }, rate(bps));
    const because = row.state === "shares" ? (row.limited_by ?? "-") : row.state;
    return element("tr", {}, element("td", {}, row.id.slice(0, 8)), element("td", {}, `${row.command} (${row.pid})`),
      element("td", {}, row.receives ? "in" : "out"), element("td", {}, bars(row, capacity)), number(row.measured_bps),
      number(row.expected_bps), number(row.target_bps), number(row.desired_bps), element("td", {}, because));
  });
  byId("sessions").replaceChildren(...lines);
  byId("more").textContent = machine.left_out > 0 ? `and ${machine.left_out} more, which use less` : "";
}

function drawUsers(users) {
  const number = (text) => element("td", { class: "number" }, String(text));
  byId("users").replaceChildren(...users.map((user) => element("tr", {}, element("td", {}, user.name ?? `${user.user}`),
    number(user.processes), number(user.sessions), number(rate(user.sent_bps)), number(rate(user.received_bps)), number(user.weight))));
}

function draw(machine) {
  const ms = (seconds) => `${(seconds * 1e3).toFixed(seconds < 1e-3 ? 3 : 0)} ms`;
  const grace = machine.is_grace ? ", just started: only those who came back have something" : "";
  byId("about").textContent = `shared by ${machine.share_by}, an interval of ${ms(machine.interval_s)}, a tick costs ` +
    `${ms(machine.tick_cost_s)}, up for ${machine.uptime_s.toFixed(0)} s${grace}`;
  drawNodes(machine.nodes);
  drawSessions(machine);
  drawUsers(machine.users);
}

const silent = () => {
  byId("state").textContent = "the daemon does not answer";
};

// With ?once one look is drawn, to be printed or kept; else a look a second.
if (location.search === "?once") {
  fetch("status.json").then((answer) => answer.json()).then(draw, silent);
} else {
  const events = new EventSource("events");
  events.onmessage = (event) => {
    byId("state").textContent = "";
    draw(JSON.parse(event.data));
  };
  events.onerror = silent;
}
