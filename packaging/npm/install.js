// Fetches the archive of this package's own version for this system, checks its SHA-256 against
// the list that came with the package, and unpacks the programs into programs/.
//
//   UWF_DOWNLOAD   where releases are, for a mirror
"use strict";
const { createHash } = require("node:crypto");
const { execFileSync } = require("node:child_process");
const fs = require("node:fs");
const path = require("node:path");
const { version } = require("./package.json");
const sums = require("./sums.json");

const releases = process.env.UWF_DOWNLOAD || "https://github.com/united-workforce/uwf/releases";
const programs = path.join(__dirname, "programs");

async function install() {
  const os = { linux: "linux", darwin: "darwin", win32: "windows" }[process.platform];
  const arch = { x64: "amd64", arm64: "arm64" }[process.arch];
  const base = `uwf_v${version}_${os}_${arch}`;
  const archive = base + (os === "windows" ? ".zip" : ".tar.gz");
  if (!sums[archive]) throw new Error(`the release has no archive for ${process.platform}/${process.arch}`);
  const url = `${releases}/download/v${version}/${archive}`;
  const response = await fetch(url);
  if (!response.ok) throw new Error(`cannot fetch ${url}: status ${response.status}`);
  const data = Buffer.from(await response.arrayBuffer());
  if (createHash("sha256").update(data).digest("hex") !== sums[archive]) {
    throw new Error(`${archive} is not what sums.json says: nothing was installed`);
  }
  const work = fs.mkdtempSync(path.join(__dirname, "unpack-"));
  try {
    fs.writeFileSync(path.join(work, archive), data);
    // Windows 10 and newer have a tar that reads .zip.
    execFileSync("tar", ["-xf", archive], { cwd: work, stdio: "inherit" });
    fs.rmSync(programs, { recursive: true, force: true });
    fs.renameSync(path.join(work, base), programs);
  } finally {
    fs.rmSync(work, { recursive: true, force: true });
  }
}

install().catch((err) => {
  console.error("uwf: " + err.message);
  process.exit(1);
});
