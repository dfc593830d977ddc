// What Streamlit's tables and addresses lack. Installed once per tab: a click anywhere on a
// row and Enter select it, Tab leaves a table and skips choices, a change within a page is no step of the way back.

const INSTALLED = Symbol.for("graphcredit.browser_fixes");
const TABLE = "[class*=st-key-rows] [data-testid=stDataFrame]";
const ANY_TABLE = "[data-testid=stDataFrame]";
const FOLDED = "[class*=st-key-folded] details:not(details details)";
const ROWS = ["runs_table", "compared_tasks", "side_by_side"].map((key) => `.st-key-rows_${key} canvas[tabindex]`);
const CONTENT = [".st-key-chat", ".st-key-graph", ".st-key-open_points summary", ...ROWS].join();
const [HEADER, MARKERS] = [36, 34];
const NARROW = 640;

export default function () {
  if (globalThis[INSTALLED]) return;
  globalThis[INSTALLED] = true;
  keepOneEntryPerPage(globalThis.history);
  globalThis.addEventListener("keydown", onKey, true);
  globalThis.addEventListener("click", onClick, true);
  globalThis.addEventListener("click", skipChoices, true);
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

/** Let Streamlit's first stop of Tab lead past the menu and the first choices, to what they show. */
function skipChoices(event) {
  if (!event.target.closest?.("[data-testid=stSkipToContent]")) return;
  const parts = [...document.querySelectorAll("[data-testid=stMainBlockContainer] > [data-testid=stVerticalBlock] > *")];
  const choices = parts.find((part) => part.querySelector("input, textarea"));
  const shown = document.querySelector(CONTENT) ?? choices?.nextElementSibling;
  if (!shown) return;
  event.stopImmediatePropagation();
  event.preventDefault();
  if (shown.tabIndex < 0) shown.tabIndex = -1;
  shown.focus();
}

/** Press the table's own key for "select this row". */
function selectRow(table) {
  const canvas = table.querySelector("canvas[data-testid=data-grid-canvas]");
  const key = { key: " ", code: "Space", keyCode: 32, shiftKey: true, bubbles: true, cancelable: true };
  const focused = table.contains(document.activeElement) ? document.activeElement : canvas;
  focused?.dispatchEvent(new KeyboardEvent("keydown", key));
}

/** Fold choices in a narrow window, so that what a page shows comes first; a click unfolds them.
 *
 * Whether they are open follows from the window and from clicks alone. It does not matter who comes
 * first, choices or this script, nor what Streamlit, which goes on taking them as open, makes of them.
 */
function foldWhereNarrow() {
  const narrow = globalThis.matchMedia(`(max-width: ${NARROW}px)`);
  const unfolded = new WeakSet();
  const fold = () => {
    for (const details of document.querySelectorAll(FOLDED)) {
      const isOpen = !narrow.matches || unfolded.has(details);
      if (details.open !== isOpen) details.open = isOpen;
    }
  };
  const onToggle = (event) => {
    const details = event.target.closest?.(`${FOLDED} > summary`)?.parentElement;
    if (!details) return;
    event.stopImmediatePropagation();
    event.preventDefault();
    details.open ? unfolded.delete(details) : unfolded.add(details);
    fold();
  };
  globalThis.addEventListener("click", onToggle, true);
  narrow.addEventListener("change", fold);
  const changes = { childList: true, subtree: true, attributeFilter: ["open"] };
  new MutationObserver(fold).observe(document.body, changes);
  fold();
}
