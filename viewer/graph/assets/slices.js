// Thousands of elements are added in slices, so that the page is never busy for long.

const SLICE_MS = 40;
const FIRST_SLICE = 120;
const LARGEST_SLICE = 600;
const SMALLEST_OF_BOXES = 0.45;

/** Add elements in their order, as many at a time as take about SLICE_MS. The drawing is painted
 *  when the first `numFirst` are there, and when all are: to paint takes longer than to add a slice.
 *  afterEach is called with the number of those that are there. Ends early if the graph is
 *  destroyed. */
async function addInSlices(cy, elements, numFirst, afterEach) {
  let size = FIRST_SLICE;
  let there = 0;
  while (!cy.destroyed()) {
    const start = performance.now();
    const picture = there < numFirst ? numFirst : elements.length;
    const end = Math.min(there + size, picture);
    const add = () => cy.add(elements.slice(there, end));
    if (end === picture) add();
    else cy.noNotifications(add);
    there = end;
    afterEach(there);
    if (there === elements.length) return;
    const taken = Math.max(performance.now() - start, 1);
    size = Math.min(Math.max(Math.round((size * SLICE_MS) / taken), 40), LARGEST_SLICE);
    await new Promise((go) => requestAnimationFrame(() => setTimeout(go)));
  }
}

/** Show all of a drawing that has these nodes, of which only some may be there by now. If the words
 *  of boxes could not be read then, show its beginning: the small map has the rest. Returns what is in view. */
function fitTo(cy, nodes) {
  const box = { left: Infinity, right: -Infinity, top: Infinity, bottom: -Infinity };
  for (const { position, data } of nodes) {
    box.left = Math.min(box.left, position.x - data.width / 2);
    box.right = Math.max(box.right, position.x + data.width / 2);
    box.top = Math.min(box.top, position.y - data.height / 2);
    box.bottom = Math.max(box.bottom, position.y + data.height / 2);
  }
  const room = { width: cy.width() - 2 * PADDING, height: cy.height() - 2 * PADDING };
  const whole = Math.min(
    room.width / (box.right - box.left),
    room.height / (box.bottom - box.top),
    LARGEST_AT_FIRST,
  );
  const isLegible = whole >= SMALLEST_OF_BOXES || !nodes.every(({ data }) => data.box);
  const zoom = isLegible ? whole : SMALLEST_OF_BOXES;
  const start = nodes.find(({ data }) => data.kind === "start") ?? nodes[0];
  const isHigh = zoom * (box.bottom - box.top) > room.height;
  const middle = {
    x: isLegible ? (box.left + box.right) / 2 : box.left + room.width / 2 / zoom,
    y: isHigh && !isLegible ? start.position.y : (box.top + box.bottom) / 2,
  };
  const pan = { x: cy.width() / 2 - zoom * middle.x, y: cy.height() / 2 - zoom * middle.y };
  cy.viewport({ zoom, pan });
  return { zoom, pan };
}
