"use strict";
/* Updates the page from a stream of views: the server sends all texts and numbers, and this script shows them. */

(() => {
  const SILENCE = 10000; // milliseconds without a message, after which the stream is lost
  const LONGEST_WAIT = 15; // seconds between two attempts
  const GAP = 10; // buckets without a play, over which no line is drawn
  const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1440, 2880, 10080, 20160, 40320, 120960, 524160].map(
    (minutes) => 60 * minutes, // between two labels of the time axis
  );
  const SVG = "http://www.w3.org/2000/svg";
  const CHARTS = typeof uPlot === "function";

  const body = document.body;
  const byId = (id) => document.getElementById(id);
  const written = new Map(); // what each table shows, as text
  let latest = null;

  /* Words and tables */

  function show(view) {
    latest = view;
    for (const place of document.querySelectorAll("[data-text]")) {
      const text = view.texts[place.dataset.text];
      if (text !== undefined && place.textContent !== text) place.textContent = text;
    }
    for (const place of document.querySelectorAll("[data-show]")) {
      place.hidden = !view.flags[place.dataset.show];
    }
    byId("verdict").dataset.tone = view.tone;
    showNotices(view.notices);
    for (const place of document.querySelectorAll("[data-rows]")) showRows(place);
    showHistogram(view.bars);
    if (CHARTS) showCharts(view);
  }

  function showNotices(notices) {
    const text = JSON.stringify(notices);
    if (written.get("notices") === text) return; // a banner that is written again is read out again
    written.set("notices", text);
    byId("notices").replaceChildren(...notices.map(banner));
  }

  function banner(notice) {
    const box = document.createElement("div");
    box.className = `banner ${notice.tone}`;
    box.setAttribute("role", notice.tone === "bad" ? "alert" : "status");
    const title = document.createElement("strong");
    title.textContent = notice.title;
    box.append(title, ` ${notice.text} `, span("note", notice.since));
    return box;
  }

  function showRows(place) {
    const details = place.closest("details");
    if (details && !details.open) return;
    const name = place.dataset.rows;
    const rows = latest.tables[name] ?? pointRows(latest.points);
    const text = JSON.stringify(rows);
    if (written.get(name) === text) return;
    written.set(name, text);
    const kinds = place.dataset.kinds.split(" ");
    place.replaceChildren(...rows.map((cells) => row(cells, kinds)));
  }

  function pointRows(points) {
    return [...points].reverse().map((point) => [
      { text: `${new Date(point.time).toISOString().slice(0, 16).replace("T", " ")} UTC` },
      { text: reward(point.played) },
      { text: reward(point.baseline) },
      { text: reward(point.uniform) },
      { text: point.decided.toLocaleString("en") },
    ]);
  }

  function row(cells, kinds) {
    const line = document.createElement("tr");
    cells.forEach((cell, at) => {
      const box = document.createElement(at ? "td" : "th");
      if (!at) box.scope = "row";
      box.className = kinds[at];
      fill(box, cell);
      line.append(box);
    });
    return line;
  }

  function fill(box, cell) {
    if (cell.text) {
      const text = span("text", cell.text);
      text.title = cell.text;
      if (cell.tone) {
        const swatch = span(`swatch ${cell.tone}`, "");
        swatch.setAttribute("aria-hidden", "true");
        text.prepend(swatch);
      }
      box.append(text);
    }
    if (cell.note) box.append(span("note", cell.note));
    if (cell.bar !== undefined) {
      box.append(drawing("bar", [["rect", { width: `${cell.bar}%`, height: "100%", rx: 2 }]]));
    }
    if (cell.span) {
      const [low, middle, high] = cell.span.map((end) => `${end}%`);
      box.append(
        drawing(`span ${cell.tone}`, [
          ["line", { x1: low, x2: high, y1: "50%", y2: "50%" }],
          ["circle", { cx: middle, cy: "50%", r: 5 }],
        ]),
      );
    }
  }

  function span(kind, text) {
    const made = document.createElement("span");
    made.className = kind;
    made.textContent = text;
    return made;
  }

  function drawing(kind, shapes) {
    const svg = document.createElementNS(SVG, "svg");
    svg.setAttribute("class", kind);
    svg.setAttribute("aria-hidden", "true");
    for (const [name, attributes] of shapes) {
      const shape = document.createElementNS(SVG, name);
      for (const [key, value] of Object.entries(attributes)) shape.setAttribute(key, value);
      svg.append(shape);
    }
    return svg;
  }

  function showHistogram(heights) {
    const bars = byId("histogram").children;
    heights.forEach((height, at) => {
      if (!bars[at]) return;
      bars[at].setAttribute("y", `${100 - height}%`);
      bars[at].setAttribute("height", `${height}%`);
    });
  }

  for (const details of document.querySelectorAll("details")) {
    details.addEventListener("toggle", () => {
      if (latest && details.open) details.querySelectorAll("[data-rows]").forEach(showRows);
    });
  }

  /* Charts */

  const charts = new Map();

  function showCharts(view) {
    if (!view.points.length) return clearCharts();
    const [rewards, plays] = series(view);
    draw("rewards-chart", rewardOptions, rewards);
    draw("plays-chart", playOptions, plays);
  }

  function clearCharts() {
    for (const [id, chart] of charts) {
      resizes.unobserve(byId(id));
      chart.destroy();
    }
    charts.clear();
    const empty = span("waiting", "No decision in this time.");
    byId("rewards-chart").replaceChildren(empty);
  }

  function series(view) {
    const length = view.bucket_minutes * 60;
    const times = [], played = [], baseline = [], uniform = [], plays = [];
    for (const point of view.points) {
      const time = point.time / 1000;
      const before = times[times.length - 1];
      if (before !== undefined && time - before > GAP * length) {
        times.push(before + length);
        for (const values of [played, baseline, uniform, plays]) values.push(null);
      }
      times.push(time);
      played.push(point.played);
      baseline.push(point.baseline);
      uniform.push(point.uniform);
      plays.push(point.decided / view.bucket_minutes);
    }
    return [[times, played, baseline, uniform], [times, plays]];
  }

  function draw(id, options, data) {
    const place = byId(id);
    if (!place.clientWidth) return; // not to be seen yet
    if (charts.has(id)) {
      charts.get(id).setData(data);
    } else {
      place.replaceChildren();
      charts.set(id, new uPlot(options(place.clientWidth), data, place));
      resizes.observe(place);
    }
    const chart = charts.get(id);
    if (chart.cursor.idx == null) chart.setLegend({ idx: data[0].length - 1 }, false);
  }

  const resizes = new ResizeObserver((entries) => {
    for (const { target } of entries) {
      const chart = charts.get(target.id);
      if (chart && target.clientWidth && chart.width !== target.clientWidth) {
        chart.setSize({ width: target.clientWidth, height: chart.height });
      }
    }
  });

  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  const reward = (value) => (value == null ? "–" : value.toFixed(3).replace("-", "−"));

  function common(width, height) {
    const axis = { stroke: colour("soft"), grid: { stroke: colour("grid"), width: 1 }, ticks: { show: false }, font: "12px system-ui, sans-serif" };
    return {
      width,
      height,
      tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), "Etc/UTC"),
      cursor: { sync: { key: "time" }, drag: { x: false, y: false }, y: false },
      scales: { x: { range: (chart) => ends(chart.data[0]) } },
      padding: [10, 14, null, 0],
      axes: [{ ...axis, grid: { show: false }, space: 72, incrs: STEPS, values: times }, { ...axis, size: 46 }],
    };
  }

  // A line at each drift alarm.
  function drawMarks(chart) {
    const { ctx, bbox } = chart;
    ctx.save();
    ctx.strokeStyle = ctx.fillStyle = colour("bad");
    ctx.font = `${11 * devicePixelRatio}px system-ui, sans-serif`;
    ctx.setLineDash([4, 4]);
    for (const time of latest.marks) {
      const x = chart.valToPos(time / 1000, "x", true);
      if (x < bbox.left || x > bbox.left + bbox.width) continue;
      ctx.beginPath();
      ctx.moveTo(x, bbox.top);
      ctx.lineTo(x, bbox.top + bbox.height);
      ctx.stroke();
      ctx.textAlign = x > bbox.left + bbox.width / 2 ? "right" : "left";
      ctx.fillText(" drift alarm ", x, bbox.top + 12 * devicePixelRatio);
    }
    ctx.restore();
  }

  function ends(seconds) {
    const first = seconds[0], last = seconds[seconds.length - 1];
    if (last - first < 300) return [first - 150, last + 150];
    const half = 30 * latest.bucket_minutes; // so that the outer bars are whole
    return [first - half, last + half];
  }

  function times(_, ticks) {
    let day = "";
    return ticks.map((tick) => {
      const [date, clock] = new Date(tick * 1000).toISOString().split("T");
      const shown = date === day ? clock.slice(0, 5) : `${clock.slice(0, 5)}\n${date}`;
      day = date;
      return shown;
    });
  }

  function rewardOptions(width) {
    const line = (label, name, dash) => ({
      label,
      stroke: colour(name),
      width: name === "played" ? 2.25 : 1.75,
      dash,
      value: (_, value) => reward(value),
      points: { show: (chart) => chart.data[0].length < 4 },
    });
    const options = common(width, 270);
    options.axes[1].values = (_, ticks) => ticks.map((tick) => String(tick).replace("-", "−"));
    options.legend = { markers: { width: 0, fill: (chart, at) => chart.series[at].stroke(chart, at) } };
    options.scales.y = { range: (_, low, high) => (low == null ? [0, 1] : uPlot.rangeNum(low, high, 0.08, true)) };
    options.hooks = { draw: [drawMarks] };
    options.series = [
      { label: "UTC", value: "{YYYY}-{MM}-{DD} {HH}:{mm}" },
      line("As played", "played"),
      line("Baseline action", "baseline", [7, 4]),
      line("Uniform play", "uniform", [2, 3]),
    ];
    return options;
  }

  function playOptions(width) {
    const options = common(width, 110);
    options.legend = { show: false };
    options.scales.y = { range: (_, low, high) => [0, Math.max(high, 1) * 1.1] };
    options.series = [
      {},
      { label: "Plays per minute", fill: colour("uniform"), width: 0, paths: uPlot.paths.bars({ size: [0.8, 12] }), points: { show: false } },
    ];
    options.axes[0].show = false;
    options.axes[1].splits = (chart) => [0, chart.scales.y.max / 1.1];
    options.axes[1].values = (_, ticks) => ticks.map((tick) => Math.round(tick).toLocaleString("en"));
    return options;
  }

  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    for (const chart of charts.values()) chart.destroy();
    charts.clear();
    if (latest && CHARTS) showCharts(latest);
  });

  /* The stream */

  let stream = null;
  let attempts = 0;
  let lostAt = null;
  let silence = 0;
  let next = 0;

  function connect() {
    clearTimeout(next);
    clearInterval(next);
    if (stream) stream.close();
    if (lostAt === null) state("connecting", "Connecting…");
    stream = new EventSource(`/dashboard/events${location.search}`);
    stream.onmessage = (event) => {
      attempts = 0;
      lostAt = null;
      byId("lost").hidden = true;
      state("live", "Live");
      listen();
      show(JSON.parse(event.data));
    };
    stream.onerror = lose;
    listen();
  }

  function listen() {
    clearTimeout(silence);
    silence = setTimeout(lose, SILENCE);
  }

  async function lose() {
    clearTimeout(silence);
    stream.close();
    lostAt = lostAt ?? new Date();
    attempts += 1;
    const status = await fetch("/dashboard/events", { method: "HEAD", cache: "no-store" }).then(
      (answer) => answer.status,
      () => 0,
    );
    if (status === 401) {
      lost("You are signed out.", "These numbers do not move any more.");
      byId("lost-login").hidden = false;
      return;
    }
    wait(Math.min(2 ** (attempts - 1), LONGEST_WAIT), status);
  }

  function wait(seconds, status) {
    const since = lostAt.toLocaleTimeString("en-GB");
    const what = status === 503 ? "Too many pages are open." : `No connection to the service since ${since}.`;
    const tell = () => lost(what, `These numbers are from before. Next attempt in ${seconds} s.`);
    tell();
    clearInterval(next);
    next = setInterval(() => {
      seconds -= 1;
      if (seconds > 0) tell();
      else connect();
    }, 1000);
  }

  function lost(what, then) {
    state("lost", "Not connected");
    byId("lost-what").textContent = what;
    byId("lost-next").textContent = then;
    byId("lost").hidden = false;
  }

  function state(name, words) {
    body.dataset.stream = name;
    if (byId("live").textContent !== words) byId("live").textContent = words;
  }

  function pause() {
    clearTimeout(silence);
    clearInterval(next);
    if (stream) stream.close();
  }

  // A page in the background takes no place of those who look.
  document.addEventListener("visibilitychange", () => (document.hidden ? pause() : connect()));
  addEventListener("pagehide", pause);
  connect();
})();
