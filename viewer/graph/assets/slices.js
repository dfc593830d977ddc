// Thousands of elements are added in slices, so that the page is never busy for long.

const SLICE_MS = 40;
const FIRST_SLICE = 120;
const LARGEST_SLICE = 600;
const WORDS_AT_FIRST = 10.5;

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

/** Show all of a drawing, of which only some may be there by now, above its legend. If its words could
 *  not be read then, show its sights; the small map and the goal's sign have the rest. Returns what is in view. */
function fitTo(cy, { nodes, sights }, root) {
  const below = root.querySelector(".legend").offsetHeight;
  const room = { x: cy.width() - 2 * PADDING, y: cy.height() - 2 * PADDING - below };
  const all = boxOf(nodes);
  const seen = boxOf(nodes.filter(({ data }) => sights.includes(data.id)));
  const whole = Math.min(zoomOf(all, room), LARGEST_AT_FIRST);
  const isLegible = whole * LETTERS >= LEAST_LETTERS;
  const zoom = isLegible ? whole : Math.min(zoomOf(seen, room), WORDS_AT_FIRST / LETTERS);
  const middle = {
    x: between((seen.left + seen.right) / 2, all.left, all.right, room.x / zoom),
    y: between((seen.top + seen.bottom) / 2, all.top, all.bottom, room.y / zoom),
  };
  const pan = { x: cy.width() / 2 - zoom * middle.x, y: (cy.height() - below) / 2 - zoom * middle.y };
  cy.viewport({ zoom, pan });
  return { zoom, pan };
}

function boxOf(nodes) {
  const box = { left: Infinity, right: -Infinity, top: Infinity, bottom: -Infinity };
  for (const { position, data } of nodes) {
    box.left = Math.min(box.left, position.x - data.width / 2);
    box.right = Math.max(box.right, position.x + data.width / 2);
    box.top = Math.min(box.top, position.y - data.height / 2);
    box.bottom = Math.max(box.bottom, position.y + data.height / 2);
  }
  return box;
}

/** The zoom at which a box fills a room. */
function zoomOf({ left, right, top, bottom }, room) {
  return Math.min(room.x / (right - left), room.y / (bottom - top));
}

/** The middle of a window that shows a place and nothing beyond the ends. */
function between(place, low, high, size) {
  if (high - low <= size) return (low + high) / 2;
  return Math.min(Math.max(place, low + size / 2), high - size / 2);
}
