// Package inputs checks the inputs of a run against those that its workflow declares.
package inputs

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/jsonschema"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/suggest"
)

// MaxBytes bounds the JSON of a run's inputs: agents get them in one environment variable, whose size
// operating systems limit.
const MaxBytes = 96 << 10

// Declared is an input that a workflow declares.
type Declared struct {
	Schema      any // a JSON Schema
	Default     any // nil: the input is required
	Description string
}

// Fill returns the inputs of a run: the given values, and defaults for the others. Its error is a
// *protocol.Error that lists all problems, with code usage for an unknown name or a missing value and code
// invalid for a value that doesn't match its schema, or the reason why a schema could not be evaluated.
func Fill(ctx context.Context, declared map[string]Declared, given map[string]any) (map[string]any, error) {
	names := slices.Sorted(maps.Keys(declared))
	filled := map[string]any{}
	var wrong []string
	refused := &protocol.Error{Code: protocol.CodeInvalid}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if _, ok := declared[name]; !ok {
			refused.Code = protocol.CodeUsage
			wrong = append(wrong, fmt.Sprintf("%s: unknown", plaintext.Line(name)))
			near := append(suggest.Nearest(name, names, 1), "")
			refused.Because("no-such-input", "near", near[0], "names", strings.Join(names, ", "))
		}
	}
	for _, name := range names {
		value, ok := given[name]
		if !ok {
			if value = declared[name].Default; value == nil {
				refused.Code = protocol.CodeUsage
				wrong = append(wrong, name+": required"+described(declared[name]))
				refused.Because("input-missing", "input", name+"=VALUE")
				continue
			}
		}
		problems, err := check(ctx, name, declared[name].Schema, value)
		if err != nil {
			return nil, err
		}
		if len(problems) > 0 {
			refused.Because("input-missing", "input", name+"=VALUE")
		}
		wrong = append(wrong, problems...)
		filled[name] = value
	}
	if len(wrong) > 0 {
		refused.Message = "invalid inputs:\n- " + strings.Join(wrong, "\n- ")
		return nil, refused
	}
	text, err := json.Marshal(filled)
	if err == nil && len(text) > MaxBytes {
		err = (&protocol.Error{Code: protocol.CodeInvalid,
			Message: fmt.Sprintf("inputs too large: %d bytes; the limit is %d", len(text), MaxBytes),
		}).Because("inputs-too-large")
	}
	if len(filled) == 0 {
		filled = nil
	}
	return filled, err
}

func described(d Declared) string {
	if d.Description == "" {
		return ""
	}
	return " (" + plaintext.Line(d.Description) + ")"
}

// check returns the problems of a value.
func check(ctx context.Context, name string, schema, value any) ([]string, error) {
	compiled, err := jsonschema.Compile(schema)
	if err != nil {
		return nil, fmt.Errorf("schema of input %q: %w", name, err)
	}
	problems, err := compiled.Validate(ctx, value)
	var wrong []string
	for _, p := range problems {
		wrong = append(wrong, plaintext.Line(name+p.Path+": "+p.Message))
	}
	return wrong, err
}
