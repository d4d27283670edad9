// Package extract turns an agent's answer into data that satisfies its role's
// schema, or says field by field why it cannot. It is pure: who stores the data
// and who asks the agent again is the caller's business.
package extract

import (
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/jsonschema"
)

// Role is what an answer is held against.
type Role struct {
	Schema   any // the role's JSON Schema as a JSON value
	Compiled *jsonschema.Schema
}

// Output is what became of an answer.
type Output struct {
	Value   any               // satisfies the schema, or is a suspend payload
	Suspend *protocol.Suspend // set if the role suspends
	Body    string            // the rest of the text
}

// InvalidError says why an answer is not the role's output.
type InvalidError struct {
	Problems []jsonschema.Problem // one a field
	Reason   string               // instead of Problems: no block, broken YAML
}

func (e *InvalidError) Error() string { panic("unwritten") }

// Text extracts from text with a frontmatter block. Every error is an *InvalidError.
func Text(text string, r Role) (Output, error) { panic("unwritten") }

// Value validates structured output.
func Value(v any, r Role) (Output, error) { panic("unwritten") }
