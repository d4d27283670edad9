// Package extract turns an agent's answer into data that satisfies its role's
// schema, or says field by field why it cannot. Who stores the data and who asks
// the agent again is the caller's business.
//
// Of the fields in an answer's frontmatter only those become data that the
// schema knows (fields.go). status, next, confidence, artifacts and scope may
// always be there: where the schema does not name them they are checked for
// their type and dropped. Every role may suspend instead of answering: $status
// is then "$SUSPEND", and reason says why.
package extract

import (
	"context"
	"fmt"
	"maps"
	"strings"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/step/frontmatter"
	"github.com/united-workforce/uwf/util/jsonschema"
)

// Role is what an answer is held against. Both fields must be set.
type Role struct {
	Schema   any // the role's JSON Schema as a JSON value
	Compiled *jsonschema.Schema
}

// NewRole compiles a role's schema. Errors: those of jsonschema.Compile.
func NewRole(schema any) (Role, error) {
	compiled, err := jsonschema.Compile(schema)
	if err != nil {
		return Role{}, fmt.Errorf("schema of the role: %w", err)
	}
	return Role{Schema: schema, Compiled: compiled}, nil
}

// Output is what became of an answer.
type Output struct {
	Value   any               // satisfies the schema, or is a suspend payload
	Suspend *protocol.Suspend // set if the role suspends
	Body    string            // the rest of the text
}

// InvalidError says why an answer is not the role's output. Its text is meant
// for the model that wrote the answer.
type InvalidError struct {
	Problems []jsonschema.Problem // one a field
	Reason   string               // instead of Problems: no block, broken YAML
}

func (e *InvalidError) Error() string {
	if e.Reason != "" {
		return e.Reason
	}
	var b strings.Builder
	b.WriteString("the output does not satisfy the role's schema:")
	for _, p := range e.Problems {
		field := "the output as a whole"
		if p.Path != "" {
			field = "`" + strings.TrimPrefix(p.Path, "/") + "`"
		}
		fmt.Fprintf(&b, "\n- %s: %s", field, p.Message)
	}
	return b.String()
}

// Brief is the error on one line.
func (e *InvalidError) Brief() string {
	if e.Reason != "" {
		return e.Reason
	}
	var parts []string
	for _, p := range e.Problems {
		parts = append(parts, strings.TrimSpace(strings.TrimPrefix(p.Path, "/")+" "+p.Message))
	}
	return strings.Join(parts, ", ")
}

// Text extracts from text with a frontmatter block. Errors: an *InvalidError; any
// other means that nothing is known about the answer, because its judge failed.
func Text(ctx context.Context, text string, r Role) (Output, error) {
	if protocol.IsAnswerSchema(r.Schema) {
		answer, _ := frontmatter.Parse(text)
		return r.plain(ctx, text, answer.Fields)
	}
	return r.choose(ctx, text)
}

// plain takes the whole answer of a role that names no data, unless it suspends, or
// gives the text as data itself, as an agent does that knows schemas only.
func (r Role) plain(ctx context.Context, text string, fields map[string]any) (Output, error) {
	if suspendStatus(fields) != "" {
		return suspend(fields)
	}
	if fits, err := r.fits(ctx, fields); err != nil || fits {
		return Output{Value: fields, Body: text}, err
	}
	text = strings.TrimSpace(text)
	if text == "" {
		return Output{}, &InvalidError{Reason: "the answer is empty"}
	}
	return Output{Value: map[string]any{protocol.AnswerField: text}, Body: text}, nil
}

// accept makes data of the fields of a block.
func (r Role) accept(ctx context.Context, fields map[string]any) (Output, error) {
	if status := suspendStatus(fields); status != "" {
		return suspend(fields)
	}
	known := knownBy(r.Schema)
	if problems := checkStandard(fields, known); len(problems) > 0 {
		return Output{}, &InvalidError{Problems: problems}
	}
	candidate := known.only(fields)
	if plain, ok := plainStatus(candidate); ok {
		if fits, err := r.fits(ctx, plain); err != nil || fits {
			return Output{Value: plain}, err
		}
	}
	if narrow, ok := variantOf(r.Schema, candidate); ok {
		if fits, err := r.fits(ctx, candidate); err != nil || fits {
			return Output{Value: candidate}, err
		}
		candidate = narrow.only(candidate)
	}
	return r.take(ctx, candidate)
}

// fits reports whether a value satisfies the schema.
func (r Role) fits(ctx context.Context, v any) (bool, error) {
	problems, err := r.Compiled.Validate(ctx, v)
	return err == nil && problems == nil, err
}

// take takes a value as it is, if it satisfies the schema.
func (r Role) take(ctx context.Context, v any) (Output, error) {
	problems, err := r.Compiled.Validate(ctx, v)
	if err != nil {
		return Output{}, err
	}
	if problems != nil {
		return Output{}, &InvalidError{Problems: problems}
	}
	return Output{Value: v}, nil
}

// Value validates structured output. It is taken as it is, but for numbers,
// which become int64 or float64. Errors: as of [Text].
func Value(ctx context.Context, v any, r Role) (Output, error) {
	v, err := jsonValue(v)
	if err != nil {
		return Output{}, &InvalidError{Reason: "the output is not a JSON value: " + err.Error()}
	}
	if fields, ok := v.(map[string]any); ok && suspendStatus(fields) != "" {
		return suspend(fields)
	}
	return r.take(ctx, v)
}

// suspendStatus returns the field by which an answer suspends, or "". A model
// whose schema routes by "status" writes it there.
func suspendStatus(fields map[string]any) string {
	if _, ok := fields[protocol.StatusKey]; ok {
		return or(fields[protocol.StatusKey] == protocol.SuspendNode, protocol.StatusKey)
	}
	return or(fields["status"] == protocol.SuspendNode, "status")
}

func or(there bool, name string) string {
	if there {
		return name
	}
	return ""
}

// suspend takes an answer that suspends. Other fields than the reason are
// dropped.
func suspend(fields map[string]any) (Output, error) {
	reason, ok := fields["reason"].(string)
	if !ok || strings.TrimSpace(reason) == "" {
		return Output{}, &InvalidError{Problems: []jsonschema.Problem{{
			Path:    "/reason",
			Message: "is required to suspend: a text that says what is needed from a person",
		}}}
	}
	s := protocol.NewSuspend(reason)
	return Output{Value: map[string]any{protocol.StatusKey: s.Status, "reason": s.Reason}, Suspend: &s}, nil
}

// noBlock says how an answer must begin.
const noBlock = "the answer has no frontmatter block: its very first line must be ---, " +
	"then come lines 'field: value', then a line --- again"

// only returns the fields that are known.
func (k fieldSet) only(fields map[string]any) map[string]any {
	kept := maps.Clone(fields)
	maps.DeleteFunc(kept, func(name string, _ any) bool { return !k.has(name) })
	return kept
}
