// Package fakes holds stories of users whose agents are other people's programs,
// played by fakes: the test binary stands in for codex, cursor-agent, gemini,
// hermes and opencode. A fake takes just the options that the program is
// documented to have, prints just its format, and keeps its sessions, so that a
// wrong command line or a session that is not continued shows. For Hermes and
// Cursor, which could not be had, the fakes are all that the adapters were tried
// with; the other three are run for real by the package above.
package fakes
