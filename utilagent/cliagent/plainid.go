package cliagent

import "github.com/united-workforce/uwf/util/lazyregexp"

// plainID is what the id of a session may look like. It comes from what a program
// prints, and so perhaps from its model, or from a thread of somebody else's, and it
// becomes an argument: it must be no option, no path and no text with marks in it.
var plainID = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9._:@=+~-]{0,199}$`)

// isPlain reports whether an id, or a mark in a session, may stand in a command line.
// A program that is talked to gets none there.
func (a Adapter) isPlain(id string) bool { return a.Transport != nil || plainID().MatchString(id) }

// plain takes the ids from an outcome that are none.
func (r *runner) plain(out *tried) {
	if out.Session != "" && !r.adapter.isPlain(out.Session) {
		r.note("the id of its session is not plain, so the session is not gone on with: %q", clipped(out.Session))
		out.Session = ""
	}
	if out.Mark != "" && !r.adapter.isPlain(out.Mark) {
		out.Mark = ""
	}
}

// clipped is a text of somebody's for a note.
func clipped(s string) string { return s[:min(len(s), 60)] }
