// Package fakes tests user scenarios with fake agents: the test binary replaces codex, cursor-agent, gemini,
// hermes and opencode. A fake accepts only the documented options, prints the documented format, and keeps
// sessions, so that a wrong command line or a lost session is detected. Hermes and Cursor were not available,
// so their adapters are tested only with fakes; the package above runs the other three for real.
package fakes
