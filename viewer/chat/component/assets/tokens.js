// Tokens as a text. Text of a log is only ever set as textContent: it cannot become markup.

/** data: {tokens: [{text, about, band}], legend: [words of each band]}. */
export default function ({ data, parentElement }) {
  const root = parentElement.querySelector(".tokens");
  root.replaceChildren(legendOf(data.legend), textOf(data));
}

function textOf(data) {
  const text = document.createElement("pre");
  text.className = "text";
  text.tabIndex = 0;
  text.setAttribute("role", "region");
  text.setAttribute("aria-label", "Tokens");
  for (const token of data.tokens) {
    const made = document.createElement("span");
    made.className = token.band === null ? "token" : `token band${token.band}`;
    made.textContent = token.text;
    made.title = token.about;
    text.append(made);
  }
  return text;
}

function legendOf(words) {
  const legend = document.createElement("div");
  legend.className = "legend";
  words.forEach((word, band) => {
    const made = document.createElement("span");
    made.className = `token band${band}`;
    made.textContent = word;
    legend.append(made);
  });
  return legend;
}
