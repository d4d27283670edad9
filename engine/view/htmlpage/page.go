// Package htmlpage shows threads as HTML: one file for a colleague who has nothing
// installed ([Export]), and the parts that a server's pages are made of ([Templates]).
//
// All that it shows may be a stranger's text. It is escaped by html/template, cleaned
// of what hides or turns letters, and cut where it is long; nothing in it is run, loaded
// or linked. No page needs a script, and none has style in its elements, so that a
// Content-Security-Policy can forbid all of that.
package htmlpage

import (
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"html/template"
	"io/fs"

	"github.com/united-workforce/uwf/protocol"
)

//go:embed templates
var files embed.FS

// Templates are the parts: "thread", "steps", "turns", "text", "status".
func Templates() (*template.Template, error) {
	return template.New("page").ParseFS(files, "templates/*.html")
}

// Style is the style sheet of all pages.
func Style() (string, error) {
	data, err := fs.ReadFile(files, "templates/style.css")
	return string(data), err
}

// hashOf is the hash by which a Content-Security-Policy allows a style.
func hashOf(style string) string {
	sum := sha256.Sum256([]byte(style))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

// Mood is the class of a status: how it looks.
func Mood(s protocol.Status) string {
	switch s {
	case protocol.StatusCompleted:
		return "good"
	case protocol.StatusError, protocol.StatusCorrupt:
		return "bad"
	case protocol.StatusSuspended:
		return "care"
	case protocol.StatusRunning, protocol.StatusWaitingForChildren:
		return "busy"
	}
	return "plain"
}
