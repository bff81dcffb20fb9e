/** A place where files are dropped to be scored. */

/** @param {{ dataset: string }} _of @returns {Node | null} */
export const dropZone = (_of) => null;
