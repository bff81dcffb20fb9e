/** The finder: runs, images, metrics and splits by a part of their names. */

/** Opens the dialog. */
export function openFinder() {}
