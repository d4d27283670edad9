package protocol

import _ "embed" // for reference.md

//go:embed reference.md
var reference string

// Reference is the short command reference that every role is given: Markdown,
// commands that only read, each on a line of its own in the one fenced block,
// "uwf" first and a comment after "#".
func Reference() string { return reference }
