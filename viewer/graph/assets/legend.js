// What the colours and marks of the drawing mean.

/** Name, colours and ends of each scale. */
function scalesOf(legend) {
  return [
    [`edge: ${legend.advantage}`, legend.edge_scale, legend.edge_ends],
    [`state: ${legend.state}`, legend.state_scale, legend.state_ends],
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
  root.querySelector(".legend summary").replaceChildren(...scalesOf(legend).map(scale));
  root.querySelector(".legend .means").textContent = legend.marks.join("  ·  ");
}

function element(name, className, text = "") {
  const made = document.createElement(name);
  made.className = className;
  made.textContent = text;
  return made;
}
