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
  const child = spawn(program, process.argv.slice(2), { stdio: "inherit", env });
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
  child.on("error", (err) => {
    console.error(`${name}: ${err.message}`);
    process.exit(1);
  });
  child.on("exit", (code, signal) => (signal ? process.kill(process.pid, signal) : process.exit(code)));
};
