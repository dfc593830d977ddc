// The drawing as a picture of its own: with a title, and with the legend below it.

const SHEET = { edge: 24, title: 30, line: 26, bar: 120, least: 900, notes: 4 };

async function savePicture(root, cy, legend) {
  const [ink, paper] = inks(root);
  const drawn = new Image();
  // It is drawn from near, wherever one looks from.
  cy.nodes().removeClass("far");
  drawn.src = cy.png({ full: true, scale: 2, maxWidth: 8000, maxHeight: 8000, bg: paper });
  cy.emit("zoom");
  await drawn.decode();
  const sheet = document.createElement("canvas");
  const pen = sheet.getContext("2d");
  const lines = [];
  for (let at = 0; at < legend.marks.length; at += SHEET.notes) {
    lines.push(legend.marks.slice(at, at + SHEET.notes).join("  ·  "));
  }
  sheet.width = Math.max(drawn.width, SHEET.least) + 2 * SHEET.edge;
  sheet.height = drawn.height + 3 * SHEET.edge + SHEET.title + SHEET.line * (lines.length + 2);
  pen.fillStyle = paper;
  pen.fillRect(0, 0, sheet.width, sheet.height);
  pen.drawImage(drawn, SHEET.edge, 2 * SHEET.edge + SHEET.title);
  const write = (text, x, y, size) => {
    pen.fillStyle = ink;
    pen.font = `${size}px sans-serif`;
    pen.fillText(text, x, y);
    return x + pen.measureText(text).width;
  };
  write(legend.title, SHEET.edge, SHEET.edge + SHEET.title - 8, 24);
  let y = drawn.height + 2 * SHEET.edge + SHEET.title + SHEET.line;
  for (const [name, colours, [low, high]] of scalesOf(legend)) {
    let x = write(`${name} ${low} `, SHEET.edge, y, 18);
    colours.forEach((colour, index) => {
      pen.fillStyle = colour;
      pen.fillRect(x + (index * SHEET.bar) / colours.length, y - 13, SHEET.bar / colours.length + 1, 14);
    });
    write(` ${high}`, x + SHEET.bar, y, 18);
    y += SHEET.line;
  }
  for (const line of lines) {
    write(line, SHEET.edge, y, 18);
    y += SHEET.line;
  }
  const link = document.createElement("a");
  link.href = sheet.toDataURL("image/png");
  link.download = "graph.png";
  link.click();
}
