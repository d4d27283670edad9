package cliagent

import (
	"cmp"
	"path/filepath"
	"strings"

	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/utilagent/errorkind"
)

// fail is the error for a call that led to nothing.
func (r *runner) fail(out tried) error {
	if out.Error == errorkind.BadUsage { // perhaps it is not the version that it was
		_ = durable.OS().Remove(probeFile(string(r.shelf), r.program.Path))
	}
	e := &Error{Program: r.adapter.Program, Kind: out.Error, Text: r.adapter.Program + " " + what(out)}
	if message := Excerpt(plaintext.Strip(out.Message)); message != "" {
		e.Text += ": " + message
	}
	if r.req.RunDir != "" && unexplained(out) {
		e.Logs = filepath.Join(r.req.RunDir, stdoutFile) + " and " + stderrFile
	}
	if out.Error == errorkind.Auth {
		e.Hint = r.adapter.Login
	}
	if hint, ok := remedies[out.Error]; ok && (out.Error != errorkind.Denied || r.permission != Bypass) {
		e.Hint = hint
		if out.Error == errorkind.Server && r.resume && out.canGoOn(r.adapter.Sessions) {
			e.Hint += ": the session is continued"
		}
	}
	e.Held = r.heldHints(out)
	if out.Hint != "" {
		e.Hint = strings.ReplaceAll(out.Hint, "<alias>", cmp.Or(r.req.Alias, "<alias>"))
	}
	return e
}

// unexplained reports whether one has to look at what the program printed.
func unexplained(out tried) bool {
	return out.Kind == Incomplete || out.Kind == Timeout || out.Error == Crashed || out.Error == errorkind.Unknown
}

// what says how a call failed.
func what(out tried) string {
	switch out.Kind {
	case Incomplete:
		return "ended without an answer that could be read"
	case MaxTurns:
		return "stopped at its limit of turns, in a session that cannot be continued"
	case Budget:
		return "stopped at its limit of cost, in a session that cannot be continued"
	case Timeout:
		return "was stopped"
	case Refusal:
		return "declines to do this"
	case Interrupted:
		return "was interrupted"
	}
	if text, ok := reasons[out.Error]; ok {
		return text
	}
	return "failed"
}

// reasons say what went wrong.
var reasons = map[errorkind.Kind]string{
	errorkind.Auth:            "is not logged in, or its key is refused",
	errorkind.RateLimit:       "is held up by its provider's rate limit",
	errorkind.Quota:           "has used up its account's quota",
	errorkind.Server:          "cannot reach its model, or the model's server fails",
	errorkind.BadRequest:      "sent a request that its model's endpoint refuses",
	errorkind.Context:         "has too long a conversation for its model",
	errorkind.SessionNotFound: "does not know the session",
	errorkind.SessionInUse:    "says that the session is in use",
	errorkind.UntrustedDir:    "does not trust the working directory",
	errorkind.Denied:          "was not allowed to do what it wanted",
	errorkind.BadUsage:        "does not know these arguments",
	Crashed:                   "ended before its work was done",
}

// remedies are what to do about an error, whatever the program.
var remedies = map[errorkind.Kind]string{
	errorkind.RateLimit: "wait, then step the thread again",
	errorkind.Quota:     "add to the account, or wait until its limit is reset; then step the thread again. Or let another agent go on: uwf thread step --agent ALIAS",
	errorkind.Server:    "step the thread again",
	errorkind.BadUsage:  "check the agent's args in config.yaml, and the program's version",
	errorkind.Denied:    "set agents.<alias>.permission in config.yaml to edits or bypass",
}
