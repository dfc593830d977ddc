// Manners that Streamlit's tables and addresses lack. Installed once per tab: a click anywhere on a
// row and Enter select it, Tab leaves a table, a change within a page is no step of the way back.

const INSTALLED = Symbol.for("graphcredit.manners");
const TABLE = "[class*=st-key-rows] [data-testid=stDataFrame]";
const ANY_TABLE = "[data-testid=stDataFrame]";
const [HEADER, MARKERS] = [36, 34];
const NARROW = 640;

export default function () {
  if (globalThis[INSTALLED]) return;
  globalThis[INSTALLED] = true;
  keepOneEntryPerPage(globalThis.history);
  globalThis.addEventListener("keydown", onKey, true);
  globalThis.addEventListener("click", onClick, true);
  foldWhereNarrow();
}

function keepOneEntryPerPage(history) {
  const push = history.pushState.bind(history);
  history.pushState = (state, unused, url) => {
    const isHere = new URL(url ?? "", globalThis.location.href).pathname === globalThis.location.pathname;
    isHere ? history.replaceState(state, unused, url) : push(state, unused, url);
  };
}

/** Streamlit's table moves from cell to cell by Tab, and opens a cell by Enter. */
function onKey(event) {
  if (!event.target.closest?.(ANY_TABLE) || event.ctrlKey || event.metaKey || event.altKey) return;
  const table = event.target.closest(TABLE);
  if (event.key === "Tab") {
    event.stopImmediatePropagation();
  } else if (event.key === "Enter" && !event.shiftKey && table) {
    event.stopImmediatePropagation();
    event.preventDefault();
    selectRow(table);
  }
}

function onClick(event) {
  const table = event.target.closest?.(TABLE);
  if (!table || event.button || event.detail > 1) return;
  const { left, top } = table.getBoundingClientRect();
  const isInRow = event.clientY - top > HEADER && event.clientX - left > MARKERS;
  // The table learns of the click after this, and moves there.
  if (isInRow) setTimeout(() => selectRow(table), 60);
}

/** Press the table's own key for "select this row". */
function selectRow(table) {
  const canvas = table.querySelector("canvas[data-testid=data-grid-canvas]");
  const key = { key: " ", code: "Space", keyCode: 32, shiftKey: true, bubbles: true, cancelable: true };
  const focused = table.contains(document.activeElement) ? document.activeElement : canvas;
  focused?.dispatchEvent(new KeyboardEvent("keydown", key));
}

/** Fold choices when they appear, so that what a page shows comes first; a click unfolds them. */
function foldWhereNarrow() {
  const folded = new WeakSet();
  new MutationObserver(() => {
    if (globalThis.innerWidth > NARROW) return;
    for (const details of document.querySelectorAll("[class*=st-key-folded] details[open]")) {
      if (!folded.has(details)) details.querySelector("summary")?.click();
      folded.add(details);
    }
  }).observe(document.body, { childList: true, subtree: true });
}
