// Find: marks the states that were found, goes from one to the next, and says how many there are.

const LEGIBLE = 0.8;
const calm = () => globalThis.matchMedia("(prefers-reduced-motion: reduce)").matches;

/** The field for words. ask(words) has the states found; they come back as marks:
 *  {words, keys: of those that are drawn, total: of the whole graph}. */
function finder(root, cy, ask) {
  const field = root.querySelector(".find input");
  const said = root.querySelector(".find output");
  let found = { words: "", keys: [], total: 0 };
  let at = -1;

  function show() {
    const drawn = found.keys.length;
    const parts = [`${found.total} ${found.total === 1 ? "state" : "states"}`];
    if (drawn < found.total) parts.push(`${drawn} drawn`);
    if (at >= 0) parts.push(`at ${at + 1}`);
    said.textContent = found.words ? parts.join(", ") : "";
    cy.batch(() => {
      cy.$(".found, .current").removeClass("found current");
      for (const key of found.keys) cy.getElementById(key).addClass("found");
      if (at >= 0) cy.getElementById(found.keys[at]).addClass("current");
    });
  }

  function go(step) {
    if (!found.keys.length) return show();
    at = (at + step + found.keys.length) % found.keys.length;
    show();
    centre(cy, cy.getElementById(found.keys[at]));
  }

  field.onkeydown = (event) => {
    if (event.key !== "Enter") return;
    event.preventDefault();
    const words = field.value.trim();
    if (words === found.words) go(event.shiftKey ? -1 : 1);
    else ask(words);
  };
  field.oninput = () => !field.value && found.words && ask("");
  return {
    show,
    /** Take what was found; go to the first of it if it is new. */
    take: (now) => {
      const isNew = now.words !== found.words;
      if (JSON.stringify(now) === JSON.stringify(found)) return show();
      found = now;
      at = isNew ? -1 : Math.min(at, found.keys.length - 1);
      if (field.getRootNode().activeElement !== field) field.value = now.words;
      if (isNew && now.words) go(1);
      else show();
    },
    current: () => (at >= 0 ? found.keys[at] : null),
  };
}

/** Bring an element to the middle, if wanted large enough to be read. */
function centre(cy, element, isToBeRead = true) {
  if (element.empty()) return;
  const zoom = isToBeRead ? Math.max(cy.zoom(), LEGIBLE) : cy.zoom();
  cy.stop();
  if (calm()) cy.zoom(zoom).center(element);
  else cy.animate({ zoom, center: { eles: element }, duration: 200 });
}
