// What the colours and marks of the drawing mean.

/** Name, colours and ends of each scale. */
function scalesOf(legend) {
  return [
    [`edge: ${legend.advantage}`, legend.edge_scale, legend.edge_ends],
    [`state: ${legend.state}`, legend.state_scale, legend.state_ends],
  ];
}

function legendLines({ marks }) {
  return [
    "goal: double border or ☆  ·  start: thick border  ·  dashed border or ◇: no way to the goal seen",
    "bar at the tip: below 0  ·  width: visits  ·  dashed: pruned  ·  dotted: a way through states not drawn",
    ...(marks.length ? [marks.join("  ·  ")] : []),
  ];
}

function showLegend(root, legend) {
  const scale = ([title, colours, ends]) => {
    const row = element("div", "scale");
    const bar = element("span", "bar");
    bar.style.background = `linear-gradient(to right, ${colours.join(",")})`;
    row.append(title, element("i", "", ends[0]), bar, element("i", "", ends[1]));
    return row;
  };
  const lines = legendLines(legend).map((line) => element("div", "", line));
  root.querySelector(".legend summary").replaceChildren(...scalesOf(legend).map(scale));
  root.querySelector(".legend .means").replaceChildren(...lines);
}

function element(name, className, text = "") {
  const made = document.createElement(name);
  made.className = className;
  made.textContent = text;
  return made;
}
