// Package jsonschema compiles and applies JSON Schemas in the dialect that a
// store accepts, and is the only importer of the schema library. The dialect is
// draft-07 for the keywords of [Keywords]; formats are asserted; nothing is ever
// loaded from outside.
package jsonschema

// Schema is a compiled schema; safe for concurrent use.
type Schema struct{ _ struct{} }

// Problem is one violation.
type Problem struct {
	Path    string // JSON pointer into the value; "" is the whole
	Message string
}

// Check reports everything that is not allowed in a schema: unknown keywords
// and formats, wrong types of keywords, patterns that do not compile. Path
// points into the schema. It needs no compiler.
func Check(schema any) []Problem { panic("unwritten") }

// Compile checks and compiles a schema given as a JSON value.
func Compile(schema any) (*Schema, error) { panic("unwritten") }

// Validate returns what is wrong with a JSON value, sorted; nil if nothing is.
func (s *Schema) Validate(value any) []Problem { panic("unwritten") }
