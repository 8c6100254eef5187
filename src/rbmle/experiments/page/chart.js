"use strict";
// Regret curves: point at a round or a line, and the legend says each policy's regret there.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const hidden = new Set(); // policies, in all charts
  const bands = 3; // of the best policies; the others have theirs when they are pointed at
  const near = 24; // pixels from a line within which it is pointed at
  const gap = 15; // pixels between two names at the ends of lines
  const letter = 6.8; // pixels, the width of one in the mean
  const figures = [...document.querySelectorAll("figure.chart")];
  const charts = figures.map((figure, place) => chart(figure, data.charts[place]));
  const toggle = document.getElementById("bands");
  if (toggle) toggle.addEventListener("click", () => {
    const all = document.body.classList.toggle("all-bands");
    toggle.setAttribute("aria-pressed", all);
  });

  function chart(figure, problem) {
    const svg = figure.querySelector(".plot svg");
    const readout = figure.querySelector(".legend p");
    const last = problem.rounds.length - 1;
    const values = new Map();
    const buttons = new Map();
    let at = last; // the point whose regrets the legend shows
    let scale = null;

    for (const line of problem.lines) legendEntry(line);
    svg.addEventListener("pointermove", point);
    svg.addEventListener("pointerdown", point);
    svg.addEventListener("pointerleave", () => { show(last); focus(null); });
    svg.addEventListener("keydown", key);
    new ResizeObserver(draw).observe(svg.parentElement);
    draw();
    return { draw };

    function legendEntry(line) {
      const button = element("button", { type: "button" });
      const swatch = shape("svg", { width: 44, height: 10, "aria-hidden": "true" });
      swatch.append(shape("line", { x1: 1, x2: 43, y1: 5, y2: 5, ...stroke(line.policy) }));
      const name = element("span", { class: "name" }, line.title);
      const value = element("span", { class: "value" });
      button.append(swatch, name, value);
      button.addEventListener("click", () => hide(line.policy));
      for (const type of ["pointerenter", "focus"]) button.addEventListener(type, () => focus(line.policy));
      for (const type of ["pointerleave", "blur"]) button.addEventListener(type, () => focus(null));
      const item = element("li", {});
      item.append(button);
      figure.querySelector(".legend ul").append(item);
      values.set(line.policy, value);
      buttons.set(line.policy, button);
    }

    function draw() {
      const width = Math.max(svg.parentElement.clientWidth, 240);
      const height = Math.min(Math.max(width * 0.58, 260), 420);
      const shown = problem.lines.filter((line) => !hidden.has(line.policy));
      const ranked = [...shown].sort((a, b) => a.mean[last] - b.mean[last]);
      const best = new Set(ranked.slice(0, bands).map((line) => line.policy));
      const named = width >= 560;
      const longest = Math.max(0, ...shown.map((line) => line.title.length + 2));
      const room = Math.min(longest, Math.floor((width * 0.3) / letter)); // letters of a name
      const margin = { top: 10, right: named ? 24 + room * letter : 14, bottom: 40, left: 68 };
      const top = highest(shown, best) || 1;
      const end = problem.rounds[last];
      const right = width - margin.right;
      const floor = height - margin.bottom;
      const x = (round) => margin.left + (round / end) * (right - margin.left);
      const y = (regret) => floor - (Math.min(Math.max(regret, 0), top) / top) * (floor - margin.top);
      scale = { x, y, end, left: margin.left, right, shown };
      svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
      svg.setAttribute("height", height);
      svg.replaceChildren();
      for (const tick of ticks(top, 5)) {
        svg.append(shape("line", { class: "grid", x1: margin.left, x2: right, y1: y(tick), y2: y(tick) }));
        text(svg, margin.left - 8, y(tick) + 4, number(tick), "end");
      }
      for (const tick of ticks(end, width < 500 ? 4 : 6)) {
        svg.append(shape("line", { class: "grid", x1: x(tick), x2: x(tick), y1: margin.top, y2: floor }));
        text(svg, x(tick), floor + 17, number(tick), !named && x(tick) > right - 20 ? "end" : "middle");
      }
      text(svg, (margin.left + right) / 2, height - 6, "round", "middle");
      const axis = text(svg, 0, 0, "cumulative regret", "middle");
      axis.setAttribute("transform", `translate(12 ${(margin.top + floor) / 2}) rotate(-90)`);
      const places = spread(shown.map((line) => floor - y(line.mean[last])), gap, floor - margin.top);
      shown.forEach((line, i) => {
        const group = shape("g", { class: best.has(line.policy) ? "policy best" : "policy" });
        group.dataset.policy = line.policy;
        if (line.std) group.append(shape("path", { class: "band", d: band(line, x, y), fill: data.styles[line.policy].colour }));
        const inside = problem.rounds.map((r, j) => [r, line.mean[j]]).filter((p) => p[1] <= top);
        const d = "M" + inside.map(([r, mean]) => `${x(r)},${y(mean)}`).join("L");
        if (inside.length) group.append(shape("path", { class: "line", d, ...stroke(line.policy) }));
        if (named) name(group, line, floor - places[i]);
        svg.append(group);
      });
      svg.append(shape("line", { class: "cursor", y1: margin.top, y2: floor }));
      for (const [policy, button] of buttons) button.setAttribute("aria-pressed", !hidden.has(policy));
      show(at);

      function name(group, line, height) {
        const beyond = line.mean[last] > top;
        const from = beyond ? height : y(line.mean[last]);
        const d = `M${right},${from}L${right + 16},${height}`;
        if (!beyond) group.append(shape("path", { class: "leader", d, stroke: data.styles[line.policy].colour }));
        const short = line.title.length + 2 > room ? `${line.title.slice(0, room - 3)}…` : line.title;
        text(group, right + 20, height + 4, beyond ? `${short} ↑` : short, "start");
      }
    }

    function highest(shown, best) {
      const others = shown.filter((line) => line.policy !== data.reference);
      const worst = Math.max(0, ...others.map((line) => line.mean[last]));
      const reference = shown.find((line) => line.policy === data.reference);
      if (worst && reference && reference.mean[last] > data.clipped * worst) return data.room * worst;
      const tops = shown.map((line) => line.mean[last] + (line.std && best.has(line.policy) ? line.std[last] : 0));
      return Math.max(...tops, 0) * 1.03;
    }

    function band(line, x, y) {
      const there = problem.rounds.map((r, i) => `${x(r)},${y(line.mean[i] + line.std[i])}`);
      const back = problem.rounds.map((r, i) => `${x(r)},${y(line.mean[i] - line.std[i])}`);
      return `M${there.join("L")}L${back.reverse().join("L")}Z`;
    }

    function focus(policy) {
      svg.classList.toggle("focused", policy !== null && !hidden.has(policy));
      for (const group of svg.querySelectorAll("g.policy")) group.classList.toggle("chosen", group.dataset.policy === policy);
      for (const [each, button] of buttons) button.classList.toggle("chosen", each === policy);
    }

    function show(point) {
      at = Math.min(Math.max(point, 0), last);
      const round = problem.rounds[at];
      const cursor = svg.querySelector(".cursor");
      cursor.setAttribute("x1", scale.x(round));
      cursor.setAttribute("x2", scale.x(round));
      cursor.setAttribute("visibility", at === last ? "hidden" : "visible");
      readout.textContent = `Regret after round ${number(round)}, mean ± std`;
      for (const line of problem.lines) {
        const std = line.std ? line.std[at].toFixed(1) : "–";
        values.get(line.policy).textContent = `${line.mean[at].toFixed(1)} ± ${std}`;
      }
      svg.setAttribute("aria-valuenow", round);
      svg.setAttribute("aria-valuetext", `round ${number(round)}`);
    }

    function point(event) {
      const box = svg.getBoundingClientRect();
      const round = ((event.clientX - box.left - scale.left) / (scale.right - scale.left)) * scale.end;
      let closest = 0;
      problem.rounds.forEach((r, i) => {
        if (Math.abs(r - round) < Math.abs(problem.rounds[closest] - round)) closest = i;
      });
      show(closest);
      const away = (line) => Math.abs(scale.y(line.mean[closest]) - (event.clientY - box.top));
      const [line] = [...scale.shown].sort((a, b) => away(a) - away(b));
      focus(line && away(line) <= near ? line.policy : null);
    }

    function key(event) {
      const far = Math.max(Math.round(last / 10), 1);
      const moves = {
        ArrowLeft: at - 1, ArrowDown: at - 1, ArrowRight: at + 1, ArrowUp: at + 1,
        PageDown: at - far, PageUp: at + far, Home: 0, End: last,
      };
      if (!(event.key in moves)) return;
      event.preventDefault();
      show(moves[event.key]);
    }
  }

  function hide(policy) {
    if (!hidden.delete(policy)) hidden.add(policy);
    for (const each of charts) each.draw();
  }

  // The heights moved as little as keeps neighbours a gap apart, as in labels.py.
  function spread(heights, gap, highest) {
    const order = heights.map((_, i) => i).sort((a, b) => heights[a] - heights[b]);
    const blocks = [];
    order.forEach((i, rank) => {
      blocks.push({ mean: heights[i] - rank * gap, size: 1 });
      while (blocks.length > 1 && blocks.at(-2).mean > blocks.at(-1).mean) {
        const { mean, size } = blocks.pop();
        const before = blocks.at(-1);
        before.mean = (before.mean * before.size + mean * size) / (before.size + size);
        before.size += size;
      }
    });
    const means = blocks.flatMap(({ mean, size }) => Array(size).fill(mean));
    const room = highest - (heights.length - 1) * gap;
    const found = [];
    order.forEach((i, rank) => { found[i] = Math.max(Math.min(means[rank], room), 0) + rank * gap; });
    return found;
  }

  function ticks(top, count) {
    const rough = top / count;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 2.5, 5, 10].find((factor) => factor * power >= rough) * power;
    return Array.from({ length: Math.floor(top / step + 1e-9) + 1 }, (_, i) => i * step);
  }

  function number(value) {
    return value.toLocaleString("en", { maximumFractionDigits: 2 });
  }

  function text(parent, x, y, words, anchor) {
    const made = shape("text", { x, y, "text-anchor": anchor });
    made.textContent = words;
    parent.append(made);
    return made;
  }

  function stroke(policy) {
    const { colour, width, dashes } = data.styles[policy];
    const pixels = (points) => (points * 4) / 3;
    return { stroke: colour, "stroke-width": pixels(width), "stroke-dasharray": dashes.map(pixels).join(" ") };
  }

  function shape(tag, attributes) {
    // The namespace is that of an SVG on the page: no address is written here.
    const space = document.querySelector("svg").namespaceURI;
    return filled(document.createElementNS(space, tag), attributes);
  }

  function element(tag, attributes, words = "") {
    const made = filled(document.createElement(tag), attributes);
    made.textContent = words;
    return made;
  }

  function filled(made, attributes) {
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    return made;
  }
})();
