"use strict";
// Regret curves: drag or point at a round, and the legend says each policy's regret there.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const hidden = new Set(); // policies, in all charts
  const margin = { top: 10, right: 14, bottom: 40, left: 68 };
  const figures = [...document.querySelectorAll("figure.chart")];
  const charts = figures.map((figure, place) => chart(figure, data.charts[place]));

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
    svg.addEventListener("pointerleave", () => show(last));
    svg.addEventListener("keydown", key);
    new ResizeObserver(draw).observe(svg.parentElement);
    draw();
    return { draw };

    function legendEntry(line) {
      const button = element("button", { type: "button" });
      const swatch = shape("svg", { width: 34, height: 10, "aria-hidden": "true" });
      swatch.append(shape("line", { x1: 1, x2: 33, y1: 5, y2: 5, ...stroke(line.policy) }));
      const name = element("span", { class: "name" }, line.title);
      const value = element("span", { class: "value" });
      button.append(swatch, name, value);
      button.addEventListener("click", () => toggle(line.policy));
      const item = element("li", {});
      item.append(button);
      figure.querySelector(".legend ul").append(item);
      values.set(line.policy, value);
      buttons.set(line.policy, button);
    }

    function draw() {
      const width = Math.max(svg.parentElement.clientWidth, 240);
      const height = Math.min(Math.max(width * 0.58, 260), 400);
      const shown = problem.lines.filter((line) => !hidden.has(line.policy));
      const tops = shown.map((l) => Math.max(...l.mean.map((m, i) => m + (l.std ? l.std[i] : 0))));
      const top = Math.max(...tops, 0) * 1.03 || 1;
      const end = problem.rounds[last];
      const right = width - margin.right;
      const floor = height - margin.bottom;
      const x = (round) => margin.left + (round / end) * (right - margin.left);
      const y = (regret) => floor - (Math.max(regret, 0) / top) * (floor - margin.top);
      scale = { x, end, right };
      svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
      svg.setAttribute("height", height);
      svg.replaceChildren();
      for (const tick of ticks(top, 5)) {
        svg.append(shape("line", { class: "grid", x1: margin.left, x2: right, y1: y(tick), y2: y(tick) }));
        text(margin.left - 8, y(tick) + 4, number(tick), "end");
      }
      for (const tick of ticks(end, width < 500 ? 4 : 6)) {
        svg.append(shape("line", { class: "grid", x1: x(tick), x2: x(tick), y1: margin.top, y2: floor }));
        text(x(tick), floor + 17, number(tick), x(tick) > right - 20 ? "end" : "middle");
      }
      text((margin.left + right) / 2, height - 6, "round", "middle");
      const name = text(0, 0, "cumulative regret", "middle");
      name.setAttribute("transform", `translate(12 ${(margin.top + floor) / 2}) rotate(-90)`);
      for (const line of shown.filter((l) => l.std)) {
        const there = problem.rounds.map((r, i) => `${x(r)},${y(line.mean[i] + line.std[i])}`);
        const back = problem.rounds.map((r, i) => `${x(r)},${y(line.mean[i] - line.std[i])}`);
        const d = `M${there.join("L")}L${back.reverse().join("L")}Z`;
        svg.append(shape("path", { class: "band", d, fill: data.styles[line.policy].colour }));
      }
      for (const line of shown) {
        const d = "M" + problem.rounds.map((r, i) => `${x(r)},${y(line.mean[i])}`).join("L");
        svg.append(shape("path", { class: "line", d, ...stroke(line.policy) }));
      }
      svg.append(shape("line", { class: "cursor", y1: margin.top, y2: floor }));
      for (const [policy, button] of buttons) button.setAttribute("aria-pressed", !hidden.has(policy));
      show(at);
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
      const from = event.clientX - svg.getBoundingClientRect().left - margin.left;
      const round = (from / (scale.right - margin.left)) * scale.end;
      let near = 0;
      problem.rounds.forEach((r, i) => {
        if (Math.abs(r - round) < Math.abs(problem.rounds[near] - round)) near = i;
      });
      show(near);
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

    function text(x, y, words, anchor) {
      const made = shape("text", { x, y, "text-anchor": anchor });
      made.textContent = words;
      svg.append(made);
      return made;
    }
  }

  function toggle(policy) {
    if (!hidden.delete(policy)) hidden.add(policy);
    for (const each of charts) each.draw();
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
