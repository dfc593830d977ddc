// How states and transitions look, in the theme's colours.

const LETTERS = 15;
/** Words that would be smaller on the screen are not drawn. */
const LEAST_LETTERS = 9;

/** The theme's colours of text and of ground. */
function inks(root) {
  const theme = getComputedStyle(root);
  const colour = (name, otherwise) => theme.getPropertyValue(name).trim() || otherwise;
  return [colour("--st-text-color", "#212529"), colour("--st-background-color", "#ffffff")];
}

function styles(root) {
  const [ink, paper] = inks(root);
  const text = { color: ink, "text-outline-color": paper, "text-outline-width": 2 };
  return [
    {
      selector: "node",
      style: {
        ...text,
        label: "data(label)",
        width: "data(width)",
        height: "data(height)",
        "font-size": LETTERS,
        "min-zoomed-font-size": LEAST_LETTERS,
        "text-valign": "bottom",
        "text-margin-y": 3,
        "background-color": paper,
        "border-width": 1.5,
        "border-color": ink,
        "border-opacity": 0.55,
      },
    },
    { selector: "node[colour]", style: { "background-color": "data(colour)" } },
    {
      selector: "node[?box]",
      style: {
        shape: "round-rectangle",
        "text-valign": "center",
        "text-margin-y": 0,
        "text-wrap": "wrap",
        "text-outline-width": 0,
        "font-size": LETTERS,
        "line-height": 1.15,
      },
    },
    { selector: "node[?box][ink]", style: { color: "data(ink)" } },
    // From afar, as in a narrow window, a box has room for the start of its first line.
    {
      selector: "node.far",
      style: {
        label: (node) => node.data("label").split("\n")[0],
        "text-wrap": "ellipsis",
        "text-max-width": 200,
        "font-size": 2 * LETTERS,
      },
    },
    { selector: "node[kind='start']", style: { shape: "round-rectangle", "border-width": 3 } },
    {
      selector: "node[kind='goal'][!box]",
      style: { shape: "star", width: 40, height: 40, "border-width": 2 },
    },
    { selector: "node[kind='goal'][?box]", style: { "border-style": "double", "border-width": 6 } },
    { selector: "node[kind='dead end']", style: { "border-style": "dashed", "border-opacity": 1 } },
    { selector: "node[kind='dead end'][!box]", style: { shape: "diamond" } },
    {
      selector: "edge",
      style: {
        width: "data(width)",
        "line-color": "data(colour)",
        "target-arrow-color": "data(colour)",
        "target-arrow-shape": "triangle",
        "curve-style": "straight",
      },
    },
    {
      selector: "edge[label != '']",
      style: {
        color: ink,
        label: "data(label)",
        "font-size": LETTERS,
        "min-zoomed-font-size": LEAST_LETTERS,
        "text-margin-x": "data(dx)",
        "text-margin-y": "data(dy)",
        "text-background-color": paper,
        "text-background-opacity": 0.8,
        "text-background-padding": 1,
      },
    },
    {
      selector: "edge[bends]",
      style: {
        "curve-style": "unbundled-bezier",
        "edge-distances": "node-position",
        "control-point-distances": "data(bends)",
        "control-point-weights": "data(shares)",
      },
    },
    {
      selector: "edge:loop",
      style: { "curve-style": "bezier", "loop-direction": "0deg", "control-point-step-size": 40, "arrow-scale": 0.6 },
    },
    // Blame is told by a bar across its tip too, not by colour alone.
    { selector: "edge[?blamed]", style: { "target-arrow-shape": "triangle-tee", "arrow-scale": 1.3 } },
    { selector: "edge[?pruned]", style: { "line-style": "dashed" } },
    { selector: "edge[?way]", style: { "line-style": "dotted" } },
    { selector: "edge.faded", style: { opacity: 0.22 } },
    {
      selector: "node.faded",
      style: { "background-opacity": 0.25, "border-opacity": 0.3, color: ink, "text-opacity": 0.7 },
    },
    { selector: "edge.path", style: { "z-index": 2 } },
    { selector: "node.path", style: { "border-color": ink, "border-opacity": 1, "border-width": 3 } },
    {
      selector: "node.found",
      style: {
        "outline-width": 3,
        "outline-style": "dashed",
        "outline-color": ink,
        "outline-offset": 4,
        "background-opacity": 1,
      },
    },
    { selector: "node.current", style: { "outline-width": 6, "outline-style": "solid" } },
    {
      selector: ".chosen",
      style: { "overlay-color": ink, "overlay-opacity": 0.28, "overlay-padding": 6, "z-index": 3 },
    },
  ];
}
