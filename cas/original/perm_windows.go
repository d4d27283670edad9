package original

// nodePerm keeps the file writable, because Windows can neither flush nor replace a read-only file.
const nodePerm = 0o644
