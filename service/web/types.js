/** Names of types that many files use. It is no module, so that all know them without an import; no browser loads it. */

/** @typedef {import("#schemas").components["schemas"]} Schemas What the interface says of its answers. */
/** @typedef {Schemas["Evaluation"]} Evaluation */
/** @typedef {Schemas["Dataset"]} Dataset */
/** @typedef {Schemas["Caption"]} Caption */
/** @typedef {import("./core/dom.js").Child} Child */
/** @typedef {import("./parts/frame.js").Crumb} Crumb */
/** @typedef {import("./parts/states.js").Resource} Resource */
/** @template T @typedef {import("./parts/table.js").Column<T>} Column */
