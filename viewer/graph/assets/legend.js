// What the colours and marks of the drawing mean.

function showLegend(root, legend) {
  const scale = (title, colours, ends) => {
    const row = element("div", "scale");
    const bar = element("span", "bar");
    bar.style.background = `linear-gradient(to right, ${colours.join(",")})`;
    row.append(title, element("i", "", ends[0]), bar, element("i", "", ends[1]));
    return row;
  };
  const notes = [
    ...["goal: double border or ☆", "start: thick border", "dashed border or ◇: no way to the goal seen"],
    ...["width: visits", "dashed: pruned", "bar at the tip: below 0"],
    ...legend.marks,
  ];
  root
    .querySelector(".legend")
    .replaceChildren(
      scale(`edge: ${legend.advantage} `, legend.edge_scale, legend.edge_ends),
      scale(`state: ${legend.state} `, legend.state_scale, legend.state_ends),
      element("div", "", notes.join("  ·  ")),
    );
}

function element(name, className, text = "") {
  const made = document.createElement(name);
  made.className = className;
  made.textContent = text;
  return made;
}
