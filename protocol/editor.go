package protocol

import (
	"embed"
	"fmt"
)

//go:embed editor/*.json
var editorSchemas embed.FS

// EditorFile is a file that a person writes.
type EditorFile string

// The files with a schema for editors.
const (
	EditWorkflow EditorFile = "workflow" // a workflow file, in any of its forms
	EditConfig   EditorFile = "config"   // <home>/config.yaml
)

// EditorSchema is a JSON Schema (draft-07) of a file, with which an editor
// completes it and marks mistakes. It refuses nothing that uwf accepts; what it
// cannot know, such as where an edge may lead, only uwf tells. It panics for a
// file that is none of the constants: such a value is a programming error.
func EditorSchema(f EditorFile) []byte {
	b, err := editorSchemas.ReadFile("editor/" + string(f) + ".json")
	if err != nil {
		panic(fmt.Sprintf("protocol: no schema for file %q", f))
	}
	return b
}
