// Package workflow reads workflow files: YAML in, a definition or a list of
// problems out, each with its place and its remedy. It touches no store.
package workflow

import (
	"io/fs"

	"github.com/united-workforce/uwf/protocol"
)

// Definition is a workflow as its author wrote it: roles hold their schemas,
// not hashes.
type Definition struct {
	protocol.Workflow                // Roles[*].Frontmatter is empty
	Schemas           map[string]any // role → JSON Schema of its output, as a JSON value
}

// Source is a file to read.
type Source struct {
	File string // for messages and for the name check; "" skips that
	Data []byte
}

// Parse reads and checks a file. It returns the definition or *Problems.
func Parse(src Source) (Definition, error) { panic("unwritten") }

// Problems is everything that is wrong with a file.
type Problems struct{ List []protocol.Problem }

func (p *Problems) Error() string { panic("unwritten") }

// Store turns a definition into its stored form; putSchema stores a role's
// schema (its title set to "<workflow>.<role>" if it had none) and returns its hash.
func (d Definition) Store(putSchema func(role string, schema any) (protocol.Hash, error)) (protocol.Workflow, error) {
	panic("unwritten")
}

// Found is a workflow file in a project.
type Found struct {
	Name string
	Path string
}

// Discover finds the workflow files that apply in dir: .workflow/ and
// .workflows/ there and in its parents, up to the root of the repository (a
// directory with .git). Nearest first; a nearer name hides a farther one.
func Discover(fsys fs.FS, dir string) ([]Found, error) { panic("unwritten") }
