package engine

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/moderator/inputs"
	"github.com/united-workforce/uwf/protocol"
)

// inputs are those of a run of a workflow, checked and complete.
func (e *Engine) inputs(ctx context.Context, w protocol.Workflow, given map[string]any) (map[string]any, error) {
	declared, err := Declared(ctx, e.Nodes(), w)
	if err != nil {
		return nil, err
	}
	return inputs.Fill(ctx, declared, given)
}

// Declared are the inputs of a stored workflow.
func Declared(ctx context.Context, r cas.Reader, w protocol.Workflow) (map[string]inputs.Declared, error) {
	declared := map[string]inputs.Declared{}
	for name, i := range w.Inputs {
		schema, err := cas.Schema(ctx, r, i.Schema)
		if err != nil {
			return nil, fmt.Errorf("schema of input %q: %w", name, err)
		}
		declared[name] = inputs.Declared{Schema: schema, Default: i.Default, Description: i.Description}
	}
	return declared, nil
}

// inputsText is what agents are told of a thread's inputs.
func inputsText(s protocol.Start) string {
	if len(s.Inputs) == 0 {
		return "{}"
	}
	text, err := json.Marshal(s.Inputs)
	if err != nil { // it was read from a node
		return "{}"
	}
	return string(text)
}
