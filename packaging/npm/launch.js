// Starts a program of the release with the arguments and streams of this process. The other
// programs are on its PATH, so that uwf finds its agents.
"use strict";
const { spawn, spawnSync } = require("node:child_process");
const fs = require("node:fs");
const path = require("node:path");

module.exports = function launch(name) {
  const programs = path.join(__dirname, "programs");
  const program = path.join(programs, name + (process.platform === "win32" ? ".exe" : ""));
  if (!fs.existsSync(program)) {
    // npm was told to run no scripts.
    const { status } = spawnSync(process.execPath, [path.join(__dirname, "install.js")], { stdio: ["ignore", 2, 2] });
    if (status !== 0) process.exit(1);
  }
  const env = { ...process.env, PATH: programs + path.delimiter + (process.env.PATH || "") };
  // A terminal sends its signals to both processes. On the second one, uwf would end without stopping its agents.
  const ofTerminal = hasTerminal() ? ["SIGINT", "SIGHUP"] : [];
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
    process.on(signal, () => ofTerminal.includes(signal) || child.kill(signal));
  }
  const child = spawn(program, process.argv.slice(2), { stdio: "inherit", env });
  child.on("error", (err) => {
    console.error(`${name}: ${err.message}`);
    process.exit(1);
  });
  child.on("exit", (code, signal) => {
    if (!signal) process.exit(code);
    process.removeAllListeners(signal); // so that it ends this process as well
    process.kill(process.pid, signal);
  });
};

// A Windows program has a console, and no signals: kill ends it at once.
function hasTerminal() {
  if (process.platform === "win32") return true;
  try {
    fs.closeSync(fs.openSync("/dev/tty", "r"));
    return true;
  } catch {
    return false;
  }
}
