/**
 * Sentences: the finding of each view in one plain sentence with its number and its doubt, made from answers of
 * the API alone. A sentence says no more than its numbers do.
 */

/** @typedef {{ claim: string, detail?: string }} Sentence The claim is shown in bold, the detail after it. */
/** @typedef {import("../core/api.js").Schemas} Schemas */

/** @type {(of: any) => Sentence | null} */
export const captionsSentence = () => null;
/** @type {(of: any) => Sentence | null} */
export const imageSentence = () => null;
/** @type {(of: any) => Sentence | null} */
export const datasetSentence = () => null;
