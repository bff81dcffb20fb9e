/** Marks of which one has the focus, and arrow keys move it. */

/** @param {HTMLElement} frame @param {() => HTMLElement[]} marksOf @param {Record<string, number>} away By the key: marks onwards; infinite: the first or the last. */
export function onArrows(frame, marksOf, away) {
  frame.addEventListener("keydown", (event) => {
    const step = away[event.key];
    if (step === undefined) return;
    event.preventDefault();
    const marks = marksOf();
    const at = marks.indexOf(/** @type {HTMLElement} */ (document.activeElement)) + step;
    const next = Number.isFinite(step) ? marks[at] : marks.at(step < 0 ? 0 : -1);
    if (!next) return;
    for (const each of marks) each.tabIndex = each === next ? 0 : -1;
    next.focus();
  });
}
