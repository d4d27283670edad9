package fsstore

// nodePerm leaves the file writable: Windows can neither flush nor replace a
// read-only one.
const nodePerm = 0o644
