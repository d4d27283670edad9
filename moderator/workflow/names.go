package workflow

import (
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/united-workforce/uwf/protocol"
)

// maxName is the longest name of anything, in characters.
const maxName = protocol.MaxName

// checkWorkflowName holds the name to what a workflow may be called anywhere.
func (d *draft) checkWorkflowName(name word) {
	problem := protocol.WorkflowNameProblem(name.text)
	switch {
	case problem == "":
		return
	case strings.HasPrefix(problem, "is "):
		problem = "name " + problem
	default:
		problem = "the name " + quote(name.text) + " " + problem
	}
	d.add(name.pos, protocol.WorkflowNameRule, "%s", problem)
}

// nameProblem says what is wrong with the name of a role or a status. They
// stand in messages, on command lines and in tables, so they are one printable
// line.
func nameProblem(name string) string {
	switch {
	case strings.TrimSpace(name) == "":
		return "is blank"
	case utf8.RuneCountInString(name) > maxName:
		return "is longer than 100 characters"
	case strings.ContainsFunc(name, func(c rune) bool { return !unicode.IsPrint(c) }):
		return "has line ends or other characters that cannot be seen"
	case strings.TrimSpace(name) != name:
		return "begins or ends with a blank"
	}
	return ""
}

// RoleNameProblem says what is wrong with the name of a role, which agents get as
// an argument; "" if nothing is.
func RoleNameProblem(name string) string {
	switch {
	case isReserved(name):
		return "is reserved"
	case strings.HasPrefix(name, "$"):
		return "begins with $, which is reserved"
	case strings.HasPrefix(name, "-"):
		return "begins with -, like an option"
	case strings.ContainsAny(name, `/\`):
		return "has a slash, like a path"
	}
	return nameProblem(name)
}

func isReserved(name string) bool {
	return name == protocol.StartNode || name == protocol.EndNode || name == protocol.SuspendNode
}

// checkStatusKey checks the status that an edge is for.
func (d *draft) checkStatusKey(e *edgeDraft, what string) {
	if e.status == protocol.SuspendNode {
		d.add(e.pos, "leave the edge out: resuming runs the same role again",
			"%s is never taken: a role that answers %s suspends the thread at once", what, protocol.SuspendNode)
		return
	}
	if problem := nameProblem(e.status); problem != "" {
		d.add(e.pos, "", "the status %s %s", quote(e.status), problem)
	}
}

// checkFileName holds the workflow to the name of its file, so that a file is
// found by its name.
func (d *draft) checkFileName(src Source) {
	path := src.Path
	if path == "" {
		path = src.File
	}
	implied := impliedName(path)
	if implied == "" || d.name.text == "" || implied == d.name.text {
		return
	}
	d.add(d.name.pos, "name: "+implied+", or rename the file",
		"the name is %s, but the file %s stands for %s", quote(d.name.text), quote(filepath.Base(path)), quote(implied))
}

// impliedName is the name that a path stands for: the file's stem, or for
// index.yaml the folder's name. "" if the path does not tell.
func impliedName(path string) string {
	if path == "" {
		return ""
	}
	stem := yamlStem(filepath.Base(path))
	if stem != "index" {
		return stem
	}
	folder := filepath.Base(filepath.Dir(path))
	if folder == "." || folder == ".." || folder == string(filepath.Separator) {
		return ""
	}
	return folder
}

func yamlStem(name string) string {
	for _, ending := range []string{".yaml", ".yml"} {
		if stem, ok := strings.CutSuffix(name, ending); ok {
			return stem
		}
	}
	return name
}
